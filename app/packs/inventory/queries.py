"""What is read of the warehouse: every list in the caller's scope, a page at a time."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import Field
from sqlalchemy import ColumnElement
from sqlmodel import Session, col, func, select

from app.access import scope
from app.commands.definition import Input
from app.commands.governed import GovernedRecord
from app.identity import paging
from app.identity.principal import Principal
from app.kernel import clock
from app.packs.inventory.models import Item, Location, Move, Order, Period, Stock
from app.packs.inventory.rights import READ

M = TypeVar("M", bound=GovernedRecord)


class Listing(Input):
    """What every list takes."""

    limit: int = Field(50, ge=1, le=200, description="How many to give at most.")
    cursor: str = Field(
        "",
        max_length=paging.LONGEST,
        description="`next` of the answer before, to go on; empty for the first page.",
    )


@dataclass(frozen=True, slots=True)
class By:
    """What a list is sorted by."""

    column: Any
    is_descending: bool = False


def listed(
    session: Session,
    principal: Principal,
    model: type[M],
    wanted: Any,
    by: By,
    facts: Callable[[M], dict[str, Any]],
    *conditions: ColumnElement[bool] | bool,
) -> dict[str, Any]:
    """A page of `model` as the answer of a list command: `rows` and `next`."""
    query = select(model).where(scope.within(principal, READ, model), *conditions)
    order = paging.Order(by.column, col(model.id), by.is_descending)
    page = paging.page(
        session, query, order, wanted.cursor, lambda row: facts(row[0]), size=wanted.limit
    )
    return {"rows": list(page.rows), "next": page.next}


def says(text: str, *columns: Any) -> ColumnElement[bool]:
    """Whether one of the columns contains `text`, whatever its case."""
    found = [func.lower(column).contains(text.lower(), autoescape=True) for column in columns]
    return found[0] if len(found) == 1 else found[0] | says(text, *columns[1:])


def item_facts(item: Item) -> dict[str, Any]:
    """An item, as answers show it."""
    return {
        "id": item.id,
        "sku": item.sku,
        "name": item.name,
        "unit": item.unit,
        "description": item.description,
        "onHand": item.on_hand,
        "state": item.state,
        "version": item.version,
    }


def location_facts(location: Location) -> dict[str, Any]:
    """A location, as answers show it."""
    return {
        "id": location.id,
        "code": location.code,
        "name": location.name,
        "onHand": location.on_hand,
        "state": location.state,
        "version": location.version,
    }


def stock_facts(stock: Stock) -> dict[str, Any]:
    """A stock level, as answers show it; `available` is what nobody has reserved."""
    return {
        "id": stock.id,
        "itemId": stock.item_id,
        "locationId": stock.location_id,
        "onHand": stock.on_hand,
        "reserved": stock.reserved,
        "available": stock.on_hand - stock.reserved,
        "minLevel": stock.min_level,
        "version": stock.version,
    }


def move_facts(move: Move) -> dict[str, Any]:
    """A move, as answers show it."""
    return {
        "id": move.id,
        "number": move.number,
        "kind": move.kind,
        "itemId": move.item_id,
        "locationId": move.location_id,
        "toLocationId": move.to_location_id,
        "quantity": move.quantity,
        "reason": move.reason,
        "note": move.note,
        "orderId": move.order_id,
        "bookedOn": move.booked_on,
        "createdAt": clock.rfc3339(move.created_at),
        "createdBy": move.created_by,
    }


def order_facts(order: Order) -> dict[str, Any]:
    """An order, as answers show it; amounts in minor units."""
    return {
        "id": order.id,
        "number": order.number,
        "supplier": order.supplier,
        "itemId": order.item_id,
        "locationId": order.location_id,
        "quantity": order.quantity,
        "unitPriceMinor": order.unit_price_minor,
        "totalMinor": order.total_minor,
        "currency": order.currency,
        "note": order.note,
        "state": order.state,
        "orderedAt": clock.rfc3339(order.ordered_at) if order.ordered_at else None,
        "receivedQuantity": order.received_quantity,
        "version": order.version,
    }


def period_facts(period: Period) -> dict[str, Any]:
    """A closed period, as answers show it."""
    return {
        "id": period.id,
        "period": period.period,
        "closedAt": clock.rfc3339(period.closed_at) if period.closed_at else None,
        "closedBy": period.closed_by,
        "moves": period.moves,
        "onHand": period.on_hand,
        "note": period.note,
    }
