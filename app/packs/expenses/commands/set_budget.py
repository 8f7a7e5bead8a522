"""`expense.budget.set`: say what an organisation may spend in a month.

Not among the commands of the reference table: without it nobody could make a budget.
"""

from typing import Any

from pydantic import Field

from app.commands.context import Context
from app.commands.definition import CommandDefinition, Input, Operation, Risk, Text
from app.commands.errors import Rejected
from app.packs.expenses import queries
from app.packs.expenses.answers import BudgetSet
from app.packs.expenses.budgets import left_minor
from app.packs.expenses.inputs import LARGEST_MINOR, Currency, Id, Period
from app.packs.expenses.models import Budget


class SetBudget(Input):
    """The month of an organisation, and its limit."""

    org_id: Id = Field(description="The organisation's id; it counts for those below it too.")
    period: Period = Field(description="The month: 2026-10.")
    currency: Currency = Field("CNY", description="ISO 4217 code of the currency.")
    limit_minor: int | None = Field(
        ge=0,
        le=LARGEST_MINOR,
        description="The most that may be approved, in minor units; null lifts the limit.",
    )


def handle(ctx: Context) -> dict[str, Any]:
    """Change the budget of the month, or make it.

    Raises:
        Rejected: `record_not_found`; the organisation is not one the caller sets budgets for.
    """
    asked: SetBudget = ctx.input
    if not queries.hold_for_budget(ctx.work.session, ctx.call.principal, asked.org_id):
        raise Rejected("record_not_found", pointer="/orgId")
    month = {"period": asked.period, "currency": asked.currency}
    found = ctx.records.all(Budget, lock=True, org_id=asked.org_id, **month)
    budget = (
        found[0]
        if found
        else ctx.records.create(Budget, org_id=asked.org_id, owner_id=ctx.user.id, **month)
    )
    previous, budget.limit_minor = budget.limit_minor, asked.limit_minor
    return BudgetSet.of(budget, left_minor=left_minor(budget), previous_limit_minor=previous).data()


COMMAND = CommandDefinition(
    code="expense.budget.set",
    display_name=Text(en="Set budget", zh="设定预算"),
    description=Text(
        en="Sets or lifts the limit of what an organisation may have approved in a month.",
        zh="设定或取消某组织当月可批准的预算额度。",
    ),
    agent_hint=Text(
        en="Use when finance names the limit of an organisation's month; expense.budget.set with "
        "the former limit takes it back.",
        zh="财务人员给出某组织当月预算额度时使用；用原额度再次调用 expense.budget.set 即可恢复。",
    ),
    risk=Risk.L1,
    idempotent=True,
    reversible=True,
    undo="expense.budget.set",
    undo_input={
        "orgId": "input.org_id",
        "period": "input.period",
        "currency": "input.currency",
        "limitMinor": "result.previousLimitMinor",
    },
    record=Budget,
    operation=Operation.ACTION,
    targeted=False,
    input=SetBudget,
    output=BudgetSet,
    example={
        "orgId": "01JDXP5Y8GZ0000000000000AD",
        "period": "2026-10",
        "currency": "CNY",
        "limitMinor": 5_000_000,
    },
    permission="expense.budget.manage",
    handler=handle,
    events=("expense.budget.set",),
    tags=("money",),
)
