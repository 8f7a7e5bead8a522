"""`expense.report.get`: one report with its lines, receipts, payment and budget."""

from typing import Any

from app.commands.context import Context
from app.commands.definition import CommandDefinition, Input, Operation, Risk, Text
from app.packs.expenses import queries
from app.packs.expenses.answers import LineRow, PaymentRow, ReceiptRow, ReportDetails
from app.packs.expenses.budgets import budget_row
from app.packs.expenses.models import Budget, Report


class GetReport(Input):
    """Nothing besides the report's id."""


def handle(ctx: Context) -> dict[str, Any]:
    """Collect what belongs to the report; whoever reaches it may read that too."""
    report = ctx.target(Report)
    people: set[str | None] = {report.owner_id, report.approver_id}
    names = queries.names_of(ctx.work.session, report.tenant_id, people)
    budget = ctx.records.get(Budget, report.budget_id)
    payments = ctx.related("payments")
    return ReportDetails.of(
        report,
        owner_name=names.get(report.owner_id, ""),
        approver_name=names.get(report.approver_id or "", ""),
        lines=[LineRow.of(line) for line in ctx.related("lines")],
        receipts=[ReceiptRow.of(receipt) for receipt in ctx.related("receipts")],
        payment=PaymentRow.of(payments[0]) if payments else None,
        budget=budget_row(budget) if budget else None,
    ).data()


COMMAND = CommandDefinition(
    code="expense.report.get",
    display_name=Text(en="Show expense report", zh="查看报销单"),
    description=Text(
        en="Shows one expense report with its lines, receipts, payment and the budget it uses.",
        zh="查看一张报销单的明细、发票、付款情况以及占用的预算。",
    ),
    agent_hint=Text(
        en="Use before changing, submitting or deciding a report, to read its state, version, "
        "amounts and missing receipts.",
        zh="在修改、提交或审批报销单之前使用，先核对其状态、版本、金额和缺少的发票。",
    ),
    risk=Risk.L0,
    idempotent=True,
    reversible=True,
    record=Report,
    operation=Operation.READ,
    targeted=True,
    input=GetReport,
    output=ReportDetails,
    example={},
    permission="expense.report.read",
    related=("lines", "receipts", "payments"),
    tags=("money", "personal"),
    handler=handle,
)
