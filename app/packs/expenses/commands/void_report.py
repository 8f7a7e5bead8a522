"""`expense.report.void`: an approved report that will never be paid; its budget is free again."""

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


class VoidReport(Input):
    """Why it will not be paid."""

    reason: str = Field(
        min_length=1, max_length=500, description="Why it will not be paid, in a sentence."
    )


COMMAND = CommandDefinition(
    code="expense.report.void",
    display_name=Text(en="Void expense report", zh="作废报销单"),
    description=Text(
        en="Ends an approved report without payment and releases its budget, for good.",
        zh="作废已批准但不再付款的报销单并释放预算，作废后无法恢复。",
    ),
    agent_hint=Text(
        en="Use when an approved report must never be paid, for example because it was paid "
        "otherwise; there is no undo, so a person has to assent.",
        zh="已批准的报销单确定不再付款（例如已通过其他方式支付）时使用；无法撤销，因此需要人工确认。",
    ),
    risk=Risk.L2,  # the report and its budget
    idempotent=True,
    reversible=False,
    record=Report,
    operation=Operation.TRANSITION,
    input=VoidReport,
    example={"reason": "Paid with the company card already."},
    permission="expense.report.approve",
    transition=Transition(from_=("approved",), to="voided"),
    rules=Rules(asserts=(NOT_OWN,), post_invariants=(SAME_TOTAL,)),
    map={"reason": "reason"},
    roll_ups=BUDGET_SUMS,
    events=("expense.report.voided",),
    tags=("money",),
)
