"""`sample.report.danger`: L3; the requester confirms, a webhook tells others."""

from pydantic import Field

from app.commands.context import Context
from app.commands.definition import CommandDefinition, Input, Operation, Risk, Text
from app.commands.errors import Rejected
from app.packs.expenses.models import Report


class Danger(Input):
    amount_minor: int = Field(ge=0, description="How much.", json_schema_extra={"x-money": "CNY"})
    account: str = Field(
        "", max_length=60, description="A secret.", json_schema_extra={"x-secret": True}
    )
    other_id: str = Field("", max_length=26, description="Another report, by its id.")


def handle(ctx: Context) -> None:
    if (other := ctx.records.get(Report, ctx.input.other_id or None)) is not None:
        ctx.target(Report).note = other.title  # which may change between assent and call
    if ctx.input.amount_minor == 13 and not ctx.is_rehearsal:
        raise Rejected("unlucky", says="Thirteen brings no luck.")
    if ctx.input.amount_minor == 500 and not ctx.is_rehearsal:
        raise RuntimeError("broken")


COMMAND = CommandDefinition(
    code="sample.report.danger",
    display_name=Text(en="Endanger report", zh="冒险操作"),
    description=Text(en="Tells others an amount.", zh="把金额告诉外部。"),
    agent_hint=Text(
        en="Use to try approvals; nothing takes it back.", zh="用于尝试审批；无法撤销。"
    ),
    risk=Risk.L3,
    idempotent=False,
    reversible=False,
    record=Report,
    operation=Operation.UPDATE,
    input=Danger,
    example={"amountMinor": 342000},
    permission="expense.report.manage",
    map={"amount_minor": "total_minor"},
    handler=handle,
    webhooks=("sample.report.endangered",),
    tags=("money",),
)
