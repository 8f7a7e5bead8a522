"""`inventory.stock.release`: what was kept is free again."""

from pydantic import Field

from app.commands.definition import (
    CommandDefinition,
    Input,
    Operation,
    Risk,
    Rule,
    Rules,
    Text,
    Told,
)
from app.packs.inventory.booking import MOST
from app.packs.inventory.models import Stock
from app.packs.inventory.rights import MANAGE


class ReleaseStock(Input):
    """How much."""

    quantity: int = Field(ge=1, le=MOST, description="How many units are let go.")
    purpose: str = Field("", max_length=200, description="Why they are needed no more.")


COMMAND = CommandDefinition(
    code="inventory.stock.release",
    display_name=Text(en="Release stock", zh="解除预留"),
    description=Text(
        en="Lets go of reserved units, so that they can be issued, moved or reserved anew.",
        zh="解除预留，使这些库存可以重新出库、移库或预留。",
    ),
    agent_hint=Text(
        en="Use when reserved units are needed no more, or just before they are issued; "
        "inventory.stock.reserve keeps the same quantity again.",
        zh="预留的物料不再需要，或即将出库时使用；inventory.stock.reserve 可重新预留相同数量。",
    ),
    risk=Risk.L1,
    idempotent=False,
    reversible=True,
    undo="inventory.stock.reserve",
    undo_input={"quantity": "input.quantity"},
    record=Stock,
    operation=Operation.UPDATE,
    input=ReleaseStock,
    example={"quantity": 10, "purpose": "Sales order 118 was called off"},
    permission=MANAGE,
    rules=Rules(
        asserts=(
            Rule(
                expr="record.reserved >= input.quantity",
                message=Text(en="Not that many are reserved.", zh="预留量没有这么多。"),
                pointers=("/quantity",),
            ),
        ),
        post_invariants=(
            Rule(
                expr="record.reserved >= 0 && record.on_hand == before.on_hand",
                message=Text(
                    en="Letting go of a reservation moves nothing.",
                    zh="解除预留不改变现存量。",
                ),
            ),
        ),
    ),
    computed={"reserved": "record.reserved - input.quantity"},
    events=(
        Told(
            type="inventory.stock.released",
            data={"quantity": "input.quantity", "purpose": "input.purpose"},
        ),
    ),
)
