"""`expense.report.reopen`: take a decision back, as long as nothing was paid."""

from typing import Any

from app.commands.context import Context
from app.commands.definition import (
    CommandDefinition,
    Input,
    Operation,
    Risk,
    Rules,
    Text,
    Transition,
)
from app.packs.expenses.models import Report
from app.packs.expenses.rules import (
    BUDGET_SUMS,
    HAS_A_LINE,
    HAS_RECEIPTS,
    NOT_OWN,
    SAME_TOTAL,
)


class ReopenReport(Input):
    """Nothing besides the report's id."""


def handle(ctx: Context) -> dict[str, Any]:
    """Leave nothing of the decision."""
    report = ctx.target(Report)
    report.decided_by, report.decided_at, report.reason = None, None, ""
    return {}


COMMAND = CommandDefinition(
    code="expense.report.reopen",
    display_name=Text(en="Reopen expense report", zh="重新审批报销单"),
    description=Text(
        en="Takes the decision on a report back: it is submitted again and waits for its approver.",
        zh="撤销对报销单的审批决定，使其恢复为待审批状态。",
    ),
    agent_hint=Text(
        en="Use when an approved, unpaid report or a rejected one was decided by mistake; "
        "expense.report.approve decides it again.",
        zh="已批准未付款或被退回的报销单审批有误时使用；expense.report.approve 可以再次批准。",
    ),
    risk=Risk.L2,  # the report and its budget
    idempotent=True,
    reversible=True,
    undo="expense.report.approve",
    undo_when="before.state == 'approved'",  # to approve what was rejected takes nothing back
    record=Report,
    operation=Operation.TRANSITION,
    input=ReopenReport,
    example={},
    permission="expense.report.approve",
    transition=Transition(from_=("approved", "rejected"), to="submitted"),
    related=("lines",),
    rules=Rules(
        # the owner may have changed a rejected report since
        asserts=(NOT_OWN, HAS_A_LINE, HAS_RECEIPTS),
        post_invariants=(SAME_TOTAL,),
    ),
    handler=handle,
    roll_ups=BUDGET_SUMS,
    events=("expense.report.reopened",),
)
