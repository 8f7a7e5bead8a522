"""`expense.report.reject`: back to the owner with a reason, and before the approver again."""

import pytest

from tests.packs.expenses.desk import Desk

REJECT = "expense.report.reject"


@pytest.mark.requirement("CMD-25")
async def test_a_rejected_report_says_why_and_can_be_submitted_again(desk: Desk) -> None:
    await desk.limit("shanghai", 100_000)
    report_id = await desk.submitted("alice", 4_200)

    await desk.run("mia", REJECT, report_id, reason="The hotel is missing")

    report = await desk.report(report_id, who="alice")
    assert (report["state"], report["reason"]) == ("rejected", "The hotel is missing")
    assert (await desk.budget("shanghai"))["submittedMinor"] == 0
    await desk.add("alice", report_id, 800)
    await desk.run("alice", "expense.report.submit", report_id)
    report = await desk.report(report_id)
    assert (report["state"], report["reason"]) == ("submitted", "")
    assert (await desk.budget("shanghai"))["submittedMinor"] == 5_000


async def test_a_rejection_taken_back_leaves_the_report_before_its_approver(desk: Desk) -> None:
    report_id = await desk.submitted("alice", 4_200)
    before = await desk.report(report_id)
    done = await desk.run("mia", REJECT, report_id, reason="Wrong month")

    undone = await desk.undo("mia", done)

    assert undone.undo is None, "an approval would not bring the rejection back"
    after = await desk.report(report_id)
    moves = {"version", "updatedAt"}
    assert {k: v for k, v in after.items() if k not in moves} == {
        k: v for k, v in before.items() if k not in moves
    }


async def test_a_rejection_needs_a_reason_and_a_submitted_report(desk: Desk) -> None:
    draft = await desk.draft("alice", 4_200)
    waiting = await desk.submitted("alice", 4_200)

    too_early = await desk.refused("mia", REJECT, draft, reason="No")
    silent = await desk.refused("mia", REJECT, waiting)
    empty = await desk.refused("mia", REJECT, waiting, reason="")

    assert (too_early.stage, too_early.reason) == ("state_check", "illegal_state")
    assert silent.reason == empty.reason == "invalid_input"
