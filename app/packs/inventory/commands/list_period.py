"""`inventory.period.list`: which months are closed."""

from typing import Any

from sqlmodel import col

from app.commands.context import Context
from app.commands.definition import CommandDefinition, Operation, Risk, Text
from app.packs.inventory import queries
from app.packs.inventory.models import Period
from app.packs.inventory.rights import READ


class ListPeriods(queries.Listing):
    """How many."""


def handle(ctx: Context) -> dict[str, Any]:
    """A page of closed periods, the latest first."""
    by = queries.By(col(Period.period), is_descending=True)
    return queries.listed(
        ctx.work.session, ctx.call.principal, Period, ctx.input, by, queries.period_facts
    )


COMMAND = CommandDefinition(
    code="inventory.period.list",
    display_name=Text(en="List closed periods", zh="查询已关闭的期间"),
    description=Text(
        en="The months in which nothing is booked any more, the latest first.",
        zh="按时间倒序列出不能再记账的月份。",
    ),
    agent_hint=Text(
        en="Use before something is booked for an earlier month, to see whether that month is "
        "still open; it changes nothing.",
        zh="要补记以前月份的流水之前，用它查看该月是否仍可记账；不会改变任何数据。",
    ),
    risk=Risk.L0,
    idempotent=True,
    reversible=True,
    record=Period,
    operation=Operation.READ,
    input=ListPeriods,
    example={},
    permission=READ,
    handler=handle,
)
