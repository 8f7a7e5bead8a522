"""A few workers killed at random places; `bin/test kills` kills two hundred (RUN-114)."""

from pathlib import Path

import pytest

from tests.runs.kills import loop
from tests.runs.sessions import Desks

pytestmark = pytest.mark.anyio

TIMES, SEED = 6, 114


@pytest.mark.requirement("RUN-114", "F-54", "F-57")
async def test_workers_that_are_killed_at_random_lose_and_double_nothing(
    desks: Desks, database: str, tmp_path: Path
) -> None:
    found = await loop.torment(desks, database, tmp_path, TIMES, SEED)

    assert found.problems == []
    assert found.killed.total() >= TIMES
    assert found.takeovers > 0
    assert found.inputs["completed"] > 0
