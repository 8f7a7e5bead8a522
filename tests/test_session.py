"""A run of the tests cleans up after itself, whatever ends it."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests import session

ROOT = Path(__file__).parent.parent
RUN = """
from tests import postgres, session
with session.run() as folder:
    print(folder, postgres.server(), flush=True)
    input()
"""


def test_a_killed_run_leaves_no_database_server_behind() -> None:
    environment = {name: value for name, value in os.environ.items() if name != session.VARIABLE}
    environment.pop("ASSENT_TEST_DATABASE_URL", None)
    with subprocess.Popen(
        [sys.executable, "-c", RUN],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as run:
        assert run.stdout
        folder, url = run.stdout.readline().split(maxsplit=1)
        assert url.startswith("postgresql://")

        with (Path(folder) / session.COMPANIONS).open("w") as companions:
            run.kill()
            fcntl.flock(companions, fcntl.LOCK_EX)  # free once the server has ended

    assert not Path(folder).exists()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)


def test_what_is_made_once_is_made_once(tmp_path: Path) -> None:
    note = session.Once(tmp_path / "answer")

    with note.making() as first:
        assert first is None
        note.write("42")

    with note.making() as second:
        assert second == "42"
