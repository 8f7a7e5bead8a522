"""From a cold process to the first `200 /readyz`, with a database that exists (performance.md, P1).

The floor is uvicorn with an application that answers 200 to everything, started the same way.
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests import databases, session
from tests.bench.report import Report, Row
from tests.server import RunningServer
from tests.sources import ROOT

ROUNDS = 5
GOAL_S = 2.5
FLOOR = "uvicorn alone"
LEAST = """
import sys, uvicorn

async def application(scope, receive, send):
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ok"})

uvicorn.run(application, host="127.0.0.1", port=int(sys.argv[1]), log_level="error", lifespan="off")
"""


class Floor(RunningServer):
    """The least that can answer."""

    def launch(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", LEAST, str(self.port)], cwd=ROOT, env=self.env
        )


def main() -> Report:
    """Measure, interleaved: floor, SQLite, PostgreSQL, floor, ..."""
    with session.run(), tempfile.TemporaryDirectory() as folder:
        with databases.migrated("postgresql", Path(folder)) as postgresql:
            rounds = measured(
                {
                    FLOOR: Floor(Path(folder, "floor")),
                    "SQLite": RunningServer(Path(folder, "sqlite"), afresh=True),
                    "PostgreSQL": RunningServer(
                        Path(folder, "postgresql"), postgresql, afresh=True
                    ),
                }
            )
        databases.finish()
    return Report(
        topic="startup",
        says=f"process start to first 200 /readyz, goal {GOAL_S} s",
        rows=[
            Row(name, [taken[name][0] for taken in rounds], [taken[name][1] for taken in rounds])
            for name in rounds[0]
        ],
        floor=FLOOR,
    )


def measured(subjects: dict[str, RunningServer]) -> list[dict[str, tuple[float, float]]]:
    """The rounds, after one that makes databases, keys and .pyc files."""
    for subject in subjects.values():
        timed(subject)
    return [{name: timed(subject) for name, subject in subjects.items()} for _ in range(ROUNDS)]


def timed(server: RunningServer) -> tuple[float, float]:
    """Seconds until it was ready, and seconds of processor it used for its whole life."""
    used = children_cpu_s()
    began = time.monotonic()
    server.start()
    ready_s = time.monotonic() - began
    server.stop()
    return ready_s, children_cpu_s() - used


def children_cpu_s() -> float:
    """Processor seconds of all ended children."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
