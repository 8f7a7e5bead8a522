"""`inventory.order.cancel`: the supplier hears that we do not want it any more."""

from pydantic import Field

from app.commands.definition import (
    CommandDefinition,
    Input,
    Operation,
    Risk,
    Text,
    Told,
    Transition,
)
from app.packs.inventory.models import CANCELLED, ORDERED, Order
from app.packs.inventory.rights import PLACE


class CancelOrder(Input):
    """Why."""

    reason: str = Field(min_length=1, max_length=500, description="Why; the supplier reads it.")


COMMAND = CommandDefinition(
    code="inventory.order.cancel",
    display_name=Text(en="Cancel purchase order", zh="撤销采购单"),
    description=Text(
        en="Tells the supplier that an order is called off, and closes it.",
        zh="通知供应商撤单，并关闭采购单。",
    ),
    agent_hint=Text(
        en="Use when an order was placed, nothing of it has arrived and it is not wanted any more; "
        "the supplier is told and nothing brings it back, so a person confirms.",
        zh="已下单、尚未到货且不再需要时使用；会通知供应商且无法恢复，因此需要人工确认。",
    ),
    risk=Risk.L3,  # a webhook to the supplier
    idempotent=False,
    reversible=False,
    record=Order,
    operation=Operation.TRANSITION,
    input=CancelOrder,
    example={"reason": "We found the goods in hall B."},
    permission=PLACE,
    transition=Transition(from_=(ORDERED,), to=CANCELLED),
    events=("inventory.order.cancelled",),
    webhooks=(
        Told(
            type="inventory.order.cancelled",
            data={
                "orderId": "record.id",
                "number": "record.number",
                "supplier": "record.supplier",
                "reason": "input.reason",
            },
        ),
    ),
    tags=("money",),
)
