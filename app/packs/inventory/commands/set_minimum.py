"""`inventory.stock.set_minimum`: from when on somebody should order."""

from pydantic import Field

from app.commands.definition import CommandDefinition, Input, Operation, Risk, Text
from app.packs.inventory.booking import MOST
from app.packs.inventory.models import Stock
from app.packs.inventory.rights import ITEMS


class SetMinimum(Input):
    """The new minimum."""

    min_level: int = Field(
        ge=0, le=MOST, description="How many units should be available there; 0 for no minimum."
    )


COMMAND = CommandDefinition(
    code="inventory.stock.set_minimum",
    display_name=Text(en="Set minimum stock", zh="设置最低库存"),
    description=Text(
        en="Says how much of an item should be available at a location at least.",
        zh="设定某物料在某库位的最低可用量。",
    ),
    agent_hint=Text(
        en="Use when somebody decides how much has to be available at a location; "
        "inventory.stock.set_minimum with the former number takes it back.",
        zh="有人决定某库位的最低备货量时使用；"
        "用原来的数值再次执行 inventory.stock.set_minimum 即可恢复。",
    ),
    risk=Risk.L1,
    idempotent=True,
    reversible=True,
    undo="inventory.stock.set_minimum",
    undo_input={"minLevel": "before.min_level"},
    record=Stock,
    operation=Operation.UPDATE,
    input=SetMinimum,
    example={"minLevel": 20},
    permission=ITEMS,
    map={"min_level": "min_level"},
)
