"""`expense.report.reject`: give a report back to its owner, with a reason."""

from pydantic import Field

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
from app.packs.expenses.rules import BUDGET_SUMS, NOT_OWN, SAME_TOTAL


class RejectReport(Input):
    """Why it goes back."""

    reason: str = Field(
        min_length=1, max_length=500, description="What the owner has to correct, in a sentence."
    )


COMMAND = CommandDefinition(
    code="expense.report.reject",
    display_name=Text(en="Reject expense report", zh="退回报销单"),
    description=Text(
        en="Gives a submitted report of your organisation back to its owner, with a reason.",
        zh="把本组织及下级组织已提交的报销单退回给本人，并说明原因。",
    ),
    agent_hint=Text(
        en="Use when the manager does not agree with somebody else's submitted report and says "
        "why; expense.report.reopen puts it back before the approver.",
        zh="经理不同意他人提交的报销单并说明原因时使用；expense.report.reopen 可以恢复为待审批。",
    ),
    risk=Risk.L2,  # the report and its budget
    idempotent=True,
    reversible=True,
    undo="expense.report.reopen",
    record=Report,
    operation=Operation.TRANSITION,
    input=RejectReport,
    example={"reason": "The hotel's receipt is missing."},
    permission="expense.report.approve",
    transition=Transition(from_=("submitted",), to="rejected"),
    rules=Rules(asserts=(NOT_OWN,), post_invariants=(SAME_TOTAL,)),
    set={"decided_at": "now", "decided_by": "user.id"},
    map={"reason": "reason"},
    roll_ups=BUDGET_SUMS,
    events=("expense.report.rejected",),
)
