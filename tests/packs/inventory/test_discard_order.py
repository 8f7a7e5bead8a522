"""`inventory.order.discard`: a draft is dropped, once a person said so."""

import pytest

from app.packs.inventory.models import Order
from tests.packs.inventory.warehouse import Warehouse

DISCARD = "inventory.order.discard"


@pytest.mark.requirement("CMD-25", "CMD-11")
async def test_a_draft_is_dropped_once_a_person_said_so(warehouse: Warehouse) -> None:
    order = warehouse.draft()

    asked = await warehouse.refused(DISCARD, "mia", at=order)
    assert warehouse.row(Order, order).state == "draft"
    await warehouse.agreed(DISCARD, "mia", "mia", at=order)
    again = await warehouse.refused(DISCARD, "mia", at=order)

    assert (asked.stage, asked.reason, asked.status) == ("approval_check", "approval_required", 428)
    assert warehouse.row(Order, order).state == "cancelled"
    assert (again.stage, again.reason) == ("state_check", "illegal_state")
