"""`expense.report.recall`: back to a draft, before anybody has decided."""

import pytest

from tests.packs.expenses.desk import Desk

RECALL = "expense.report.recall"


@pytest.mark.requirement("CMD-25")
async def test_taking_a_submission_back_leaves_the_draft_and_its_budget_as_before(
    desk: Desk,
) -> None:
    await desk.limit("shanghai", 100_000)
    report_id = await desk.draft("alice", 4_200)
    before = await desk.report(report_id)
    done = await desk.run("alice", "expense.report.submit", report_id, note="October")
    assert (await desk.budget("shanghai"))["submittedMinor"] == 4_200

    undone = await desk.undo("alice", done)

    after = await desk.report(report_id)
    moves = {"version", "updatedAt", "budget"}
    assert undone.code == RECALL
    assert {k: v for k, v in after.items() if k not in moves} == {
        k: v for k, v in before.items() if k not in moves
    }
    assert (await desk.budget("shanghai"))["submittedMinor"] == 0


async def test_what_is_decided_or_not_ones_own_is_not_recalled(desk: Desk) -> None:
    approved = await desk.approved("alice", 4_200)
    waiting = await desk.submitted("alice", 4_200)
    desk.world.give(
        desk.acme["bob"], "clerk", desk.acme.root, grants={"expense.report.submit": "all"}
    )

    too_late = await desk.refused("alice", RECALL, approved)
    not_theirs = await desk.refused("bob", RECALL, waiting)

    assert (too_late.stage, too_late.facts["allowedFrom"]) == ("state_check", ["submitted"])
    assert (not_theirs.stage, not_theirs.reason) == ("assert", "assertion_failed")
