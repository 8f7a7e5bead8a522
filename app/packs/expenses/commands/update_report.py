"""`expense.report.update`: correct what stands above the lines."""

from pydantic import Field

from app.commands.definition import CommandDefinition, Input, Operation, Risk, Rules, Text
from app.packs.expenses.inputs import Account, Period, Title
from app.packs.expenses.models import Report
from app.packs.expenses.rules import OPEN_TO_CHANGE, OWN


class UpdateReport(Input):
    """What changes; what is not sent stays as it is."""

    title: Title = Field("", description="What the money was spent for, in a few words.")
    period: Period = Field("", description="The month whose budget pays it: 2026-10.")
    payee_name: str = Field("", max_length=200, description="Who gets the money.")
    payee_account: Account = Field("", description="Bank account or IBAN to pay to.")


COMMAND = CommandDefinition(
    code="expense.report.update",
    display_name=Text(en="Change expense report", zh="修改报销单"),
    description=Text(
        en="Changes title, month or payee of your own draft or rejected report.",
        zh="修改自己的草稿或被退回报销单的标题、月份或收款人。",
    ),
    agent_hint=Text(
        en="Use when title, month or payee of a draft or rejected report is wrong; calling "
        "expense.report.update with the old values takes it back.",
        zh="草稿或被退回的报销单标题、月份或收款人有误时使用；"
        "用原来的值再次调用 expense.report.update 即可恢复。",
    ),
    risk=Risk.L1,
    idempotent=True,
    reversible=True,
    undo="expense.report.update",
    undo_input={
        "title": "before.title",
        "period": "before.period",
        "payeeName": "before.payee_name",
        "payeeAccount": "before.payee_account",
    },
    record=Report,
    operation=Operation.UPDATE,
    input=UpdateReport,
    example={"title": "October trip to Shanghai and Suzhou"},
    permission="expense.report.manage",
    rules=Rules(asserts=(OWN, OPEN_TO_CHANGE)),
    map={
        "title": "title",
        "period": "period",
        "payee_name": "payee_name",
        "payee_account": "payee_account",
    },
    events=("expense.report.updated",),
    tags=("money", "personal"),
)
