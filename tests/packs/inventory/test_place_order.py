"""`inventory.order.place`: the supplier gets exactly what a person looked at, once."""

import pytest

from app.commands.outbox_models import OutboxEvent
from app.packs.inventory.models import Order
from tests.packs.inventory.warehouse import Warehouse, contents

PLACE = "inventory.order.place"


@pytest.mark.requirement("CMD-25", "CMD-12")
async def test_the_supplier_gets_what_the_requester_looked_at_once(warehouse: Warehouse) -> None:
    order = warehouse.draft(40, unitPriceMinor=250, note="On pallets")

    asked = await warehouse.refused(PLACE, "mia", at=order, message="Before Friday")
    not_hers = await warehouse.refused(PLACE, "alice", at=order)
    assert [each for each in contents(OutboxEvent) if each["name"].endswith("placed")] == []
    approval_id = await warehouse.approve(asked, "mia")
    again = {"at": order, "message": "Before Friday", "approval_id": approval_id}
    warehouse.do(PLACE, "mia", **again)
    twice = await warehouse.refused(PLACE, "mia", **again)

    told = [each for each in contents(OutboxEvent) if each["name"] == "inventory.order.placed"]
    row = warehouse.row(Order, order)
    assert (asked.stage, asked.reason) == ("approval_check", "approval_required")
    assert not_hers.reason == "permission_denied"
    assert (row.state, row.ordered_by) == ("ordered", warehouse.acme["mia"].id)
    assert row.ordered_at is not None
    assert any(
        each["data"].get("message") == "Before Friday" and each["data"]["totalMinor"] == 10_000
        for each in told
    )
    assert twice.reason in {"approval_consumed", "illegal_state"}


@pytest.mark.requirement("CMD-25")
async def test_what_cannot_be_received_is_not_ordered_and_what_is_free_needs_a_word(
    warehouse: Warehouse,
) -> None:
    free = warehouse.draft(1, unitPriceMinor=0)
    order = warehouse.draft()

    wordless = await warehouse.refused(PLACE, "mia", at=free)
    warehouse.do("inventory.location.close", at=warehouse.shelf)
    closed = await warehouse.refused(PLACE, "mia", at=order)
    warehouse.do("inventory.item.retire", at=warehouse.item)
    retired = await warehouse.refused(PLACE, "mia", at=order)

    assert (wordless.reason, wordless.errors[0].pointer) == ("cross_field_failed", "message")
    assert closed.words("en") == "The location it would be delivered to is closed."
    assert (retired.stage, retired.words("zh-CN")) == ("assert", "该物料已停用。")
