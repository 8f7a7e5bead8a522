"""`expense.report.remind`: a message to the approver, which waits for a person's word."""

import pytest
from sqlmodel import Session, select

from app.commands.outbox_models import OutboxEvent
from app.kernel import db
from tests.packs.expenses.desk import Desk

REMIND = "expense.report.remind"


@pytest.mark.requirement("CMD-25")
async def test_a_reminder_leaves_for_who_decides_today(desk: Desk) -> None:
    report_id = await desk.submitted("alice", 4_200)

    done = await desk.agreed("alice", "alice", REMIND, report_id, message="By Friday?")

    (told,) = await db.read(_told)
    assert done.result["approverName"] == "Mia"
    assert told["approverId"] == desk.acme["mia"].id
    assert told["message"] == "By Friday?"
    assert (told["number"], told["totalMinor"], told["currency"]) == ("EXP-1", 4_200, "CNY")


async def test_only_what_waits_is_reminded_of(desk: Desk) -> None:
    draft, waiting = await desk.draft("alice", 100), await desk.submitted("bob", 100)

    too_early = await desk.refused("alice", REMIND, draft)
    not_theirs = await desk.refused("alice", REMIND, waiting)

    assert (too_early.stage, too_early.words("en")) == (
        "assert",
        "Only a submitted report waits for somebody.",
    )
    assert not_theirs.reason == "record_not_found"
    assert await db.read(_told) == []


def _told(session: Session) -> list[dict[str, object]]:
    query = select(OutboxEvent).where(OutboxEvent.name == "expense.report.reminded")
    return [dict(row.data) for row in session.exec(query)]
