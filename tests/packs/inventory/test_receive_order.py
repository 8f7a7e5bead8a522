"""`inventory.order.receive`: the order is closed and the stock is booked, in one transaction."""

import pytest
from sqlmodel import col, select

from app.audit.models import AuditEntry
from app.kernel import db
from app.packs.inventory.models import Move, Order, Stock
from tests.packs.inventory.warehouse import Warehouse, contents

RECEIVE = "inventory.order.receive"


@pytest.mark.requirement("CMD-25")
async def test_what_arrived_is_booked_with_the_order_and_taken_back_with_it(
    warehouse: Warehouse,
) -> None:
    order = await warehouse.ordered(40)

    done = warehouse.do(RECEIVE, at=order, quantity=38, note="Two were broken")
    row, (move,) = warehouse.row(Order, order), contents(Move)
    entries = db.read_now(
        lambda session: session.exec(
            select(AuditEntry).where(col(AuditEntry.parent_call_id) == done.call_id)
        ).all()
    )
    assert (row.state, row.received_quantity) == ("received", 38)
    assert warehouse.sums() == (38, 38, 0)
    assert (move["order_id"], move["note"]) == (order, "Two were broken")
    assert [each.command for each in entries] == ["inventory.stock.receive"]

    warehouse.undo(done)
    row = warehouse.row(Order, order)
    assert (row.state, row.received_quantity, row.received_at) == ("ordered", 0, None)
    assert warehouse.sums() == (0, 0, 0)


@pytest.mark.requirement("CMD-25", "CMD-5")
async def test_where_the_stock_cannot_be_booked_the_order_stays_open(warehouse: Warehouse) -> None:
    order = await warehouse.ordered(40)

    too_much = await warehouse.refused(RECEIVE, at=order, quantity=41)
    unexplained = await warehouse.refused(RECEIVE, at=order, quantity=39)
    not_his = await warehouse.refused(RECEIVE, "bob", at=order, quantity=40)
    warehouse.do("inventory.location.close", at=warehouse.shelf)
    closed = await warehouse.refused(RECEIVE, at=order, quantity=40)

    assert (too_much.reason, too_much.errors[0].pointer) == ("cross_field_failed", "quantity")
    assert (unexplained.reason, unexplained.errors[0].pointer) == ("cross_field_failed", "note")
    assert not_his.reason == "permission_denied"
    assert (closed.stage, closed.reason) == ("post_action", "location_closed")
    assert closed.facts["innerStage"] == "handler"
    assert warehouse.row(Order, order).state == "ordered"
    assert contents(Stock, Move) == []
