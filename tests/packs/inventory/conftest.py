"""What the tests of inventory share."""

from collections.abc import Iterator

import pytest
from fastapi import FastAPI

from tests import people
from tests.packs.inventory.warehouse import Warehouse


@pytest.fixture
def world(opened: str) -> Iterator[people.World]:
    """Two tenants with people; nobody comes through the web here."""
    with people.world(FastAPI, url=opened) as made:
        yield made


@pytest.fixture
def warehouse(world: people.World) -> Warehouse:
    """The warehouse, empty, on a database of each kind in turn."""
    return Warehouse(world)
