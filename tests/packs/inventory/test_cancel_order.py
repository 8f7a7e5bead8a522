"""`inventory.order.cancel`: the supplier hears that it is off."""

import pytest

from app.commands.outbox_models import OutboxEvent
from app.packs.inventory.models import Order
from tests.packs.inventory.warehouse import Warehouse, contents

CANCEL = "inventory.order.cancel"


@pytest.mark.requirement("CMD-25")
async def test_an_order_is_called_off_with_its_reason(warehouse: Warehouse) -> None:
    order = await warehouse.ordered()
    drafted = await warehouse.refused(CANCEL, "mia", at=warehouse.draft(), reason="No")
    silent = await warehouse.refused(CANCEL, "mia", at=order)

    await warehouse.agreed(CANCEL, "mia", "mia", at=order, reason="We found some")

    told = [each for each in contents(OutboxEvent) if each["name"] == "inventory.order.cancelled"]
    assert (drafted.stage, drafted.reason) == ("state_check", "illegal_state")
    assert (drafted.facts["currentState"], drafted.facts["allowedFrom"]) == ("draft", ["ordered"])
    assert silent.reason == "invalid_input"
    assert warehouse.row(Order, order).state == "cancelled"
    assert any(each["data"].get("reason") == "We found some" for each in told)
