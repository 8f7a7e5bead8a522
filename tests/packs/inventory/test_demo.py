"""What `--demo` shows of inventory, held against the books."""

from collections import Counter

import pytest
from sqlmodel import Session, col, select

from app.audit.models import AuditEntry
from app.commands import registry
from app.identity import demo, tenants
from app.kernel import clock, db, settings
from app.packs.inventory.models import Item, Location, Move, Order, Period, Stock
from tests import people


@pytest.mark.requirement("CMD-25")
async def test_the_demo_has_a_warehouse_whose_moves_add_up_to_its_stock(opened: str) -> None:
    with people.ready():
        registry.import_demos()
        await demo.seed(settings.current())

        acme = await db.read(_acme)
        items, locations, stocks, moves, orders, periods = [
            await db.read(_rows, acme, model)
            for model in (Item, Location, Stock, Move, Order, Period)
        ]
        booked = await db.read(_entries, acme)

    assert 30 <= len(moves) <= 60
    assert {move.kind for move in moves} == {"receipt", "issue", "transfer", "adjustment"}
    assert {order.state for order in orders} == {"draft", "ordered", "received", "cancelled"}
    assert all(move.created_at <= clock.now() for move in moves)
    assert len(periods) >= 1
    there: Counter[tuple[str, str]] = Counter()
    for move in moves:
        there[move.item_id, move.location_id] += move.quantity
        if move.to_location_id:
            there[move.item_id, move.to_location_id] -= move.quantity
    for stock in stocks:
        assert stock.on_hand == there[stock.item_id, stock.location_id] >= stock.reserved
    for item in items:
        own = [stock.on_hand for stock in stocks if stock.item_id == item.id]
        assert item.on_hand == sum(own) > 0
    for location in locations:
        own = [stock.on_hand for stock in stocks if stock.location_id == location.id]
        assert location.on_hand == sum(own)
    assert any(stock.reserved for stock in stocks)
    assert len({move.created_by for move in moves}) >= 2
    assert booked == len(moves)


def _acme(session: Session) -> str:
    tenant = tenants.by_slug(session, "acme")
    assert tenant is not None
    return tenant.id


def _rows(session: Session, tenant_id: str, model: type) -> list:  # type: ignore[type-arg]
    return list(session.exec(select(model).where(model.tenant_id == tenant_id)))  # type: ignore[attr-defined]


def _entries(session: Session, tenant_id: str) -> int:
    codes = [f"inventory.stock.{verb}" for verb in ("receive", "issue", "move", "adjust")]
    query = select(AuditEntry).where(
        AuditEntry.tenant_id == tenant_id,
        col(AuditEntry.command).in_(codes),
        AuditEntry.outcome == "done",
    )
    return len(session.exec(query).all())
