"""Agents at work: Acme's office, with a scheduler only where a test starts one."""

from collections.abc import Iterator

import pytest

from app.kernel import settings
from app.runs import request
from tests.people import World
from tests.runs.agents import Office
from tests.runs.playing import Stage
from tests.runs.sessions import Desks


@pytest.fixture
def office(world: World) -> Office:
    """Acme's people and agents; nobody has said anything yet."""
    return Office(world)


@pytest.fixture
def desks(world: World, spenders: None) -> Desks:
    """The same office with expenses to work on."""
    return Desks(world)


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every agent thinks with what `playing` says, and waits for no provider."""
    monkeypatch.setenv("ASSENT_MODEL", "scripted:loop")
    monkeypatch.setattr(request, "FIRST_WAIT_S", 0.0)
    settings.current.cache_clear()
    yield
    settings.current.cache_clear()


@pytest.fixture
def stage(scripted: None, world: World, spenders: None) -> Stage:
    """The desk of expenses, whose agent alice lets act for her, with a scripted model."""
    return Stage(world)
