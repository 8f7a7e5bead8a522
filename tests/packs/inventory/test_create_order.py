"""`inventory.order.create`: a draft of what to buy."""

import pytest

from app.packs.inventory.models import Order
from tests.packs.inventory.warehouse import Warehouse, contents

CREATE = "inventory.order.create"


@pytest.mark.requirement("CMD-25")
async def test_a_draft_knows_its_total_and_names_only_what_can_be_received(
    warehouse: Warehouse,
) -> None:
    wanted = {"supplier": "Suzhou Paper", "quantity": 40, "unitPriceMinor": 12_900}

    done = warehouse.do(CREATE, **warehouse.where(), **wanted)
    order = warehouse.row(Order, done.result["orderId"])
    refusals = [
        await warehouse.refused(CREATE, **{**warehouse.where(), **wrong}, **wanted)
        for wrong in ({"itemId": "0" * 26}, {"locationId": "0" * 26})
    ]
    warehouse.do("inventory.item.retire", at=warehouse.item)
    retired = await warehouse.refused(CREATE, **warehouse.where(), **wanted)

    assert (order.number, order.state, order.total_minor) == ("PO-1", "draft", 516_000)
    assert (done.result["totalMinor"], order.currency) == (516_000, "CNY")
    assert {each.reason for each in refusals} == {"record_not_found"}
    assert retired.reason == "item_retired"
    assert len(contents(Order)) == 1
    assert done.undo is not None
    assert done.undo.code == "inventory.order.discard"
