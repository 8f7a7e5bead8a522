"""`inventory.item.retire`: only what is neither on hand nor on its way."""

import pytest

from app.packs.inventory.models import Item
from tests.packs.inventory.warehouse import Warehouse

RETIRE = "inventory.item.retire"


@pytest.mark.requirement("CMD-25")
async def test_only_what_is_neither_on_hand_nor_on_its_way_is_retired(warehouse: Warehouse) -> None:
    received = warehouse.receive(1)
    on_hand = await warehouse.refused(RETIRE, at=warehouse.item)
    warehouse.undo(received)
    order = await warehouse.ordered()
    on_its_way = await warehouse.refused(RETIRE, at=warehouse.item)
    await warehouse.agreed("inventory.order.cancel", "mia", "mia", at=order, reason="No need")

    done = warehouse.do(RETIRE, at=warehouse.item)
    twice = await warehouse.refused(RETIRE, at=warehouse.item)
    warehouse.undo(done)

    assert (on_hand.stage, on_hand.reason) == ("assert", "assertion_failed")
    assert on_its_way.words("zh-CN") == "该物料还有尚未到货的采购单。"
    assert (twice.stage, twice.reason, twice.status) == ("state_check", "illegal_state", 409)
    assert warehouse.row(Item, warehouse.item).state == "active"
