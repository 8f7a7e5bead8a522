"""`expense.payment.send`: the order to the bank; once it is sent nobody gets it back.

The account stands in full in the preview, so that the colleague who assents compares digits and
not dots; readers of the trail find the call by its tags `money` and `personal`.
"""

from typing import Any

from pydantic import Field

from app.commands.context import Context
from app.commands.definition import (
    Approvers,
    CommandDefinition,
    Input,
    Operation,
    Risk,
    Rule,
    Rules,
    SodRule,
    Text,
    Told,
    Transition,
)
from app.commands.errors import Rejected
from app.kernel.i18n import N_
from app.packs.expenses.answers import Paid
from app.packs.expenses.inputs import Account
from app.packs.expenses.models import Payment, Report
from app.packs.expenses.rules import BUDGET_SUMS, NOT_OWN, SAME_TOTAL


class SendPayment(Input):
    """Where the money goes, if the report does not say it."""

    payee_account: Account = Field(
        "", description="Bank account or IBAN, only where the report names none."
    )


def handle(ctx: Context) -> dict[str, Any]:
    """Write the one payment of the report; the database knows no second.

    Raises:
        Rejected: `own_payment`; who gets the money was the one who assented to it.
    """
    report, asked = ctx.target(Report), ctx.input
    if ctx.consent is not None and ctx.consent.approved_by == report.owner_id:
        raise Rejected("own_payment", says=N_("Nobody assents to a payment to themselves."))
    report.payee_account = report.payee_account or asked.payee_account
    payment = ctx.records.create(
        Payment,
        org_id=report.org_id,
        owner_id=report.owner_id,
        state="sent",
        report_id=report.id,
        reference=f"PAY-{report.number}",
        amount_minor=report.total_minor,
        currency=report.currency,
        payee_name=report.payee_name,
        payee_account=report.payee_account,
        sent_at=ctx.now,
    )
    ctx.records.mark_automatic(payment, "sent_at")
    return Paid(
        payment_id=payment.id,
        reference=payment.reference,
        payee_account=payment.payee_account,
    ).data()


COMMAND = CommandDefinition(
    code="expense.payment.send",
    display_name=Text(en="Send payment", zh="发起付款"),
    description=Text(
        en="Orders the bank to pay an approved report. Money that was sent does not come back.",
        zh="向银行发出支付指令，支付已批准的报销单；款项一经汇出无法收回。",
    ),
    agent_hint=Text(
        en="Use when finance wants an approved report paid now; there is no undo, and another "
        "person of finance has to assent to amount and account.",
        zh="财务人员需要立即支付已批准的报销单时使用；无法撤销，须由另一位财务人员核对金额和账号后同意。",
    ),
    risk=Risk.L4,
    idempotent=False,
    reversible=False,
    record=Report,
    operation=Operation.TRANSITION,
    input=SendPayment,
    output=Paid,
    example={},
    permission="expense.payment.execute",
    feature="expense.payments",
    transition=Transition(from_=("approved",), to="paid"),
    sod=(SodRule(conflicts_with="expense.report.approve", scope="same_record", mode="hard"),),
    approvers=Approvers(permission="expense.payment.execute"),
    rules=Rules(
        asserts=(
            NOT_OWN,
            Rule(
                expr="record.payee_account != '' || input.payee_account != ''",
                message=Text(
                    en="The report names no account to pay to.", zh="报销单没有填写收款账号。"
                ),
            ),
        ),
        cross_field=(
            Rule(
                expr=(
                    "input.payee_account == '' || record.payee_account == '' || "
                    "input.payee_account == record.payee_account"
                ),
                message=Text(
                    en="The report names another account.", zh="与报销单上的收款账号不一致。"
                ),
                pointers=("/payeeAccount",),
            ),
        ),
        post_invariants=(SAME_TOTAL,),
    ),
    handler=handle,
    roll_ups=BUDGET_SUMS,
    webhooks=(
        Told(
            type="expense.payment.sent",
            data={
                "paymentId": "result.paymentId",
                "reference": "result.reference",
                "reportId": "record.id",
                "number": "record.number",
                "amountMinor": "record.total_minor",
                "currency": "record.currency",
                "payeeName": "record.payee_name",
                "payeeAccount": "record.payee_account",
            },
        ),
    ),
    tags=("money", "personal"),
)
