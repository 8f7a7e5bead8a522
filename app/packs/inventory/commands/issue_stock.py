"""`inventory.stock.issue`: goods go out."""

from typing import Any

from pydantic import Field

from app.commands.context import Context
from app.commands.definition import CommandDefinition, Operation, Risk, Text
from app.packs.inventory import booking
from app.packs.inventory.models import Move
from app.packs.inventory.rights import MANAGE


class IssueStock(booking.Booking):
    """What leaves, and from where."""

    item_id: str = Field(pattern=booking.ID, description="The id of the item.")
    location_id: str = Field(pattern=booking.ID, description="The id of the location it leaves.")
    quantity: int = Field(ge=1, le=booking.MOST, description="How many units leave.")
    order_id: str | None = Field(
        None, pattern=booking.ID, description="The id of the order it goes back to, if it does."
    )


def handle(ctx: Context) -> dict[str, Any]:
    """Take the goods from what lies there.

    Raises:
        Rejected: what `booking` says of the day, the item and the location; `record_not_found` for
            the order.
    """
    move, wanted = ctx.target(Move), ctx.input
    booking.dated(ctx, move)
    item = booking.item(ctx, wanted.item_id)
    (location,) = booking.locations(ctx, {"/locationId": wanted.location_id})
    move.org_id = location.org_id
    if wanted.order_id is not None:
        booking.order(ctx, wanted.order_id)
    return booking.facts(move, booking.change(ctx, item, location, -wanted.quantity))


COMMAND = CommandDefinition(
    code="inventory.stock.issue",
    display_name=Text(en="Issue stock", zh="出库"),
    description=Text(
        en="Takes goods out of a location: to a customer, to a workshop, to use.",
        zh="从某个库位发出货物：发给客户、车间或领用。",
    ),
    agent_hint=Text(
        en="Use when goods have left a location and that much of them is available there; "
        "inventory.stock.receive puts the same quantity back.",
        zh="货物已从库位发出、且该库位可用量足够时使用；inventory.stock.receive 可按相同数量冲回。",
    ),
    risk=Risk.L2,  # the move, the level, the item and the location
    idempotent=False,
    reversible=True,
    undo="inventory.stock.receive",
    undo_input={
        "itemId": "input.item_id",
        "locationId": "input.location_id",
        "quantity": "input.quantity",
    },
    record=Move,
    operation=Operation.CREATE,
    input=IssueStock,
    example={
        "itemId": "01JDXP5Y8GZ0000000000000AC",
        "locationId": "01JDXP5Y8GZ0000000000000AD",
        "quantity": 5,
        "note": "Sales order 118",
    },
    permission=MANAGE,
    related=("stock",),
    rules=booking.NEVER_NEGATIVE,
    set={"number": "next:MOV"},
    map={
        "item_id": "item_id",
        "location_id": "location_id",
        "order_id": "order_id",
        "note": "note",
    },
    computed={"kind": "'issue'", "quantity": "-input.quantity"},
    handler=handle,
    roll_ups=booking.ROLL_UPS,
    events=("inventory.stock.issued",),
)
