"""`inventory.stock.list`: what lies where."""

from typing import Any

from pydantic import Field
from sqlmodel import col

from app.commands.context import Context
from app.commands.definition import CommandDefinition, Operation, Risk, Text
from app.packs.inventory import queries
from app.packs.inventory.booking import ID
from app.packs.inventory.models import Stock
from app.packs.inventory.rights import READ


class ListStock(queries.Listing):
    """Which levels."""

    item_id: str | None = Field(None, pattern=ID, description="Only those of the item of this id.")
    location_id: str | None = Field(
        None, pattern=ID, description="Only those at the location of this id."
    )
    below_minimum: bool = Field(
        False, description="Only those of which less is available than their minimum."
    )


def handle(ctx: Context) -> dict[str, Any]:
    """A page of stock levels, the oldest first."""
    wanted: ListStock = ctx.input
    available = col(Stock.on_hand) - col(Stock.reserved)
    return queries.listed(
        ctx.work.session,
        ctx.call.principal,
        Stock,
        wanted,
        queries.By(col(Stock.created_at)),
        queries.stock_facts,
        col(Stock.item_id) == wanted.item_id if wanted.item_id else True,
        col(Stock.location_id) == wanted.location_id if wanted.location_id else True,
        available < col(Stock.min_level) if wanted.below_minimum else True,
    )


COMMAND = CommandDefinition(
    code="inventory.stock.list",
    display_name=Text(en="List stock levels", zh="查询库存"),
    description=Text(
        en="What is on hand, reserved and available, by item and location.",
        zh="按物料和库位列出现存量、预留量和可用量。",
    ),
    agent_hint=Text(
        en="Use to answer what lies at a location, where an item lies, or what has fallen below "
        "its minimum, and to find the id that reserving needs; it changes nothing.",
        zh="需要回答库位上有什么、物料在哪里、哪些低于最低库存，或查找预留所需的 id 时使用；"
        "不会改变任何数据。",
    ),
    risk=Risk.L0,
    idempotent=True,
    reversible=True,
    record=Stock,
    operation=Operation.READ,
    input=ListStock,
    example={"belowMinimum": True},
    permission=READ,
    handler=handle,
)
