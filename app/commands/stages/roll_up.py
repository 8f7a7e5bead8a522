"""Stage `roll_up`: parents' sums and counts, taken anew from the rows that count.

The parent is locked first, so that two calls under it are one after the other and no sum is lost.
"""

from functools import cache
from typing import Any

from sqlalchemy import Select, bindparam, func
from sqlalchemy import select as sql_select
from sqlmodel import col

from app.commands import registry
from app.commands.context import Context
from app.commands.definition import RollUp
from app.commands.errors import Rejected
from app.commands.governed import GovernedRecord


def run(ctx: Context) -> None:
    """Bring every parent of a row that was touched up to date.

    Raises:
        Rejected: `roll_up_failed`: a parent is missing; `version_conflict`.
    """
    for rule in ctx.command.roll_ups:
        child = registry.record_type(_child_of(rule))
        for parent_id in _parents(ctx, rule, child):
            _bring_up_to_date(ctx, rule, child, parent_id)
    if ctx.command.roll_ups:
        ctx.records.flush()


def _child_of(rule: RollUp) -> str:
    return rule.sum_of.rpartition(".")[0] if rule.sum_of else str(rule.count_of)


def _parents(ctx: Context, rule: RollUp, child: type[GovernedRecord]) -> list[str]:
    touched: set[str] = set()
    for row in ctx.records.held(child):
        found = ctx.records.found(row) or {}
        touched |= {parent for parent in (getattr(row, rule.via), found.get(rule.via)) if parent}
    return sorted(touched)  # one order for everybody: no two calls wait for each other


def _bring_up_to_date(
    ctx: Context, rule: RollUp, child: type[GovernedRecord], parent_id: str
) -> None:
    parent_type, _, column = rule.into.rpartition(".")
    parent = ctx.records.get(registry.record_type(parent_type), parent_id, lock=True)
    if parent is None:
        raise Rejected("roll_up_failed", into=rule.into)
    ctx.records.flush()
    setattr(parent, column, _measure(ctx, rule, child, parent_id))
    ctx.records.mark_rolled_up(parent, column)


def _measure(ctx: Context, rule: RollUp, child: type[GovernedRecord], parent_id: str) -> Any:
    column = rule.sum_of.rpartition(".")[2] if rule.sum_of else None
    query = _measuring(child, rule.via, column, tuple(rule.where.items()))
    of = {"tenant_id": ctx.call.principal.tenant_id, "parent_id": parent_id}
    return int(ctx.work.connection.execute(query, of).scalar_one())


@cache  # building a statement costs more than asking it
def _measuring(
    child: type[GovernedRecord],
    via: str,
    column: str | None,
    where: tuple[tuple[str, tuple[str, ...]], ...],
) -> Select[Any]:
    measured = func.coalesce(func.sum(getattr(child, column)), 0) if column else func.count()
    return (
        sql_select(measured)
        .select_from(child)
        .where(
            col(child.tenant_id) == bindparam("tenant_id"),
            getattr(child, via) == bindparam("parent_id"),
            *(getattr(child, name).in_(values) for name, values in where),
        )
    )
