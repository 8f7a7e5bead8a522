"""`inventory.receipt.reverse`: an order was received by mistake."""

from pydantic import Field

from app.commands.definition import (
    CommandDefinition,
    Input,
    Operation,
    PostAction,
    Risk,
    Text,
    Transition,
)
from app.packs.inventory.models import ORDERED, RECEIVED, Order
from app.packs.inventory.rights import ORDERS


class ReverseReceipt(Input):
    """Why."""

    note: str = Field("", max_length=500, description="What was wrong with the receipt.")


COMMAND = CommandDefinition(
    code="inventory.receipt.reverse",
    display_name=Text(en="Reverse receipt", zh="撤回收货"),
    description=Text(
        en="Opens a received order again and takes what it brought out of stock.",
        zh="重新打开已收货的采购单，并从库存中冲回收货数量。",
    ),
    agent_hint=Text(
        en="Use when an order was received by mistake and what it brought still lies there "
        "unreserved; inventory.order.receive books it again.",
        zh="误操作收货、且货物仍在库位且未被预留时使用；inventory.order.receive 可重新收货。",
    ),
    risk=Risk.L2,  # the order, and all that issuing stock changes
    idempotent=False,
    reversible=True,
    undo="inventory.order.receive",
    undo_input={"quantity": "before.received_quantity", "note": "input.note"},
    record=Order,
    operation=Operation.TRANSITION,
    input=ReverseReceipt,
    example={"note": "It was the delivery of another order."},
    permission=ORDERS,
    transition=Transition(from_=(RECEIVED,), to=ORDERED),
    computed={"received_quantity": "0", "received_at": "null"},
    post_actions=(
        PostAction(
            code="inventory.stock.issue",
            input={
                "itemId": "record.item_id",
                "locationId": "record.location_id",
                "quantity": "before.received_quantity",
                "orderId": "record.id",
                "note": "input.note",
            },
        ),
    ),
    events=("inventory.receipt.reversed",),
)
