"""Jobs for the threads of the database, and their answers brought back to whoever waits.

A coroutine waits with a future of its loop; the answers of jobs that ended together go to a loop
with one wake-up. A thread waits with a future of its own.
"""

import asyncio
import contextvars
import queue
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any


class Job:
    """A function for another thread, in the context of who hands it over.

    Attributes:
        keep: commit what it did, or roll it back.
        loop: where a coroutine waits for it; None where a thread does.
        tries: how often it was begun before.
    """

    __slots__ = ("_fault", "_future", "_result", "context", "keep", "loop", "run", "tries")

    def __init__(
        self,
        run: Callable[[Any], Any],
        *,
        keep: bool = True,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self.run = run
        self.keep = keep
        self.tries = 0
        self.context = contextvars.copy_context()
        self.loop = loop
        self._future: Any = loop.create_future() if loop else Future()
        self._result: Any = None
        self._fault: BaseException | None = None

    @property
    def answer(self) -> Any:
        """The future of who waits: to be awaited, or asked for its result."""
        return self._future

    def begins(self) -> bool:
        """Whether somebody still waits for it; from then on a thread cannot leave."""
        if self.loop is None:
            return self.tries > 0 or bool(self._future.set_running_or_notify_cancel())
        return not self._future.cancelled()

    def did(self, result: Any) -> None:
        """Note what it returned."""
        self._result = result

    def failed(self, fault: BaseException) -> None:
        """Note what it raised."""
        self._fault = fault

    def settle(self) -> None:
        """Give the answer; on the loop, where it is a loop's, unless its coroutine left."""
        if self._future.done():
            return
        if self._fault is not None:
            self._future.set_exception(self._fault)
        else:
            self._future.set_result(self._result)

    @staticmethod
    def answer_all(jobs: Iterable["Job"]) -> None:
        """Bring the answers of jobs that are over to those who wait; from their thread."""
        of_loops: dict[asyncio.AbstractEventLoop, list[Job]] = defaultdict(list)
        for job in jobs:
            if job.loop is None:
                job.settle()
            else:
                of_loops[job.loop].append(job)
        for loop, theirs in of_loops.items():
            with suppress(RuntimeError):  # the loop is gone, and who waited with it
                loop.call_soon_threadsafe(_settle_all, theirs)


def _settle_all(jobs: list[Job]) -> None:
    for job in jobs:
        job.settle()


class Threads:
    """Some threads that do one job after the other, whichever is free."""

    def __init__(self, number: int, name: str, do: Callable[[Job], Any]) -> None:
        self._do = do
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._serve, name=f"{name}_{place}", daemon=True)
            for place in range(number)
        ]
        for thread in self._threads:
            thread.start()

    def put(self, job: Job) -> None:
        """Let the next free thread do it."""
        self._jobs.put(job)

    def close(self) -> None:
        """Let them finish what was handed over."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _serve(self) -> None:
        while job := self._jobs.get():
            if not job.begins():
                continue
            try:
                job.did(job.context.run(self._do, job))
            except BaseException as fault:  # noqa: BLE001 - it belongs to the caller
                job.failed(fault)
            Job.answer_all((job,))
            del job  # who waits for the next one holds nothing of the last
