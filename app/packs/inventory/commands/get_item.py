"""`inventory.item.get`: one item, and where it lies."""

from typing import Any

from sqlmodel import col, select

from app.access import scope
from app.commands.context import Context
from app.commands.definition import CommandDefinition, Input, Operation, Risk, Text
from app.packs.inventory import queries
from app.packs.inventory.models import Item, Location, Stock
from app.packs.inventory.rights import READ

MOST_LOCATIONS = 200


class GetItem(Input):
    """The item is all there is to say."""


def handle(ctx: Context) -> dict[str, Any]:
    """The item with its stock at every location that the caller may see."""
    item = ctx.target(Item)
    rows = ctx.work.session.exec(
        select(Stock, Location.code)
        .join(
            Location,
            (col(Location.tenant_id) == col(Stock.tenant_id))
            & (col(Location.id) == col(Stock.location_id)),
        )
        .where(
            scope.within(ctx.call.principal, READ, Stock),
            scope.within(ctx.call.principal, READ, Location),
            col(Stock.item_id) == item.id,
        )
        .order_by(col(Location.code))
        .limit(MOST_LOCATIONS)
    ).all()
    return {
        "item": queries.item_facts(item),
        "stock": [{**queries.stock_facts(stock), "locationCode": code} for stock, code in rows],
    }


COMMAND = CommandDefinition(
    code="inventory.item.get",
    display_name=Text(en="Look at an item", zh="查看物料"),
    description=Text(
        en="One item with what is on hand, reserved and available at each location.",
        zh="查看一种物料在各库位的现存量、预留量和可用量。",
    ),
    agent_hint=Text(
        en="Use to answer how much of one item there is, where it lies and how much of it is still "
        "free, and before anything is booked; it changes nothing.",
        zh="需要回答某种物料有多少、在哪里、还有多少可用，或在记账之前，使用它；不会改变任何数据。",
    ),
    risk=Risk.L0,
    idempotent=True,
    reversible=True,
    record=Item,
    operation=Operation.READ,
    targeted=True,
    input=GetItem,
    example={},
    permission=READ,
    handler=handle,
)
