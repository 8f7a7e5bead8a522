"""`inventory.order.discard`: a draft nobody wants any more."""

from app.commands.definition import CommandDefinition, Input, Operation, Risk, Text, Transition
from app.packs.inventory.models import CANCELLED, DRAFT, Order
from app.packs.inventory.rights import ORDERS


class DiscardOrder(Input):
    """The order is all there is to say."""


COMMAND = CommandDefinition(
    code="inventory.order.discard",
    display_name=Text(en="Discard draft order", zh="丢弃采购草稿"),
    description=Text(
        en="Cancels a drafted order before the supplier heard of it. It stays in the list.",
        zh="取消尚未发给供应商的采购草稿，记录仍保留在列表中。",
    ),
    agent_hint=Text(
        en="Use when a drafted order is not wanted any more and was not sent; nothing brings it "
        "back, so a person confirms.",
        zh="尚未发出的采购草稿不再需要时使用；无法恢复，因此需要人工确认。",
    ),
    risk=Risk.L1,
    idempotent=False,
    reversible=False,
    record=Order,
    operation=Operation.TRANSITION,
    input=DiscardOrder,
    example={},
    permission=ORDERS,
    transition=Transition(from_=(DRAFT,), to=CANCELLED),
    events=("inventory.order.discarded",),
)
