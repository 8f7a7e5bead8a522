"""`inventory.stock.receive`: goods come in."""

from typing import Any

from pydantic import Field

from app.commands.context import Context
from app.commands.definition import CommandDefinition, Operation, Risk, Text
from app.packs.inventory import booking
from app.packs.inventory.models import Move
from app.packs.inventory.rights import MANAGE


class ReceiveStock(booking.Booking):
    """What came, and where it lies now."""

    item_id: str = Field(pattern=booking.ID, description="The id of the item.")
    location_id: str = Field(pattern=booking.ID, description="The id of the location it lies at.")
    quantity: int = Field(ge=1, le=booking.MOST, description="How many units came.")
    order_id: str | None = Field(
        None, pattern=booking.ID, description="The id of the order it came for, if there is one."
    )


def handle(ctx: Context) -> dict[str, Any]:
    """Add the goods to what lies there.

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
    return booking.facts(move, booking.change(ctx, item, location, wanted.quantity))


COMMAND = CommandDefinition(
    code="inventory.stock.receive",
    display_name=Text(en="Receive stock", zh="入库"),
    description=Text(
        en="Adds goods that arrived to what lies at a location.",
        zh="把收到的货物计入某个库位的现存量。",
    ),
    agent_hint=Text(
        en="Use when goods have arrived and were counted, and no order is waiting for them (else "
        "inventory.order.receive); inventory.stock.issue takes the same quantity out again.",
        zh="货物已到并已清点、且没有对应采购单时使用（有采购单用 inventory.order.receive）；"
        "inventory.stock.issue 可按相同数量冲回。",
    ),
    risk=Risk.L2,  # the move, the level, the item and the location
    idempotent=False,
    reversible=True,
    undo="inventory.stock.issue",
    undo_input={
        "itemId": "input.item_id",
        "locationId": "input.location_id",
        "quantity": "input.quantity",
    },
    record=Move,
    operation=Operation.CREATE,
    input=ReceiveStock,
    example={
        "itemId": "01JDXP5Y8GZ0000000000000AC",
        "locationId": "01JDXP5Y8GZ0000000000000AD",
        "quantity": 40,
        "note": "Delivery note 4711",
    },
    permission=MANAGE,
    related=("stock",),
    rules=booking.NEVER_NEGATIVE,
    set={"number": "next:MOV"},
    map={
        "item_id": "item_id",
        "location_id": "location_id",
        "quantity": "quantity",
        "order_id": "order_id",
        "note": "note",
    },
    computed={"kind": "'receipt'"},
    handler=handle,
    roll_ups=booking.ROLL_UPS,
    events=("inventory.stock.received",),
)
