"""`inventory.item.restore`: a retired item can be booked again."""

import pytest

from app.packs.inventory.models import Item
from tests.packs.inventory.warehouse import Warehouse


@pytest.mark.requirement("CMD-25")
async def test_a_restored_item_can_be_booked_again(warehouse: Warehouse) -> None:
    too_soon = await warehouse.refused("inventory.item.restore", at=warehouse.item)
    warehouse.do("inventory.item.retire", at=warehouse.item)

    done = warehouse.do("inventory.item.restore", at=warehouse.item)
    warehouse.undo(warehouse.receive(1))
    warehouse.undo(done)

    assert (too_soon.stage, too_soon.reason) == ("state_check", "illegal_state")
    assert warehouse.row(Item, warehouse.item).state == "retired"
