"""The rules of the tests themselves."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests import session
from tests.clock import Clock
from tests.sources import ROOT

PYTEST = [sys.executable, "-m", "pytest", "-n0", "-rfEs", "-p", "tests.house", "-c", os.devnull]
SAMPLE = """
import pytest

@pytest.mark.skip(reason="this machine has no tape drive")
def test_says_why(): ...

@pytest.mark.skip
def test_is_silent(): ...

def test_gives_up(): pytest.skip()

@pytest.mark.skipif(True, reason="")
def test_says_nothing(): ...

@pytest.mark.parametrize("nothing", [])
def test_has_no_cases(nothing): ...
"""


def test_nothing_is_skipped_silently(tmp_path: Path) -> None:
    (tmp_path / "test_sample.py").write_text(SAMPLE)
    environment = {name: value for name, value in os.environ.items() if name != session.VARIABLE}

    ended = subprocess.run(
        [*PYTEST, "--rootdir", tmp_path, tmp_path],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )

    assert ended.returncode == 1
    assert "this machine has no tape drive" in ended.stdout
    for silent in ("test_is_silent", "test_gives_up", "test_says_nothing", "test_has_no_cases"):
        assert re.search(rf"{silent}(\[\S+\])? was skipped without a reason", ended.stdout)


def test_the_clock_stands_still_until_it_is_moved(clock: Clock) -> None:
    before = clock.now

    assert clock.now == before
    assert (clock.move(minutes=5) - before).total_seconds() == 300
