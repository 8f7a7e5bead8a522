"""`expense.report.void`: the end without money, for good."""

import pytest

from tests.packs.expenses.desk import Desk

VOID = "expense.report.void"


@pytest.mark.requirement("CMD-25")
async def test_a_voided_report_releases_its_budget_and_stays_so(desk: Desk) -> None:
    await desk.limit("shanghai", 5_000)
    report_id = await desk.approved("alice", 4_200)

    done = await desk.agreed("mia", "mia", VOID, report_id, reason="Paid by card")

    report = await desk.report(report_id)
    assert (report["state"], report["reason"]) == ("voided", "Paid by card")
    assert done.undo is None
    assert (await desk.budget("shanghai"))["leftMinor"] == 5_000
    for code in ("reopen", "approve"):
        refused = await desk.refused("mia", f"expense.report.{code}", report_id)
        assert (refused.stage, refused.reason) == ("state_check", "illegal_state")


async def test_only_approved_reports_of_others_are_voided(desk: Desk) -> None:
    desk.world.give(desk.acme["alice"], "manager", desk.acme.root)
    waiting, approved = await desk.submitted("bob", 100), await desk.approved("alice", 100)

    too_early = await desk.refused("mia", VOID, waiting, reason="No")
    own = await desk.refused("alice", VOID, approved, reason="Mine")

    assert (too_early.stage, too_early.reason) == ("state_check", "illegal_state")
    assert (own.stage, own.reason) == ("assert", "assertion_failed")
