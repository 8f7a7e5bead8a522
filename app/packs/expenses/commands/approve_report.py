"""`expense.report.approve`: promise the money, as far as the month's budget goes."""

from typing import Any

from app.commands.context import Context
from app.commands.definition import (
    CommandDefinition,
    Input,
    Operation,
    Risk,
    Rules,
    SodRule,
    Text,
    Transition,
)
from app.packs.expenses import queries
from app.packs.expenses.models import Report
from app.packs.expenses.rules import (
    BUDGET_SUMS,
    HAS_A_LINE,
    HAS_RECEIPTS,
    NOT_OWN,
    SAME_TOTAL,
    WITHIN_BUDGET,
)


class ApproveReport(Input):
    """Nothing besides the report's id."""


def handle(ctx: Context) -> dict[str, Any]:
    """Count the report in a budget that was set only after it was submitted."""
    report = ctx.target(Report)
    if report.budget_id is None:
        report.budget_id = queries.budget_of(ctx.work.session, report)
    return {}


COMMAND = CommandDefinition(
    code="expense.report.approve",
    display_name=Text(en="Approve expense report", zh="批准报销单"),
    description=Text(
        en="Approves a submitted report of your organisation, within the month's budget.",
        zh="在当月预算范围内批准本组织及下级组织已提交的报销单。",
    ),
    agent_hint=Text(
        en="Use when the manager has looked at lines and receipts of somebody else's submitted "
        "report and agrees; until it is paid, expense.report.reopen takes the approval back.",
        zh="经理核对他人提交的明细和发票并同意后使用；付款之前，expense.report.reopen 可撤销批准。",
    ),
    risk=Risk.L2,  # the report and its budget
    idempotent=True,
    reversible=True,
    undo="expense.report.reopen",
    record=Report,
    operation=Operation.TRANSITION,
    input=ApproveReport,
    example={},
    permission="expense.report.approve",
    transition=Transition(from_=("submitted",), to="approved"),
    sod=(SodRule(conflicts_with="expense.report.submit", scope="same_record", mode="hard"),),
    related=("lines", "budget"),
    rules=Rules(
        asserts=(NOT_OWN, HAS_A_LINE, HAS_RECEIPTS),
        post_invariants=(SAME_TOTAL, WITHIN_BUDGET),
    ),
    set={"decided_at": "now", "decided_by": "user.id"},
    handler=handle,
    roll_ups=BUDGET_SUMS,
    events=("expense.report.approved",),
    tags=("money",),
)
