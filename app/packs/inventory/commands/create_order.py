"""`inventory.order.create`: draft what to order from a supplier."""

from typing import Any, Literal

from pydantic import Field

from app.commands.context import Context
from app.commands.definition import CommandDefinition, Input, Operation, Risk, Text
from app.packs.inventory import booking
from app.packs.inventory.models import Order
from app.packs.inventory.rights import ORDERS

DEAREST = 10_000_000_00  # minor units of one piece


class CreateOrder(Input):
    """What to order, from whom, and what it costs."""

    supplier: str = Field(min_length=1, max_length=200, description="The supplier's name.")
    item_id: str = Field(pattern=booking.ID, description="The id of the item.")
    location_id: str = Field(
        pattern=booking.ID, description="The id of the location it is to be delivered to."
    )
    quantity: int = Field(ge=1, le=booking.MOST, description="How many units.")
    unit_price_minor: int = Field(
        ge=0, le=DEAREST, description="The price of one unit, in minor units (fen, cents)."
    )
    currency: Literal["CNY", "EUR", "USD"] = Field("CNY", description="The currency of the price.")
    note: str = Field("", max_length=500, description="What the supplier should know.")


def handle(ctx: Context) -> dict[str, Any]:
    """Let it name only what can be received there.

    Raises:
        Rejected: what `booking` says of the item and the location.
    """
    order, wanted = ctx.target(Order), ctx.input
    booking.item(ctx, wanted.item_id)
    (location,) = booking.locations(ctx, {"/locationId": wanted.location_id}, ORDERS)
    order.org_id = location.org_id
    return {"orderId": order.id, "number": order.number, "totalMinor": order.total_minor}


COMMAND = CommandDefinition(
    code="inventory.order.create",
    display_name=Text(en="Draft purchase order", zh="起草采购单"),
    description=Text(
        en="Drafts an order of one item from a supplier; the supplier hears nothing yet.",
        zh="起草一张向供应商采购某种物料的采购单，此时供应商不会收到通知。",
    ),
    agent_hint=Text(
        en="Use when somebody wants to buy an item and said from whom, how many and at what price; "
        "inventory.order.discard drops the draft.",
        zh="有人要采购某种物料，并已说明供应商、数量和价格时使用；"
        "inventory.order.discard 可丢弃草稿。",
    ),
    risk=Risk.L1,
    idempotent=False,
    reversible=True,
    undo="inventory.order.discard",
    record=Order,
    operation=Operation.CREATE,
    input=CreateOrder,
    example={
        "supplier": "Suzhou Paper Co.",
        "itemId": "01JDXP5Y8GZ0000000000000AC",
        "locationId": "01JDXP5Y8GZ0000000000000AD",
        "quantity": 40,
        "unitPriceMinor": 12900,
        "currency": "CNY",
    },
    permission=ORDERS,
    set={"number": "next:PO"},
    map={
        "supplier": "supplier",
        "item_id": "item_id",
        "location_id": "location_id",
        "quantity": "quantity",
        "unit_price_minor": "unit_price_minor",
        "currency": "currency",
        "note": "note",
    },
    computed={"total_minor": "input.quantity * input.unit_price_minor"},
    handler=handle,
    events=("inventory.order.created",),
    tags=("money",),
)
