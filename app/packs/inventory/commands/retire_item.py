"""`inventory.item.retire`: an item that is kept no more."""

from app.commands.definition import (
    CommandDefinition,
    Input,
    Operation,
    Risk,
    Rule,
    Rules,
    Text,
    Transition,
)
from app.packs.inventory.models import ACTIVE, RETIRED, Item
from app.packs.inventory.rights import ITEMS


class RetireItem(Input):
    """The item is all there is to say."""


COMMAND = CommandDefinition(
    code="inventory.item.retire",
    display_name=Text(en="Retire item", zh="停用物料"),
    description=Text(
        en="Takes an item out of use: it is found no more by default, and nothing is booked on it.",
        zh="停用物料：默认不再列出，也不能再对其记账。",
    ),
    agent_hint=Text(
        en="Use when an item will not be kept any more and none of it is on hand or ordered; "
        "inventory.item.restore brings it back.",
        zh="物料不再备货、且没有现存量和在途采购时使用；inventory.item.restore 可恢复。",
    ),
    risk=Risk.L1,
    idempotent=False,
    reversible=True,
    undo="inventory.item.restore",
    record=Item,
    operation=Operation.TRANSITION,
    input=RetireItem,
    example={},
    permission=ITEMS,
    transition=Transition(from_=(ACTIVE,), to=RETIRED),
    related=("orders",),
    rules=Rules(
        asserts=(
            Rule(
                expr="record.on_hand == 0",
                message=Text(
                    en="Some of it is still on hand. Issue or adjust that first.",
                    zh="该物料仍有库存，请先出库或调整。",
                ),
            ),
            Rule(
                expr="related.orders.all(each, each.state != 'ordered')",
                message=Text(
                    en="Some of it is ordered and has not arrived yet.",
                    zh="该物料还有尚未到货的采购单。",
                ),
            ),
        ),
    ),
    events=("inventory.item.retired",),
)
