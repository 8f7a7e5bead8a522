"""`expense.report.discard`: throw a draft away, with everything in it."""

from typing import Any

from app.commands.context import Context
from app.commands.definition import CommandDefinition, Input, Operation, Risk, Rule, Rules, Text
from app.packs.expenses.models import Report
from app.packs.expenses.rules import OWN


class DiscardReport(Input):
    """Nothing besides the report's id."""


def handle(ctx: Context) -> dict[str, Any]:
    """Delete what belonged to the report."""
    for row in (*ctx.related("lines"), *ctx.related("receipts")):
        ctx.records.delete(row)
    return {"number": ctx.target(Report).number}


COMMAND = CommandDefinition(
    code="expense.report.discard",
    display_name=Text(en="Discard expense report", zh="删除报销单草稿"),
    description=Text(
        en="Deletes your own draft with its lines and receipts. It cannot be brought back.",
        zh="删除自己的草稿及其明细和发票，删除后无法恢复。",
    ),
    agent_hint=Text(
        en="Use only when the owner says that a draft is not needed any more; there is no undo, "
        "so a person has to assent.",
        zh="仅当报销单本人明确表示不再需要该草稿时使用；无法撤销，因此需要本人确认。",
    ),
    risk=Risk.L2,  # the report, its lines and receipts
    idempotent=True,
    reversible=False,
    record=Report,
    operation=Operation.DELETE,
    input=DiscardReport,
    example={},
    permission="expense.report.manage",
    related=("lines", "receipts"),
    rules=Rules(
        asserts=(
            OWN,
            Rule(
                expr="record.state == 'draft'",
                message=Text(en="Only a draft can be discarded.", zh="只有草稿可以删除。"),
            ),
        )
    ),
    handler=handle,
    events=("expense.report.discarded",),
)
