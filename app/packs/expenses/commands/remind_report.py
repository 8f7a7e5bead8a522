"""`expense.report.remind`: tell the approver, outside of the house, that a report waits."""

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
    Text,
    Told,
)
from app.commands.errors import Rejected
from app.kernel.i18n import N_
from app.packs.expenses import queries
from app.packs.expenses.answers import Reminded
from app.packs.expenses.models import Report


class RemindReport(Input):
    """What the approver is told besides."""

    message: str = Field("", max_length=500, description="A friendly word to the approver.")


def handle(ctx: Context) -> dict[str, Any]:
    """Find out who has to be told: whoever decides the report today.

    Raises:
        Rejected: `no_approver`; nobody is left who could be reminded.
    """
    report = ctx.target(Report)
    approver = queries.manager_of(ctx.work.session, report)
    if approver is None:
        raise Rejected(
            "no_approver",
            says=N_("Nobody but you may decide reports of your organisation."),
            orgId=report.org_id,
        )
    report.approver_id = approver.id
    return Reminded(
        approver_id=approver.id,
        approver_name=approver.display_name,
        approver_email=approver.email or "",
    ).data()


COMMAND = CommandDefinition(
    code="expense.report.remind",
    display_name=Text(en="Remind approver", zh="催办审批人"),
    description=Text(
        en="Sends the approver of a submitted report a reminder, by the webhook for reminders.",
        zh="通过催办 Webhook 向已提交报销单的审批人发送提醒。",
    ),
    agent_hint=Text(
        en="Use when the owner asks to nudge the approver of a report that has waited for some "
        "days; it leaves the house and cannot be taken back.",
        zh="报销单等待多日、本人希望催一下审批人时使用；提醒一经发出无法收回。",
    ),
    risk=Risk.L3,  # a message to a person, outside
    idempotent=False,
    reversible=False,
    record=Report,
    operation=Operation.UPDATE,
    input=RemindReport,
    output=Reminded,
    example={"message": "Could you look at it before Friday?"},
    permission="expense.report.remind",
    rules=Rules(
        asserts=(
            Rule(
                expr="record.state == 'submitted'",
                message=Text(
                    en="Only a submitted report waits for somebody.",
                    zh="只有已提交的报销单才需要催办。",
                ),
            ),
        )
    ),
    set={"reminded_at": "now"},
    handler=handle,
    webhooks=(
        Told(
            type="expense.report.reminded",
            data={
                "reportId": "record.id",
                "number": "record.number",
                "title": "record.title",
                "totalMinor": "record.total_minor",
                "currency": "record.currency",
                "approverId": "result.approverId",
                "approverName": "result.approverName",
                "approverEmail": "result.approverEmail",
                "message": "input.message",
            },
        ),
    ),
    tags=("personal",),
)
