"""`expense.payment.send`: two people of finance, one payment, and the bank is told once."""

import pytest
from sqlmodel import Session, select

from app.commands.approval_errors import NotAnApprover
from app.commands.outbox_models import OutboxEvent
from app.commands.refused import Refused
from app.identity import features
from app.identity.models import EntitlementStatus
from app.kernel import db
from app.kernel.db import Work
from app.kernel.errors import NotFound
from app.packs.expenses.models import Payment
from tests.packs.expenses.desk import CARD, Desk

SEND = "expense.payment.send"


@pytest.mark.requirement("CMD-25", "CMD-12")
async def test_a_colleague_of_finance_assents_and_the_bank_learns_all_it_needs(
    desk: Desk,
) -> None:
    await desk.limit("shanghai", 10_000)
    report_id = await desk.approved("alice", 4_200)
    asked = await desk.refused("fiona", SEND, report_id)
    assert (asked.stage, asked.reason, asked.status) == ("approval_check", "approval_required", 428)
    assert CARD in str((await desk.approval(asked)).preview)  # to compare digits

    done = await desk.agreed("fiona", "frank", SEND, report_id)

    ((told,), (payment,)) = await db.read(_told), await db.read(_payments)
    budget = await desk.budget("shanghai")
    assert (await desk.report(report_id))["state"] == "paid"
    assert told == {
        "callId": done.call_id,
        "paymentId": payment.id,
        "reference": "PAY-EXP-1",
        "reportId": report_id,
        "number": "EXP-1",
        "amountMinor": 4_200,
        "currency": "CNY",
        "payeeName": desk.acme["alice"].display_name,
        "payeeAccount": CARD,
    }
    assert (payment.amount_minor, payment.state) == (4_200, "sent")
    assert (budget["approvedMinor"], budget["paidMinor"], budget["leftMinor"]) == (
        *(0, 4_200),
        5_800,
    )
    assert done.undo is None
    again = await desk.refused("fiona", SEND, report_id)
    assert (again.stage, again.reason) == ("state_check", "illegal_state")


@pytest.mark.requirement("CMD-12", "CMD-25")
async def test_neither_requester_nor_approver_of_the_report_assents(desk: Desk) -> None:
    desk.world.give(desk.acme["mia"], "finance", desk.acme.root)
    report_id = await desk.approved("alice", 4_200)

    conflict = await desk.refused("mia", SEND, report_id)
    asked = await desk.refused("fiona", SEND, report_id)
    for nobody in ("fiona", "mia", "bob"):
        with pytest.raises((NotAnApprover, NotFound)):
            await desk.approve(asked, nobody)

    assert (conflict.stage, conflict.reason) == ("sod_check", "sod_conflict")
    assert await db.read(_payments) == []


async def test_without_the_feature_nothing_is_paid(desk: Desk) -> None:
    report_id = await desk.approved("alice", 4_200)
    db.transact_now(_expire, desk.acme.id)

    refused = await desk.refused("fiona", SEND, report_id)

    assert (refused.stage, refused.reason) == ("entitlement_check", "feature_not_entitled")


async def test_money_goes_to_the_account_on_the_report_and_to_no_other(desk: Desk) -> None:
    named = await desk.approved("alice", 4_200)
    made = await desk.run("bob", "expense.report.create", title="Taxi", period="2026-10")
    nameless = str(made.result["reportId"])
    await desk.add("bob", nameless, 900)
    await desk.run("bob", "expense.report.submit", nameless)
    await desk.run("mia", "expense.report.approve", nameless)

    other = await desk.refused("fiona", SEND, named, payeeAccount="DE00 1111 2222")
    nowhere = await desk.refused("fiona", SEND, nameless)
    await desk.agreed("fiona", "frank", SEND, nameless, payeeAccount="DE00 1111 2222")

    assert (other.stage, other.reason) == ("cross_field_validation", "cross_field_failed")
    assert (nowhere.stage, nowhere.reason) == ("assert", "assertion_failed")
    (payment,) = await db.read(_payments)
    assert payment.payee_account == "DE00 1111 2222"


async def test_finance_does_not_pay_itself(desk: Desk) -> None:
    report_id = await desk.submitted("fiona", 100)
    await desk.run("ada", "expense.report.approve", report_id)

    asks = await desk.refused("fiona", SEND, report_id)
    with pytest.raises(Refused) as assents:
        await desk.agreed("frank", "fiona", SEND, report_id)

    assert (asks.stage, asks.reason) == ("assert", "assertion_failed")
    assert (assents.value.stage, assents.value.reason) == ("handler", "own_payment")
    assert await db.read(_payments) == []


def _told(session: Session) -> list[dict[str, object]]:
    query = select(OutboxEvent).where(OutboxEvent.name == "expense.payment.sent")
    return [dict(row.data) for row in session.exec(query)]


def _payments(session: Session) -> list[Payment]:
    return list(session.exec(select(Payment)).all())


def _expire(work: Work, tenant_id: str) -> None:
    features.entitle(work, None, tenant_id, "expense.payments", status=EntitlementStatus.EXPIRED)
