"""`inventory.order.list`: what is on its way, and what was."""

from typing import Any, Literal

from pydantic import Field
from sqlmodel import col

from app.commands.context import Context
from app.commands.definition import CommandDefinition, Operation, Risk, Text
from app.packs.inventory import queries
from app.packs.inventory.booking import ID
from app.packs.inventory.models import Order
from app.packs.inventory.rights import READ


class ListOrders(queries.Listing):
    """Which orders."""

    state: Literal["draft", "ordered", "received", "cancelled", ""] = Field(
        "", description="Only orders in this state; empty for all."
    )
    item_id: str | None = Field(None, pattern=ID, description="Only those of the item of this id.")
    text: str = Field(
        "", max_length=100, description="Part of the number or the supplier; all if empty."
    )


def handle(ctx: Context) -> dict[str, Any]:
    """A page of orders, the newest first."""
    wanted: ListOrders = ctx.input
    return queries.listed(
        ctx.work.session,
        ctx.call.principal,
        Order,
        wanted,
        queries.By(col(Order.created_at), is_descending=True),
        queries.order_facts,
        col(Order.state) == wanted.state if wanted.state else True,
        col(Order.item_id) == wanted.item_id if wanted.item_id else True,
        queries.says(wanted.text, col(Order.number), col(Order.supplier)) if wanted.text else True,
    )


COMMAND = CommandDefinition(
    code="inventory.order.list",
    display_name=Text(en="List purchase orders", zh="查询采购单"),
    description=Text(
        en="Purchase orders in every state, the newest first.",
        zh="按时间倒序列出各状态的采购单。",
    ),
    agent_hint=Text(
        en="Use to see what is drafted, ordered or received, or to find the id of an order by its "
        "number or supplier; it changes nothing.",
        zh="需要了解哪些采购单在起草、已下单或已收货，或按单号、供应商查找 id 时使用；"
        "不会改变任何数据。",
    ),
    risk=Risk.L0,
    idempotent=True,
    reversible=True,
    record=Order,
    operation=Operation.READ,
    input=ListOrders,
    example={"state": "ordered"},
    permission=READ,
    handler=handle,
)
