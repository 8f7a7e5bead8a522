"""`inventory.location.close`: only an empty place."""

import pytest

from app.packs.inventory.models import Location
from tests.packs.inventory.warehouse import Warehouse

CLOSE = "inventory.location.close"


@pytest.mark.requirement("CMD-25")
async def test_only_an_empty_location_is_closed(warehouse: Warehouse) -> None:
    received = warehouse.receive(1)
    full = await warehouse.refused(CLOSE, at=warehouse.shelf)
    warehouse.undo(received)

    done = warehouse.do(CLOSE, at=warehouse.shelf)
    twice = await warehouse.refused(CLOSE, at=warehouse.shelf)
    warehouse.undo(done)

    assert (full.stage, full.reason) == ("assert", "assertion_failed")
    assert (twice.stage, twice.reason) == ("state_check", "illegal_state")
    assert warehouse.row(Location, warehouse.shelf).state == "open"
