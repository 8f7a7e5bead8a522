"""`inventory.stock.reserve`: keep some of it for somebody."""

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


class ReserveStock(Input):
    """How much, and for what."""

    quantity: int = Field(ge=1, le=MOST, description="How many units are kept.")
    purpose: str = Field("", max_length=200, description="For whom or for what they are kept.")


COMMAND = CommandDefinition(
    code="inventory.stock.reserve",
    display_name=Text(en="Reserve stock", zh="预留库存"),
    description=Text(
        en="Keeps some of what lies at a location, so that nobody else issues or moves it.",
        zh="为指定用途预留某个库位的部分库存，他人不能再出库或移库。",
    ),
    agent_hint=Text(
        en="Use when units at one location are promised to somebody and that many are available "
        "there (target: the id in inventory.stock.list); inventory.stock.release lets them go.",
        zh="某库位的物料已答应给某人、且可用量足够时使用（目标为 inventory.stock.list 中的 id）；"
        "inventory.stock.release 可解除预留。",
    ),
    risk=Risk.L1,
    idempotent=False,
    reversible=True,
    undo="inventory.stock.release",
    undo_input={"quantity": "input.quantity"},
    record=Stock,
    operation=Operation.UPDATE,
    input=ReserveStock,
    example={"quantity": 10, "purpose": "Sales order 118"},
    permission=MANAGE,
    rules=Rules(
        asserts=(
            Rule(
                expr="record.on_hand - record.reserved >= input.quantity",
                message=Text(
                    en="There are not that many left that nobody has reserved.",
                    zh="未被预留的数量不足。",
                ),
                pointers=("/quantity",),
            ),
        ),
        post_invariants=(
            Rule(
                expr="record.reserved <= record.on_hand && record.on_hand == before.on_hand",
                message=Text(
                    en="What is reserved is on hand, and reserving moves nothing.",
                    zh="预留量不得超过现存量，且预留不改变现存量。",
                ),
            ),
        ),
    ),
    computed={"reserved": "record.reserved + input.quantity"},
    events=(
        Told(
            type="inventory.stock.reserved",
            data={"quantity": "input.quantity", "purpose": "input.purpose"},
        ),
    ),
)
