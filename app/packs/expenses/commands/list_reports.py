"""`expense.report.list`: the reports a caller may read, page by page."""

from typing import Any, Literal

from pydantic import Field

from app.commands.context import Context
from app.commands.definition import CommandDefinition, Input, Operation, Risk, Text
from app.packs.expenses import queries
from app.packs.expenses.answers import ReportRow, Reports
from app.packs.expenses.models import Report

State = Literal["", "draft", "submitted", "approved", "rejected", "paid", "voided"]


class ListReports(Input):
    """What the list is narrowed to; what is left out does not narrow it."""

    state: State = Field("", description="Only reports in this state.")
    owner_id: str = Field("", max_length=26, description="Only reports of this person, by id.")
    period: str = Field("", max_length=7, description="Only reports of this month: 2026-10.")
    q: str = Field("", max_length=200, description="Words of the title, or the number.")
    cursor: str = Field("", max_length=2_000, description="The place a page before named.")
    limit: int = Field(20, ge=1, le=100, description="How many reports at the most.")


def handle(ctx: Context) -> dict[str, Any]:
    """Find one page of them."""
    asked: ListReports = ctx.input
    session = ctx.work.session
    wanted = queries.Wanted(asked.state, asked.owner_id, asked.period, asked.q)
    page = queries.reports(session, ctx.call.principal, wanted, asked.cursor, asked.limit)
    owners: set[str | None] = {report.owner_id for report in page.rows}
    names = queries.names_of(session, ctx.call.principal.tenant_id, owners)
    return Reports(
        reports=[
            ReportRow.of(report, owner_name=names.get(report.owner_id, "")) for report in page.rows
        ],
        next_cursor=page.next,
    ).data()


COMMAND = CommandDefinition(
    code="expense.report.list",
    display_name=Text(en="List expense reports", zh="查询报销单列表"),
    description=Text(
        en="Shows the expense reports you may read, newest first, by state, person, month or word.",
        zh="按状态、人员、月份或关键词列出您有权查看的报销单，最新的在前。",
    ),
    agent_hint=Text(
        en="Use to find a report's id, or to see which reports wait, were rejected or were paid; "
        "then read one with expense.report.get.",
        zh="查找报销单，或了解哪些待审批、被退回、已付款时使用；详情用 expense.report.get 查看。",
    ),
    risk=Risk.L0,
    idempotent=True,
    reversible=True,
    record=Report,
    operation=Operation.READ,
    targeted=False,
    input=ListReports,
    output=Reports,
    example={"state": "submitted", "limit": 20},
    permission="expense.report.read",
    tags=("money", "personal"),
    handler=handle,
)
