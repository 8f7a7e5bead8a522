"""`inventory.stock.move`: from one location to another."""

from typing import Any

from pydantic import Field

from app.commands.context import Context
from app.commands.definition import CommandDefinition, Operation, Risk, Rule, Text
from app.packs.inventory import booking
from app.packs.inventory.models import Move
from app.packs.inventory.rights import MANAGE


class MoveStock(booking.Booking):
    """What, from where, and where to."""

    item_id: str = Field(pattern=booking.ID, description="The id of the item.")
    from_location_id: str = Field(
        pattern=booking.ID, description="The id of the location it leaves."
    )
    to_location_id: str = Field(
        pattern=booking.ID, description="The id of the location it lies at afterwards."
    )
    quantity: int = Field(ge=1, le=booking.MOST, description="How many units are carried.")


def handle(ctx: Context) -> dict[str, Any]:
    """Take from one location and add to the other.

    Raises:
        Rejected: what `booking` says of the day, the item and the locations.
    """
    move, wanted = ctx.target(Move), ctx.input
    booking.dated(ctx, move)
    item = booking.item(ctx, wanted.item_id)
    source, goal = booking.locations(
        ctx,
        {"/fromLocationId": wanted.from_location_id, "/toLocationId": wanted.to_location_id},
    )
    move.org_id = source.org_id
    return booking.facts(
        move,
        booking.change(ctx, item, source, -wanted.quantity),
        booking.change(ctx, item, goal, wanted.quantity),
    )


COMMAND = CommandDefinition(
    code="inventory.stock.move",
    display_name=Text(en="Move stock", zh="移库"),
    description=Text(
        en="Carries units of an item from one location to another; what is on hand in all stays.",
        zh="把物料从一个库位移到另一个库位，总现存量不变。",
    ),
    agent_hint=Text(
        en="Use when goods were carried to another location and that much is available where they "
        "came from; inventory.stock.move with the locations exchanged carries them back.",
        zh="货物已搬到另一库位、且原库位可用量足够时使用；"
        "交换两个库位再次执行 inventory.stock.move 即可移回。",
    ),
    risk=Risk.L2,  # the move, two levels and two locations
    idempotent=False,
    reversible=True,
    undo="inventory.stock.move",
    undo_input={
        "itemId": "input.item_id",
        "fromLocationId": "input.to_location_id",
        "toLocationId": "input.from_location_id",
        "quantity": "input.quantity",
    },
    record=Move,
    operation=Operation.CREATE,
    input=MoveStock,
    example={
        "itemId": "01JDXP5Y8GZ0000000000000AC",
        "fromLocationId": "01JDXP5Y8GZ0000000000000AD",
        "toLocationId": "01JDXP5Y8GZ0000000000000AE",
        "quantity": 5,
    },
    permission=MANAGE,
    related=("stock",),
    rules=booking.NEVER_NEGATIVE.model_copy(
        update={
            "cross_field": (
                Rule(
                    expr="input.from_location_id != input.to_location_id",
                    message=Text(
                        en="Where it comes from and where it goes are the same location.",
                        zh="来源库位与目标库位相同。",
                    ),
                    pointers=("/fromLocationId", "/toLocationId"),
                ),
            )
        }
    ),
    set={"number": "next:MOV"},
    map={
        "item_id": "item_id",
        "from_location_id": "location_id",
        "to_location_id": "to_location_id",
        "note": "note",
    },
    computed={"kind": "'transfer'", "quantity": "-input.quantity"},
    handler=handle,
    roll_ups=booking.ROLL_UPS,
    events=("inventory.stock.moved",),
)
