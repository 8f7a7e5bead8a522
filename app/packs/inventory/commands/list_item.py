"""`inventory.item.list`: which items there are."""

from typing import Any, Literal

from pydantic import Field
from sqlmodel import col

from app.commands.context import Context
from app.commands.definition import CommandDefinition, Operation, Risk, Text
from app.packs.inventory import queries
from app.packs.inventory.models import Item
from app.packs.inventory.rights import READ


class ListItems(queries.Listing):
    """Which ones."""

    text: str = Field("", max_length=100, description="Part of the SKU or the name; all if empty.")
    state: Literal["active", "retired", ""] = Field(
        "active", description="Only items in this state; empty for all."
    )


def handle(ctx: Context) -> dict[str, Any]:
    """A page of items, by SKU."""
    wanted: ListItems = ctx.input
    return queries.listed(
        ctx.work.session,
        ctx.call.principal,
        Item,
        wanted,
        queries.By(col(Item.sku)),
        queries.item_facts,
        queries.says(wanted.text, col(Item.sku), col(Item.name)) if wanted.text else True,
        col(Item.state) == wanted.state if wanted.state else True,
    )


COMMAND = CommandDefinition(
    code="inventory.item.list",
    display_name=Text(en="List items", zh="查询物料"),
    description=Text(
        en="Items by SKU, with how much of each is on hand in all locations.",
        zh="按 SKU 列出物料及其在所有库位的现存量合计。",
    ),
    agent_hint=Text(
        en="Use first, to find the id of an item that somebody names by its SKU or a part of its "
        "name; it changes nothing.",
        zh="当有人用 SKU 或名称的一部分提到物料时，先用它查到物料的 id；不会改变任何数据。",
    ),
    risk=Risk.L0,
    idempotent=True,
    reversible=True,
    record=Item,
    operation=Operation.READ,
    input=ListItems,
    example={"text": "A4"},
    permission=READ,
    handler=handle,
)
