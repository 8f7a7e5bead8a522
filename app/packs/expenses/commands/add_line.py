"""`expense.line.add`: one more expense in a report."""

from typing import Any

from pydantic import Field

from app.commands.context import Context
from app.commands.definition import CommandDefinition, Input, Operation, Risk, Rule, Rules, Text
from app.packs.expenses.answers import AddedLine
from app.packs.expenses.inputs import LARGEST_MINOR, Category, Day
from app.packs.expenses.models import Line, Receipt, Report
from app.packs.expenses.rules import OPEN_TO_CHANGE, OWN, TOTALS


class AddLine(Input):
    """The expense, in the report's currency, and what proves it."""

    spent_on: Day = Field(description="The day it was paid: 2026-10-14.")
    category: Category = Field(description="What kind of expense it is.")
    description: str = Field(
        min_length=1, max_length=200, description="What was paid for, in a few words."
    )
    amount_minor: int = Field(
        ge=1, le=LARGEST_MINOR, description="In minor units of the currency: 12050 is 120.50."
    )
    receipt_number: str = Field(
        "", max_length=60, description="Number of the invoice or receipt; needed above 200.00."
    )
    receipt_issuer: str = Field("", max_length=200, description="Who issued the receipt.")


def handle(ctx: Context) -> dict[str, Any]:
    """Write the line, and the receipt that proves it."""
    asked: AddLine = ctx.input
    report = ctx.target(Report)
    of = {"org_id": report.org_id, "owner_id": report.owner_id, "report_id": report.id}
    receipt = (
        ctx.records.create(Receipt, **of, number=asked.receipt_number, issuer=asked.receipt_issuer)
        if asked.receipt_number
        else None
    )
    line = ctx.records.create(
        Line,
        **of,
        spent_on=asked.spent_on,
        category=asked.category,
        description=asked.description,
        amount_minor=asked.amount_minor,
        receipt_id=receipt.id if receipt else "",
    )
    return AddedLine(line_id=line.id, total_minor=report.total_minor + asked.amount_minor).data()


COMMAND = CommandDefinition(
    code="expense.line.add",
    display_name=Text(en="Add line", zh="添加报销明细"),
    description=Text(
        en="Adds one expense, with its receipt if there is one, to your own draft or rejected "
        "report.",
        zh="向自己的草稿或被退回的报销单添加一条明细，可同时登记发票。",
    ),
    agent_hint=Text(
        en="Use once for each expense, with the amount the person named or the receipt shows, "
        "never a guess; expense.line.remove takes it away again.",
        zh="每笔费用调用一次，金额以本人说明或发票为准，切勿猜测；expense.line.remove 可以移除。",
    ),
    risk=Risk.L1,
    idempotent=False,
    reversible=True,
    undo="expense.line.remove",
    undo_input={"lineId": "result.lineId"},
    record=Report,
    operation=Operation.ACTION,
    targeted=True,
    input=AddLine,
    output=AddedLine,
    example={
        "spentOn": "2026-10-14",
        "category": "meals",
        "description": "Lunch with a customer",
        "amountMinor": 12050,
    },
    permission="expense.report.manage",
    rules=Rules(
        asserts=(OWN, OPEN_TO_CHANGE),
        cross_field=(
            Rule(
                expr="input.receipt_issuer == '' || input.receipt_number != ''",
                message=Text(
                    en="A receipt that has an issuer has a number too.",
                    zh="填写了开票方，也要填写发票号码。",
                ),
                pointers=("/receiptNumber",),
            ),
        ),
    ),
    handler=handle,
    roll_ups=TOTALS,
    tags=("money",),
)
