"""`inventory.location.reopen`: a closed location comes back."""

from app.commands.definition import CommandDefinition, Input, Operation, Risk, Text, Transition
from app.packs.inventory.models import CLOSED, OPEN, Location
from app.packs.inventory.rights import ITEMS


class ReopenLocation(Input):
    """The location is all there is to say."""


COMMAND = CommandDefinition(
    code="inventory.location.reopen",
    display_name=Text(en="Reopen location", zh="重新启用库位"),
    description=Text(
        en="Takes a closed location into use again, under the code it had.",
        zh="以原有编码重新启用已关闭的库位。",
    ),
    agent_hint=Text(
        en="Use when stock is to lie at a closed location again; inventory.location.close takes it "
        "out of use as before.",
        zh="需要在已关闭的库位重新存放物料时使用；inventory.location.close 可再次关闭。",
    ),
    risk=Risk.L1,
    idempotent=False,
    reversible=True,
    undo="inventory.location.close",
    record=Location,
    operation=Operation.TRANSITION,
    input=ReopenLocation,
    example={},
    permission=ITEMS,
    transition=Transition(from_=(CLOSED,), to=OPEN),
    events=("inventory.location.reopened",),
)
