"""What has to happen now and then: each job in turn, on a thread, a fault in one stops no other."""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import structlog

from app.kernel import clock

log = structlog.get_logger(__name__)

LOOK_S = 1.0


@dataclass(slots=True)
class Job:
    """`run` every `every_s` seconds, the first time that long after the start.

    It may wait for the database (`db.transact_now`), and may run in several processes at once.
    """

    name: str
    every_s: float
    run: Callable[[], object]
    due_at_s: float = 0.0


class Schedule:
    """A thread that runs jobs until it is stopped."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._jobs = list(jobs)
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="schedule", daemon=True)

    def start(self) -> None:
        """Begin to count."""
        for job in self._jobs:
            job.due_at_s = clock.monotonic_s() + job.every_s
        self._thread.start()

    def stop(self) -> None:
        """Finish the job at hand, and end."""
        self._ending.set()
        self._thread.join()

    def _serve(self) -> None:
        while not self._ending.wait(LOOK_S):
            for job in self._jobs:
                if clock.monotonic_s() >= job.due_at_s and not self._ending.is_set():
                    job.due_at_s = clock.monotonic_s() + job.every_s
                    _run(job)


def _run(job: Job) -> None:
    try:
        job.run()
    except Exception:
        log.exception("job_failed", name=job.name)
