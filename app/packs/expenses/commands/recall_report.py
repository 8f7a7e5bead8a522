"""`expense.report.recall`: take a submitted report back before it is decided."""

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
from app.packs.expenses.rules import BUDGET_SUMS, OWN, SAME_TOTAL


class RecallReport(Input):
    """Nothing besides the report's id."""


def handle(ctx: Context) -> dict[str, Any]:
    """Leave nothing of the submission: neither approver nor time."""
    report = ctx.target(Report)
    report.approver_id = report.submitted_by = report.submitted_at = report.reminded_at = None
    report.note = ""
    return {}


COMMAND = CommandDefinition(
    code="expense.report.recall",
    display_name=Text(en="Recall expense report", zh="撤回报销单"),
    description=Text(
        en="Takes your own submitted report back before anybody has decided it.",
        zh="在审批人作出决定之前，撤回自己已提交的报销单。",
    ),
    agent_hint=Text(
        en="Use when the owner wants to correct a report that is submitted and not decided yet; "
        "it becomes a draft and has to be submitted anew.",
        zh="报销单已提交但尚未审批，而本人希望修改时使用；撤回后变为草稿，需要重新提交。",
    ),
    risk=Risk.L1,
    idempotent=False,
    reversible=False,
    record=Report,
    operation=Operation.TRANSITION,
    input=RecallReport,
    example={},
    permission="expense.report.submit",
    transition=Transition(from_=("submitted",), to="draft"),
    rules=Rules(asserts=(OWN,), post_invariants=(SAME_TOTAL,)),
    handler=handle,
    roll_ups=BUDGET_SUMS,
    events=("expense.report.recalled",),
)
