"""`expense.report.create`: begin a report, with a number of its own."""

from typing import Any

from pydantic import Field

from app.commands.context import Context
from app.commands.definition import CommandDefinition, Input, Operation, Risk, Text
from app.packs.expenses import queries
from app.packs.expenses.answers import Created
from app.packs.expenses.inputs import Account, Currency, Period, Title
from app.packs.expenses.models import Report


class CreateReport(Input):
    """What a report begins with; its lines come after it."""

    title: Title = Field(description="What the money was spent for, in a few words.")
    period: Period = Field(description="The month whose budget pays it: 2026-10.")
    currency: Currency = Field("CNY", description="ISO 4217 code of the currency of every line.")
    payee_name: str = Field(
        "", max_length=200, description="Who gets the money; empty means the owner."
    )
    payee_account: Account = Field(
        "", description="Bank account or IBAN to pay to; empty means the one used last time."
    )


def handle(ctx: Context) -> dict[str, Any]:
    """Pay the owner, to the account of the time before, unless another is named."""
    report = ctx.target(Report)
    report.payee_name = report.payee_name or ctx.user.display_name
    report.payee_account = report.payee_account or queries.account_of(ctx.work.session, report)
    return Created(report_id=report.id, number=report.number).data()


COMMAND = CommandDefinition(
    code="expense.report.create",
    display_name=Text(en="New expense report", zh="新建报销单"),
    description=Text(
        en="Begins an empty expense report of your own; lines are added to it afterwards.",
        zh="为自己新建一张空白报销单，之后再逐条添加明细。",
    ),
    agent_hint=Text(
        en="Use when somebody wants money back and no draft of theirs fits the purpose and the "
        "month; expense.report.discard takes the draft away again.",
        zh="员工需要报销，且没有用途和月份相符的草稿时使用；expense.report.discard 可删除该草稿。",
    ),
    risk=Risk.L1,
    idempotent=False,
    reversible=True,
    undo="expense.report.discard",
    record=Report,
    operation=Operation.CREATE,
    input=CreateReport,
    output=Created,
    example={
        "title": "October trip to Shanghai",
        "period": "2026-10",
        "currency": "CNY",
        "payeeAccount": "6222 0212 3456 7890",
    },
    permission="expense.report.manage",
    set={"number": "next:EXP"},
    map={
        "title": "title",
        "period": "period",
        "currency": "currency",
        "payee_name": "payee_name",
        "payee_account": "payee_account",
    },
    handler=handle,
    events=("expense.report.created",),
    tags=("money", "personal"),
)
