"""`expense.report.discard`: a draft goes with everything in it, after a person's word."""

import pytest
from sqlmodel import Session, func, select

from app.kernel import db
from app.packs.expenses.models import Line, Receipt, Report
from tests.packs.expenses.desk import Desk

DISCARD = "expense.report.discard"


def rows(session: Session) -> list[int]:
    return [
        session.exec(select(func.count()).select_from(model)).one()
        for model in (Report, Line, Receipt)
    ]


@pytest.mark.requirement("CMD-25")
async def test_a_discarded_draft_leaves_no_rows(desk: Desk) -> None:
    kept = await desk.draft("alice", 300, 400)
    report_id = await desk.draft("alice", 100, 200)
    asked = await desk.refused("alice", DISCARD, report_id)
    assert (asked.stage, asked.reason) == ("approval_check", "approval_required")
    assert await db.read(rows) == [2, 4, 4]

    await desk.agreed("alice", "alice", DISCARD, report_id)

    assert await db.read(rows) == [1, 2, 2]
    assert (await desk.report(kept))["totalMinor"] == 700


async def test_only_drafts_of_ones_own_are_discarded(desk: Desk) -> None:
    submitted = await desk.submitted("alice", 100)
    draft = await desk.draft("alice", 100)
    desk.world.give(
        desk.acme["bob"], "clerk", desk.acme.root, grants={"expense.report.manage": "all"}
    )

    too_late = await desk.refused("alice", DISCARD, submitted)
    not_theirs = await desk.refused("bob", DISCARD, draft)

    assert (too_late.stage, too_late.words("en")) == ("assert", "Only a draft can be discarded.")
    assert (not_theirs.stage, not_theirs.reason) == ("assert", "assertion_failed")
