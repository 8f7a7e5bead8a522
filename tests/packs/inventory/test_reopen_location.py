"""`inventory.location.reopen`: stock may lie there again."""

import pytest

from app.packs.inventory.models import Location
from tests.packs.inventory.warehouse import Warehouse


@pytest.mark.requirement("CMD-25")
async def test_stock_may_lie_at_a_reopened_location(warehouse: Warehouse) -> None:
    too_soon = await warehouse.refused("inventory.location.reopen", at=warehouse.shelf)
    warehouse.do("inventory.location.close", at=warehouse.shelf)

    done = warehouse.do("inventory.location.reopen", at=warehouse.shelf)
    warehouse.undo(warehouse.receive(1))
    warehouse.undo(done)

    assert (too_soon.stage, too_soon.reason) == ("state_check", "illegal_state")
    assert warehouse.row(Location, warehouse.shelf).state == "closed"
