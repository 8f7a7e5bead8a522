"""`inventory.move.list`: what was booked."""

from typing import Any, Literal

from pydantic import Field
from sqlmodel import col

from app.commands.context import Context
from app.commands.definition import CommandDefinition, Operation, Risk, Text
from app.packs.inventory import queries
from app.packs.inventory.booking import ID
from app.packs.inventory.models import Move
from app.packs.inventory.rights import READ


class ListMoves(queries.Listing):
    """Which moves."""

    item_id: str | None = Field(None, pattern=ID, description="Only those of the item of this id.")
    location_id: str | None = Field(
        None, pattern=ID, description="Only those from or to the location of this id."
    )
    kind: Literal["receipt", "issue", "transfer", "adjustment", ""] = Field(
        "", description="Only moves of this kind; empty for all."
    )
    period: str = Field(
        "", pattern=r"^([0-9]{4}-[0-9]{2})?$", description="Only those of this month, as 2026-11."
    )


def handle(ctx: Context) -> dict[str, Any]:
    """A page of moves, the newest first."""
    wanted: ListMoves = ctx.input
    at = (col(Move.location_id) == wanted.location_id) | (
        col(Move.to_location_id) == wanted.location_id
    )
    return queries.listed(
        ctx.work.session,
        ctx.call.principal,
        Move,
        wanted,
        queries.By(col(Move.created_at), is_descending=True),
        queries.move_facts,
        col(Move.item_id) == wanted.item_id if wanted.item_id else True,
        at if wanted.location_id else True,
        col(Move.kind) == wanted.kind if wanted.kind else True,
        col(Move.period) == wanted.period if wanted.period else True,
    )


COMMAND = CommandDefinition(
    code="inventory.move.list",
    display_name=Text(en="List stock moves", zh="查询库存流水"),
    description=Text(
        en="What was received, issued, moved and adjusted, the newest first.",
        zh="按时间倒序列出入库、出库、移库和调整记录。",
    ),
    agent_hint=Text(
        en="Use to explain how a stock level came about: who booked what, when and why; it changes "
        "nothing.",
        zh="需要说明某个库存数量如何形成（谁在何时因何记账）时使用；不会改变任何数据。",
    ),
    risk=Risk.L0,
    idempotent=True,
    reversible=True,
    record=Move,
    operation=Operation.READ,
    input=ListMoves,
    example={"kind": "adjustment", "period": "2026-11"},
    permission=READ,
    handler=handle,
)
