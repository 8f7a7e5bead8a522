"""`expense.report.reopen`: a decision is taken back, until there is money on its way."""

import pytest

from tests.packs.expenses.desk import Desk

REOPEN = "expense.report.reopen"


@pytest.mark.requirement("CMD-25")
async def test_a_reopened_report_gives_its_budget_back_and_can_be_approved_again(
    desk: Desk,
) -> None:
    await desk.limit("shanghai", 5_000)
    report_id = await desk.approved("alice", 4_200)

    done = await desk.run("mia", REOPEN, report_id)

    report, budget = await desk.report(report_id), await desk.budget("shanghai")
    assert (report["state"], report["decidedBy"]) == ("submitted", None)
    assert (budget["approvedMinor"], budget["submittedMinor"]) == (0, 4_200)
    undone = await desk.undo("mia", done)
    assert undone.code == "expense.report.approve"
    assert (await desk.budget("shanghai"))["approvedMinor"] == 4_200


async def test_a_rejected_report_that_was_emptied_is_not_reopened(desk: Desk) -> None:
    report_id = await desk.submitted("alice", 4_200)
    await desk.run("mia", "expense.report.reject", report_id, reason="Wrong")
    line_id = (await desk.report(report_id))["lines"][0]["id"]
    await desk.run("alice", "expense.line.remove", report_id, lineId=line_id)

    refused = await desk.refused("mia", REOPEN, report_id)

    assert (refused.stage, refused.words("en")) == ("assert", "A report needs a line.")


async def test_only_decided_reports_are_reopened_and_not_by_their_owner(desk: Desk) -> None:
    desk.world.give(desk.acme["alice"], "manager", desk.acme.root)
    waiting, approved = await desk.submitted("bob", 100), await desk.approved("alice", 100)

    too_early = await desk.refused("mia", REOPEN, waiting)
    own = await desk.refused("alice", REOPEN, approved)

    assert (too_early.stage, too_early.reason) == ("state_check", "illegal_state")
    assert (own.stage, own.reason) == ("assert", "assertion_failed")
