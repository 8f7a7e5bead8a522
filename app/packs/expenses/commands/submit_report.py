"""`expense.report.submit`: hand a drafted report to its approver.

An auditor can read the definition alone; `handle` adds the one thing rules cannot say.
"""

from typing import Any

from pydantic import Field

from app.commands.context import Context
from app.commands.definition import (
    CommandDefinition,
    Input,
    Operation,
    Risk,
    Rule,
    Rules,
    SodRule,
    Text,
    Transition,
)
from app.commands.errors import Rejected
from app.kernel.i18n import N_
from app.packs.expenses import queries
from app.packs.expenses.answers import Submitted
from app.packs.expenses.models import Report
from app.packs.expenses.rules import BUDGET_SUMS, HAS_A_LINE, HAS_RECEIPTS, OWN, SAME_TOTAL


class SubmitReport(Input):
    """What the caller sends, next to the report's id."""

    note: str = Field("", max_length=500, description="A word to the approver, above the lines.")


def handle(ctx: Context) -> dict[str, Any]:
    """Name approver and budget: those of today, not of the day when it was drafted.

    Raises:
        Rejected: `no_approver`; an administrator has to name a manager first.
    """
    report, session = ctx.target(Report), ctx.work.session
    approver = queries.manager_of(session, report)
    if approver is None:
        raise Rejected(
            "no_approver",
            says=N_("Nobody but you may decide reports of your organisation."),
            orgId=report.org_id,
        )
    report.approver_id = approver.id
    report.budget_id = queries.budget_of(session, report)
    report.decided_by, report.decided_at, report.reason = None, None, ""
    return Submitted(approver_id=approver.id, approver_name=approver.display_name).data()


COMMAND = CommandDefinition(
    code="expense.report.submit",
    display_name=Text(en="Submit expense report", zh="提交报销单"),
    description=Text(
        en="Sends your own drafted or rejected report to the manager of its organisation.",
        zh="把自己的草稿或被退回的报销单送交所属组织的经理审批。",
    ),
    agent_hint=Text(
        en="Use when the employee has checked every amount, attached the receipts and wants the "
        "report decided. Until then expense.report.recall brings it back.",
        zh="员工核对完金额、附好发票并希望送审时使用；批准之前，expense.report.recall 可以收回。",
    ),
    risk=Risk.L2,  # the report, and the budget it is counted in
    idempotent=False,
    reversible=True,
    undo="expense.report.recall",
    record=Report,
    operation=Operation.TRANSITION,
    input=SubmitReport,
    output=Submitted,
    example={"note": "October, Shanghai"},
    permission="expense.report.submit",
    transition=Transition(from_=("draft", "rejected"), to="submitted"),
    sod=(SodRule(conflicts_with="expense.report.approve", scope="same_record", mode="hard"),),
    related=("lines",),
    rules=Rules(
        asserts=(OWN, HAS_A_LINE, HAS_RECEIPTS),
        cross_field=(
            Rule(
                expr="record.total_minor < 500000 || input.note != ''",
                message=Text(en="From 5,000.00 on, add a note.", zh="5000.00 及以上请写一句说明。"),
                pointers=("/note",),
            ),
        ),
        post_invariants=(SAME_TOTAL,),
    ),
    set={"submitted_at": "now", "submitted_by": "user.id"},
    map={"note": "note"},
    handler=handle,
    roll_ups=BUDGET_SUMS,
    events=("expense.report.submitted",),
    tags=("money",),
)
