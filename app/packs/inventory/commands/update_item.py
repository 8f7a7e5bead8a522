"""`inventory.item.update`: call an item by a better name."""

from pydantic import Field

from app.commands.definition import CommandDefinition, Input, Operation, Risk, Rule, Rules, Text
from app.packs.inventory.models import Item
from app.packs.inventory.rights import ITEMS


class UpdateItem(Input):
    """How it reads afterwards; both are replaced."""

    name: str = Field(min_length=1, max_length=200, description="What people call it.")
    description: str = Field("", max_length=500, description="What else helps to tell it apart.")


COMMAND = CommandDefinition(
    code="inventory.item.update",
    display_name=Text(en="Change item", zh="修改物料"),
    description=Text(
        en="Replaces the name and the description of an item; SKU and unit stay.",
        zh="替换物料的名称和说明；SKU 和单位保持不变。",
    ),
    agent_hint=Text(
        en="Use when the name or the description of an item is wrong; inventory.item.update with "
        "the former texts takes it back.",
        zh="物料的名称或说明有误时使用；用原来的文字再次执行 inventory.item.update 即可恢复。",
    ),
    risk=Risk.L1,
    idempotent=True,
    reversible=True,
    undo="inventory.item.update",
    undo_input={"name": "before.name", "description": "before.description"},
    record=Item,
    operation=Operation.UPDATE,
    input=UpdateItem,
    example={"name": "Copy paper A4, 80 g, white", "description": "500 sheets a pack"},
    permission=ITEMS,
    rules=Rules(
        pre_invariants=(
            Rule(
                expr="record.state == 'active'",
                message=Text(
                    en="A retired item is restored before it is changed.",
                    zh="停用的物料须先恢复，才能修改。",
                ),
            ),
        ),
        post_invariants=(
            Rule(
                expr="record.on_hand == before.on_hand && record.unit == before.unit",
                message=Text(
                    en="A new name changes neither stock nor unit.",
                    zh="改名不会改变库存和单位。",
                ),
            ),
        ),
    ),
    map={"name": "name", "description": "description"},
    events=("inventory.item.updated",),
)
