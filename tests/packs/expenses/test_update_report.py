"""`expense.report.update`: only what was sent changes, and it changes back."""

import pytest

from tests.packs.expenses.desk import CARD, Desk

UPDATE = "expense.report.update"


@pytest.mark.requirement("CMD-25")
async def test_what_is_sent_changes_and_can_be_changed_back(desk: Desk) -> None:
    report_id = await desk.draft("alice", 4_200)
    before = await desk.report(report_id)

    done = await desk.run("alice", UPDATE, report_id, title="Suzhou")

    changed = await desk.report(report_id)
    assert (changed["title"], changed["payeeAccount"]) == ("Suzhou", CARD)
    await desk.undo("alice", done)
    after = await desk.report(report_id)
    moves = {"version", "updatedAt"}
    assert {k: v for k, v in after.items() if k not in moves} == {
        k: v for k, v in before.items() if k not in moves
    }


async def test_nobody_changes_what_is_under_way_or_somebody_elses(desk: Desk) -> None:
    under_way = await desk.submitted("alice", 4_200)
    draft = await desk.draft("alice", 4_200)
    desk.world.give(
        desk.acme["bob"], "clerk", desk.acme.root, grants={"expense.report.manage": "all"}
    )

    too_late = await desk.refused("alice", UPDATE, under_way, payeeAccount="DE00 1111")
    not_theirs = await desk.refused("bob", UPDATE, draft, payeeAccount="DE00 1111")
    unseen = await desk.refused("mia", UPDATE, draft, title="Mine")

    assert (too_late.stage, too_late.words("en")) == (
        "assert",
        "Only a draft or a rejected report can be changed.",
    )
    assert (not_theirs.stage, not_theirs.reason) == ("assert", "assertion_failed")
    assert unseen.reason == "record_not_found"
