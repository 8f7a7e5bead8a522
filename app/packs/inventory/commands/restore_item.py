"""`inventory.item.restore`: a retired item comes back."""

from app.commands.definition import CommandDefinition, Input, Operation, Risk, Text, Transition
from app.packs.inventory.models import ACTIVE, RETIRED, Item
from app.packs.inventory.rights import ITEMS


class RestoreItem(Input):
    """The item is all there is to say."""


COMMAND = CommandDefinition(
    code="inventory.item.restore",
    display_name=Text(en="Restore item", zh="恢复物料"),
    description=Text(
        en="Takes a retired item into use again, under the SKU it had.",
        zh="以原有 SKU 重新启用已停用的物料。",
    ),
    agent_hint=Text(
        en="Use when a retired item is to be kept in stock again; inventory.item.retire takes it "
        "out of use as before.",
        zh="需要重新备货已停用的物料时使用；inventory.item.retire 可再次停用。",
    ),
    risk=Risk.L1,
    idempotent=False,
    reversible=True,
    undo="inventory.item.retire",
    record=Item,
    operation=Operation.TRANSITION,
    input=RestoreItem,
    example={},
    permission=ITEMS,
    transition=Transition(from_=(RETIRED,), to=ACTIVE),
    events=("inventory.item.restored",),
)
