"""`inventory.item.create`: something new that can be kept in stock."""

from typing import Any

from pydantic import Field

from app.commands.context import Context
from app.commands.definition import CommandDefinition, Input, Operation, Risk, Rule, Rules, Text
from app.packs.inventory.models import Item
from app.packs.inventory.rights import ITEMS


class CreateItem(Input):
    """What is known of it."""

    sku: str = Field(
        min_length=1,
        max_length=40,
        pattern=r"^[A-Z0-9][A-Z0-9._-]*$",
        description="Its stock keeping unit: capital letters, digits, dot, dash, underscore.",
    )
    name: str = Field(min_length=1, max_length=200, description="What people call it.")
    unit: str = Field(
        min_length=1, max_length=20, description="What one of it is: a piece, a box, a kilogram."
    )
    description: str = Field("", max_length=500, description="What else helps to tell it apart.")


def handle(ctx: Context) -> dict[str, Any]:
    """Answer with the id, under which it can be booked at once."""
    item = ctx.target(Item)
    return {"itemId": item.id, "sku": item.sku}


COMMAND = CommandDefinition(
    code="inventory.item.create",
    display_name=Text(en="Create item", zh="新建物料"),
    description=Text(
        en="Adds something that can be kept in stock; none of it is on hand yet.",
        zh="新增一种可以入库的物料，此时现存量为零。",
    ),
    agent_hint=Text(
        en="Use when something is to be received for the first time and inventory.item.list finds "
        "no such SKU; inventory.item.retire takes it out of use again.",
        zh="首次收到某种货物、且 inventory.item.list 查不到该 SKU 时使用；"
        "inventory.item.retire 可将其停用。",
    ),
    risk=Risk.L1,
    idempotent=False,
    reversible=True,
    undo="inventory.item.retire",
    record=Item,
    operation=Operation.CREATE,
    input=CreateItem,
    example={"sku": "PAPER-A4-80", "name": "Copy paper A4, 80 g", "unit": "box"},
    permission=ITEMS,
    rules=Rules(
        cross_field=(
            Rule(
                expr="input.name != input.sku",
                message=Text(
                    en="The name says in words what the SKU stands for.",
                    zh="名称应当用文字说明，不能与 SKU 相同。",
                ),
                pointers=("/name",),
            ),
        ),
    ),
    map={"sku": "sku", "name": "name", "unit": "unit", "description": "description"},
    handler=handle,
    events=("inventory.item.created",),
)
