"""`inventory.order.get`: one order."""

import pytest

from tests.packs.inventory.warehouse import Warehouse


@pytest.mark.requirement("CMD-25", "CMD-F18")
async def test_an_order_is_shown_to_who_may_see_it(warehouse: Warehouse) -> None:
    order = warehouse.draft(40, unitPriceMinor=250)

    found = warehouse.do("inventory.order.get", "bob", at=order).result["order"]
    foreign = await warehouse.refused("inventory.order.get", "gina", at=order)

    assert (found["number"], found["state"], found["totalMinor"]) == ("PO-1", "draft", 10_000)
    assert (foreign.reason, foreign.status) == ("record_not_found", 404)
