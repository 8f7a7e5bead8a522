"""`inventory.order.get`: one order."""

from typing import Any

from app.commands.context import Context
from app.commands.definition import CommandDefinition, Input, Operation, Risk, Text
from app.packs.inventory import queries
from app.packs.inventory.models import Order
from app.packs.inventory.rights import READ


class GetOrder(Input):
    """The order is all there is to say."""


def handle(ctx: Context) -> dict[str, Any]:
    """The order, as it stands."""
    return {"order": queries.order_facts(ctx.target(Order))}


COMMAND = CommandDefinition(
    code="inventory.order.get",
    display_name=Text(en="Look at a purchase order", zh="查看采购单"),
    description=Text(
        en="One purchase order: supplier, item, quantity, price and state.",
        zh="查看一张采购单的供应商、物料、数量、价格和状态。",
    ),
    agent_hint=Text(
        en="Use before anything is done with an order, to see its state and amounts; it changes "
        "nothing.",
        zh="对采购单进行任何操作之前，先用它查看状态和金额；不会改变任何数据。",
    ),
    risk=Risk.L0,
    idempotent=True,
    reversible=True,
    record=Order,
    operation=Operation.READ,
    targeted=True,
    input=GetOrder,
    example={},
    permission=READ,
    handler=handle,
)
