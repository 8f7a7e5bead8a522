"""`inventory.location.close`: a place where nothing is put any more."""

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
from app.packs.inventory.models import CLOSED, OPEN, Location
from app.packs.inventory.rights import ITEMS


class CloseLocation(Input):
    """The location is all there is to say."""


COMMAND = CommandDefinition(
    code="inventory.location.close",
    display_name=Text(en="Close location", zh="关闭库位"),
    description=Text(
        en="Takes an empty location out of use; nothing is booked there any more.",
        zh="关闭空库位，之后不能再对其记账。",
    ),
    agent_hint=Text(
        en="Use when a location is empty and will not be used any more; inventory.location.reopen "
        "brings it back.",
        zh="库位已空且不再使用时使用；inventory.location.reopen 可重新启用。",
    ),
    risk=Risk.L1,
    idempotent=False,
    reversible=True,
    undo="inventory.location.reopen",
    record=Location,
    operation=Operation.TRANSITION,
    input=CloseLocation,
    example={},
    permission=ITEMS,
    transition=Transition(from_=(OPEN,), to=CLOSED),
    rules=Rules(
        asserts=(
            Rule(
                expr="record.on_hand == 0",
                message=Text(
                    en="Something still lies there. Move or issue it first.",
                    zh="该库位仍有库存，请先移库或出库。",
                ),
            ),
        ),
    ),
    events=("inventory.location.closed",),
)
