"""`inventory.stock.adjust`: what is written becomes what is there."""

from typing import Any, Literal

from pydantic import Field

from app.commands.context import Context
from app.commands.definition import CommandDefinition, Operation, Risk, Rule, Text
from app.packs.inventory import booking
from app.packs.inventory.models import Move
from app.packs.inventory.rights import MANAGE


class AdjustStock(booking.Booking):
    """By how much, and why."""

    item_id: str = Field(pattern=booking.ID, description="The id of the item.")
    location_id: str = Field(pattern=booking.ID, description="The id of the location.")
    change: int = Field(
        ge=-booking.MOST,
        le=booking.MOST,
        description="What was counted less what is written: -3 when three are missing.",
    )
    reason: Literal["count", "damage", "loss", "found", "correction"] = Field(
        description="Why: a stock count, damage, loss, goods that were found, a wrong booking."
    )


def handle(ctx: Context) -> dict[str, Any]:
    """Change what lies there.

    Raises:
        Rejected: what `booking` says of the day, the item and the location.
    """
    move, wanted = ctx.target(Move), ctx.input
    booking.dated(ctx, move)
    item = booking.item(ctx, wanted.item_id)
    (location,) = booking.locations(ctx, {"/locationId": wanted.location_id})
    move.org_id = location.org_id
    return booking.facts(move, booking.change(ctx, item, location, wanted.change))


COMMAND = CommandDefinition(
    code="inventory.stock.adjust",
    display_name=Text(en="Adjust stock", zh="调整库存"),
    description=Text(
        en="Brings the written stock to what was counted, with the reason for the difference.",
        zh="按实盘数量修正账面库存，并注明差异原因。",
    ),
    agent_hint=Text(
        en="Use when a count found more or less than is written and the reason is known; "
        "inventory.stock.adjust with the opposite change takes it back.",
        zh="盘点结果与账面不符、且原因明确时使用；"
        "用相反的数量再次执行 inventory.stock.adjust 即可冲回。",
    ),
    risk=Risk.L2,  # the move, the level, the item and the location
    idempotent=False,
    reversible=True,
    undo="inventory.stock.adjust",
    undo_input={
        "itemId": "input.item_id",
        "locationId": "input.location_id",
        "change": "-input.change",
        "reason": "'correction'",
        "note": "record.number",
    },
    record=Move,
    operation=Operation.CREATE,
    input=AdjustStock,
    example={
        "itemId": "01JDXP5Y8GZ0000000000000AC",
        "locationId": "01JDXP5Y8GZ0000000000000AD",
        "change": -3,
        "reason": "count",
    },
    permission=MANAGE,
    related=("stock",),
    rules=booking.NEVER_NEGATIVE.model_copy(
        update={
            "cross_field": (
                Rule(
                    expr="input.change != 0",
                    message=Text(
                        en="A change of nothing adjusts nothing.", zh="调整数量不能为零。"
                    ),
                    pointers=("/change",),
                ),
                Rule(
                    expr="!(input.reason in ['damage', 'loss']) || input.change < 0",
                    message=Text(
                        en="Damage and loss make it less.", zh="损坏和丢失只会使库存减少。"
                    ),
                    pointers=("/change", "/reason"),
                ),
                Rule(
                    expr="input.reason != 'found' || input.change > 0",
                    message=Text(
                        en="What was found makes it more.", zh="找到的货物只会使库存增加。"
                    ),
                    pointers=("/change", "/reason"),
                ),
                Rule(
                    expr="(input.change > -100 && input.change < 100) || input.note != ''",
                    message=Text(
                        en="From 100 units on, say in a note what happened.",
                        zh="差异达到 100 及以上时，请在备注中说明情况。",
                    ),
                    pointers=("/note",),
                ),
            )
        }
    ),
    set={"number": "next:MOV"},
    map={
        "item_id": "item_id",
        "location_id": "location_id",
        "change": "quantity",
        "reason": "reason",
        "note": "note",
    },
    computed={"kind": "'adjustment'"},
    handler=handle,
    roll_ups=booking.ROLL_UPS,
    events=("inventory.stock.adjusted",),
)
