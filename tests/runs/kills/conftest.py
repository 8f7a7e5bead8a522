"""Processes that are killed at their work, and the one that goes on with what they left."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.commands import publishing, registry
from app.kernel import db, settings
from tests.commands.declared import SAMPLES
from tests.people import World
from tests.runs.kills import dying
from tests.runs.kills.survivors import Survivors
from tests.runs.sessions import Desks


@pytest.fixture
def survivors(
    desks: Desks, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Survivors:
    """The process of the test, in which agents think by the script."""
    chosen = dying.chosen()
    monkeypatch.setattr(settings, "current", lambda: chosen)
    return Survivors(desks, database, tmp_path)


@pytest.fixture
def riders(desks: Desks, world: World) -> Iterator[None]:
    """Acme may order taxis."""
    registry.discover(SAMPLES)
    db.transact_now(publishing.sync, world.acme.id)
    yield
    registry.discover()
