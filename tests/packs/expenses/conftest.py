"""What the tests of expenses share."""

from collections.abc import Iterator

import pytest
from fastapi import FastAPI

from tests import people
from tests.packs.expenses.desk import Desk


@pytest.fixture
def world(opened: str) -> Iterator[people.World]:
    """Two tenants with people; nobody comes through the web here."""
    with people.world(FastAPI, url=opened) as made:
        yield made


@pytest.fixture
def desk(world: people.World, spenders: None) -> Desk:
    """Everybody who spends, decides and pays, on a database of each kind in turn."""
    return Desk(world)
