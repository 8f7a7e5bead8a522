"""`inventory.receipt.reverse`: an order that was received by mistake."""

import pytest

from app.packs.inventory.models import Order
from tests.packs.inventory.warehouse import Warehouse

REVERSE = "inventory.receipt.reverse"


@pytest.mark.requirement("CMD-25")
async def test_a_receipt_is_taken_back_while_the_goods_are_still_there(
    warehouse: Warehouse,
) -> None:
    order = await warehouse.ordered(40)
    too_soon = await warehouse.refused(REVERSE, at=order)
    warehouse.do("inventory.order.receive", at=order, quantity=40)
    issued = warehouse.do("inventory.stock.issue", **warehouse.where(), quantity=1)
    gone = await warehouse.refused(REVERSE, at=order)
    warehouse.undo(issued)

    done = warehouse.do(REVERSE, at=order, note="Another order")
    assert (warehouse.row(Order, order).state, warehouse.sums()) == ("ordered", (0, 0, 0))
    warehouse.undo(done)

    assert (too_soon.stage, too_soon.reason) == ("state_check", "illegal_state")
    assert (gone.stage, gone.facts["innerStage"]) == ("post_action", "post_invariant")
    assert (warehouse.row(Order, order).state, warehouse.sums()) == ("received", (40, 40, 0))
