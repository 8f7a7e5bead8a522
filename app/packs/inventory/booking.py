"""How stock changes: the one place where quantities come to a location and leave it.

Rows are locked in one order (item, locations by id, stock), so that bookings wait for each other
and never in a circle. Nothing here looks whether enough is left: that is the last word of every
booking command, its post-invariant (`NEVER_NEGATIVE`).
"""

from collections.abc import Mapping
from typing import Any

from pydantic import Field
from sqlmodel import col, select

from app.commands.context import Context
from app.commands.definition import Input, RollUp, Rule, Rules, Text
from app.commands.errors import Rejected
from app.kernel.i18n import N_
from app.packs.inventory.models import ACTIVE, OPEN, Item, Location, Move, Order, Period, Stock
from app.packs.inventory.rights import MANAGE, READ

MOST = 1_000_000  # units in one booking
ID = "^[0-9A-HJKMNP-TV-Z]{26}$"

NEVER_NEGATIVE = Rules(
    post_invariants=(
        Rule(
            expr="related.stock.all(each, each.on_hand >= 0 && each.reserved <= each.on_hand)",
            message=Text(
                en="There is not that much left there that nobody has reserved.",
                zh="该库位没有这么多未被预留的库存。",
            ),
            pointers=("/quantity",),
        ),
    )
)
ROLL_UPS = (
    RollUp(into="inventory.item.on_hand", via="item_id", sum_of="inventory.stock.on_hand"),
    RollUp(into="inventory.location.on_hand", via="location_id", sum_of="inventory.stock.on_hand"),
)


class Booking(Input):
    """What every booking may say."""

    note: str = Field("", max_length=500, description="Why, in a few words, for the stock ledger.")
    booked_on: str | None = Field(
        None,
        json_schema_extra={"format": "date"},
        pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
        description="The day it counts for, not in the future; today (UTC) when left out.",
    )


def dated(ctx: Context, move: Move) -> None:
    """Say which day and period a move counts for.

    Raises:
        Rejected: `future_date`, or `period_closed`. None slips into a closed period: every call
            shares its hold of the tenant from `authorize` on, and who closes a period runs alone.
    """
    today = ctx.now.date().isoformat()
    move.booked_on = ctx.input.booked_on or today
    move.period = move.booked_on[:7]
    if move.booked_on > today:
        raise Rejected("future_date", says=N_("Stock is not booked ahead of time."))
    tenant_id, session = ctx.call.principal.tenant_id, ctx.work.session
    closed = select(Period.id).where(
        col(Period.tenant_id) == tenant_id, col(Period.period) == move.period
    )
    if session.exec(closed).first():
        raise Rejected(
            "period_closed",
            says=N_("The period %(period)s is closed; nothing is booked in it any more."),
            period=move.period,
        )


def item(ctx: Context, id: str) -> Item:
    """The item, locked until the commit.

    Raises:
        Rejected: `record_not_found`, or `item_retired`.
    """
    found = ctx.records.one(Item, id, READ, pointer="/itemId")
    if found.state != ACTIVE:
        raise Rejected(
            "item_retired",
            says=N_("%(item)s is retired; restore it before anything is booked."),
            item=found.sku,
        )
    return found


def order(ctx: Context, id: str) -> Order:
    """The order a booking names; not locked, since a call on the order itself locks it first.

    Raises:
        Rejected: `record_not_found`.
    """
    return ctx.records.one(Order, id, READ, pointer="/orderId", lock=False)


def locations(ctx: Context, named: Mapping[str, str], permission: str = MANAGE) -> list[Location]:
    """The locations that input fields (by pointer) name, locked, in the order of the fields.

    Raises:
        Rejected: `record_not_found`, or `location_closed`.
    """
    found = {
        id: ctx.records.one(Location, id, permission, pointer=pointer)
        for pointer, id in sorted(named.items(), key=lambda each: each[1])
    }
    for location in found.values():
        if location.state != OPEN:
            raise Rejected(
                "location_closed",
                says=N_("The location %(location)s is closed."),
                location=location.code,
            )
    return [found[id] for id in named.values()]


def change(ctx: Context, item: Item, location: Location, by: int) -> Stock:
    """Change what lies there; the row is made at the first booking of the pair."""
    rows = ctx.records.all(Stock, lock=True, item_id=item.id, location_id=location.id)
    stock = (
        rows[0]
        if rows
        else ctx.records.create(
            Stock,
            org_id=location.org_id,
            owner_id=location.owner_id,
            item_id=item.id,
            location_id=location.id,
        )
    )
    stock.on_hand += by
    return stock


def facts(move: Move, *stocks: Stock) -> dict[str, Any]:
    """What a booking answers: its number, and what lies there now."""
    return {
        "moveId": move.id,
        "number": move.number,
        "bookedOn": move.booked_on,
        "stock": [
            {
                "id": stock.id,
                "locationId": stock.location_id,
                "onHand": stock.on_hand,
                "reserved": stock.reserved,
            }
            for stock in stocks
        ],
    }
