"""A world with reports in it, and commands that say no at whichever stage a test wants."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from app.commands import pipeline, publishing, registry
from app.commands.call import Call
from app.identity.models import User
from app.kernel import db
from tests.commands.declared import SAMPLES
from tests.people import World


@pytest.fixture
def samples(world: World) -> Iterator[World]:
    """The world, with the sample commands published in both tenants."""
    registry.discover(SAMPLES)
    for company in (world.acme, world.globex):
        db.transact_now(publishing.sync, company.id)
    yield world
    registry.discover()


@pytest.fixture
def report(samples: World) -> Callable[..., str]:
    """Makes a draft report of somebody's; returns its id."""

    def make(user: User, **input: Any) -> str:
        call = Call(
            code="expense.report.create",
            input={"title": "October, Shanghai", "period": "2026-10", **input},
            principal=samples.person(user),
        )
        done = db.transact_now(pipeline.perform, call)
        assert done.record is not None
        return str(done.record["id"])

    return make
