"""What the tests of the workspace share."""

from collections.abc import Iterator

import pytest
from fastapi import FastAPI

from tests import people
from tests.packs.workspace.office import Office


@pytest.fixture
def world(opened: str) -> Iterator[people.World]:
    """Two tenants with people; nobody comes through the web here."""
    with people.world(FastAPI, url=opened) as made:
        yield made


@pytest.fixture
def office(world: people.World) -> Office:
    """Who governs Acme, on a database of each kind in turn."""
    return Office(world)
