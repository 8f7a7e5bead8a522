"""`inventory.order.receive`: what was ordered has arrived."""

from pydantic import Field

from app.commands.definition import (
    CommandDefinition,
    Input,
    Operation,
    PostAction,
    Risk,
    Rule,
    Rules,
    Text,
    Transition,
)
from app.packs.inventory.booking import MOST
from app.packs.inventory.models import ORDERED, RECEIVED, Order
from app.packs.inventory.rights import ORDERS


class ReceiveOrder(Input):
    """How much of it came."""

    quantity: int = Field(
        ge=1, le=MOST, description="How many units came; what did not come is not owed any more."
    )
    note: str = Field("", max_length=500, description="The delivery note, or what was wrong.")


COMMAND = CommandDefinition(
    code="inventory.order.receive",
    display_name=Text(en="Receive purchase order", zh="采购收货"),
    description=Text(
        en="Closes an order that was delivered and books what came at its location.",
        zh="确认采购单到货，并把到货数量计入收货库位。",
    ),
    agent_hint=Text(
        en="Use when an ordered delivery has arrived and was counted; the stock is booked with it. "
        "inventory.receipt.reverse takes the receipt back.",
        zh="采购的货物已到并已清点时使用，库存会同时入账；inventory.receipt.reverse 可撤回收货。",
    ),
    risk=Risk.L2,  # the order, and all that receiving stock changes
    idempotent=False,
    reversible=True,
    undo="inventory.receipt.reverse",
    record=Order,
    operation=Operation.TRANSITION,
    input=ReceiveOrder,
    example={"quantity": 40, "note": "Delivery note 4711"},
    permission=ORDERS,
    transition=Transition(from_=(ORDERED,), to=RECEIVED),
    rules=Rules(
        cross_field=(
            Rule(
                expr="input.quantity <= record.quantity",
                message=Text(
                    en="More came than was ordered. Receive the rest as stock, or send it back.",
                    zh="到货数量超过采购数量。多出部分请单独入库或退回。",
                ),
                pointers=("/quantity",),
            ),
            Rule(
                expr="input.quantity == record.quantity || input.note != ''",
                message=Text(
                    en="Less came than was ordered: say why in a note.",
                    zh="到货数量少于采购数量，请在备注中说明原因。",
                ),
                pointers=("/note",),
            ),
        ),
    ),
    set={"received_at": "now"},
    map={"quantity": "received_quantity"},
    post_actions=(
        PostAction(
            code="inventory.stock.receive",
            input={
                "itemId": "record.item_id",
                "locationId": "record.location_id",
                "quantity": "record.received_quantity",
                "orderId": "record.id",
                "note": "input.note",
            },
        ),
    ),
    events=("inventory.order.received",),
)
