"""`expense.line.remove`: take an expense out of a report again."""

from typing import Any

from pydantic import Field

from app.commands.context import Context
from app.commands.definition import CommandDefinition, Input, Operation, Risk, Rules, Text
from app.commands.errors import Rejected
from app.packs.expenses.answers import RemovedLine
from app.packs.expenses.inputs import Id
from app.packs.expenses.models import Line, Receipt, Report
from app.packs.expenses.rules import OPEN_TO_CHANGE, OWN, TOTALS


class RemoveLine(Input):
    """Which line of the report."""

    line_id: Id = Field(description="The line's id, as the report shows it.")


def handle(ctx: Context) -> dict[str, Any]:
    """Delete the line with its receipt; the result holds what stood in them.

    Raises:
        Rejected: `record_not_found`; the report has no such line.
    """
    asked: RemoveLine = ctx.input
    line = ctx.records.get(Line, asked.line_id, lock=True)
    if line is None or line.report_id != ctx.target(Report).id:
        raise Rejected("record_not_found", pointer="/lineId")
    receipt = ctx.records.get(Receipt, line.receipt_id or None)
    removed = RemovedLine.of(
        line,
        receipt_number=receipt.number if receipt else "",
        receipt_issuer=receipt.issuer if receipt else "",
    )
    ctx.records.delete(line)
    if receipt:
        ctx.records.delete(receipt)
    return removed.data()


COMMAND = CommandDefinition(
    code="expense.line.remove",
    display_name=Text(en="Remove line", zh="移除报销明细"),
    description=Text(
        en="Takes one expense, with its receipt, out of your own draft or rejected report.",
        zh="从自己的草稿或被退回的报销单中移除一条明细及其发票。",
    ),
    agent_hint=Text(
        en="Use when a line is wrong or does not belong into the report; expense.line.add brings "
        "it back.",
        zh="明细有误或不属于该报销单时使用；expense.line.add 可以重新添加。",
    ),
    risk=Risk.L1,
    idempotent=False,
    reversible=True,
    undo="expense.line.add",
    undo_input={
        "spentOn": "result.spentOn",
        "category": "result.category",
        "description": "result.description",
        "amountMinor": "result.amountMinor",
        "receiptNumber": "result.receiptNumber",
        "receiptIssuer": "result.receiptIssuer",
    },
    record=Report,
    operation=Operation.ACTION,
    targeted=True,
    input=RemoveLine,
    output=RemovedLine,
    example={"lineId": "01JDXP5Y8GZ0000000000000AC"},
    permission="expense.report.manage",
    rules=Rules(asserts=(OWN, OPEN_TO_CHANGE)),
    handler=handle,
    roll_ups=TOTALS,
    tags=("money",),
)
