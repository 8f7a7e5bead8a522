"""`expense.budget.get`: what a month allows, and what is left of it."""

from typing import Any

from pydantic import Field

from app.commands.context import Context
from app.commands.definition import CommandDefinition, Input, Operation, Risk, Text
from app.commands.errors import Rejected
from app.packs.expenses import queries
from app.packs.expenses.answers import BudgetRow
from app.packs.expenses.budgets import budget_row
from app.packs.expenses.inputs import Currency, Period
from app.packs.expenses.models import Budget


class GetBudget(Input):
    """Which month of which organisation."""

    period: Period = Field(description="The month: 2026-10.")
    org_id: str = Field(
        "", max_length=26, description="The organisation's id; empty means your own."
    )
    currency: Currency = Field("CNY", description="ISO 4217 code of the currency.")


def handle(ctx: Context) -> dict[str, Any]:
    """Find the organisation's budget, or the nearest above it.

    Raises:
        Rejected: `record_not_found`; there is none, or none the caller may see.
    """
    asked: GetBudget = ctx.input
    budget = queries.visible_budget(
        ctx.work.session,
        ctx.call.principal,
        asked.org_id or ctx.user.org_id,
        asked.period,
        asked.currency,
    )
    if budget is None:
        raise Rejected("record_not_found")
    return budget_row(budget).data()


COMMAND = CommandDefinition(
    code="expense.budget.get",
    display_name=Text(en="Show budget", zh="查看预算"),
    description=Text(
        en="Shows what an organisation may spend in a month, what is submitted, approved and paid.",
        zh="查看某组织当月的预算额度，以及已提交、已批准和已付款的金额。",
    ),
    agent_hint=Text(
        en="Use when somebody asks how much of a month's budget is left, or before approving "
        "a large report.",
        zh="有人询问当月预算还剩多少，或准备批准大额报销单之前使用。",
    ),
    risk=Risk.L0,
    idempotent=True,
    reversible=True,
    record=Budget,
    operation=Operation.READ,
    targeted=False,
    input=GetBudget,
    output=BudgetRow,
    example={"period": "2026-10"},
    permission="expense.report.read",
    tags=("money",),
    handler=handle,
)
