"""`expense.report.approve`: who may, and how far a month's budget goes."""

import asyncio

import pytest

from app.commands.outcome import Done
from app.commands.refused import Refused
from tests.packs.expenses.desk import Desk

APPROVE = "expense.report.approve"


@pytest.mark.requirement("CMD-25")
async def test_a_manager_approves_reports_below_and_can_take_it_back(desk: Desk) -> None:
    await desk.limit("shanghai", 100_000)
    report_id = await desk.submitted("bob", 4_200)  # Sales stands below Shanghai
    before = await desk.report(report_id)

    done = await desk.run("mia", APPROVE, report_id)

    approved = await desk.report(report_id)
    budget = await desk.budget("shanghai")
    assert (approved["state"], approved["decidedBy"]) == ("approved", desk.acme["mia"].id)
    assert (budget["submittedMinor"], budget["approvedMinor"]) == (0, 4_200)
    assert budget["leftMinor"] == 95_800
    await desk.undo("mia", done)
    after = await desk.report(report_id)
    moves = {"version", "updatedAt"}
    assert {k: v for k, v in after.items() if k not in moves} == {
        k: v for k, v in before.items() if k not in moves
    }


async def test_other_organisations_reports_do_not_exist_for_a_manager(desk: Desk) -> None:
    report_id = await desk.submitted("fiona", 4_200)  # at the root

    refused = await desk.refused("mia", APPROVE, report_id)
    colleague = await desk.refused("alice", APPROVE, report_id)

    assert (refused.stage, refused.reason, refused.status) == (
        *("authorize", "record_not_found"),
        404,
    )
    assert (colleague.stage, colleague.reason) == ("authorize", "permission_denied")


@pytest.mark.requirement("CMD-4", "CMD-25")
async def test_nobody_approves_what_they_submitted_nor_what_is_their_own(desk: Desk) -> None:
    desk.world.give(desk.acme["alice"], "manager", desk.acme.root)
    report_id = await desk.submitted("alice", 4_200)
    recalled = await desk.draft("mia", 4_200)

    submitted = await desk.refused("alice", APPROVE, report_id)
    await desk.run("mia", "expense.report.submit", recalled)
    own = await desk.refused("mia", "expense.report.reject", recalled, reason="No")
    done = await desk.run("alice", APPROVE, recalled)

    assert (submitted.stage, submitted.reason) == ("sod_check", "sod_conflict")
    assert submitted.advice == "escalate_to_other_user"
    assert (own.stage, own.words("en")) == ("assert", "Nobody decides their own report.")
    assert done.record
    assert done.record["state"] == "approved"


@pytest.mark.requirement("CMD-25")
async def test_a_months_budget_is_not_exceeded_by_one_cent(desk: Desk) -> None:
    await desk.limit("shanghai", 10_000)
    fits, too_much = await desk.submitted("alice", 9_000), await desk.submitted("bob", 1_001)
    await desk.run("mia", APPROVE, fits)

    refused = await desk.refused("mia", APPROVE, too_much)

    budget = await desk.budget("shanghai")
    assert (refused.stage, refused.reason) == ("post_invariant", "invariant_failed")
    assert refused.words("zh-CN") == "当月预算不足以支付该报销单。"
    assert (budget["approvedMinor"], budget["submittedMinor"]) == (9_000, 1_001)
    assert (await desk.report(too_much))["state"] == "submitted"
    await desk.limit("shanghai", 10_001)
    await desk.run("mia", APPROVE, too_much)
    assert (await desk.budget("shanghai"))["leftMinor"] == 0


@pytest.mark.requirement("CMD-25", "CMD-F10")
async def test_approvals_at_the_same_time_share_one_budget(desk: Desk) -> None:
    await desk.limit("shanghai", 1_000)
    waiting = [await desk.submitted("alice", 300) for _ in range(6)]

    outcomes = await asyncio.gather(
        *(desk.run("mia", APPROVE, report_id) for report_id in waiting), return_exceptions=True
    )

    done = [each for each in outcomes if isinstance(each, Done)]
    refused = [each for each in outcomes if isinstance(each, Refused)]
    budget = await desk.budget("shanghai")
    assert (len(done), len(refused)) == (3, 3)
    assert {each.stage for each in refused} == {"post_invariant"}
    assert (budget["approvedMinor"], budget["submittedMinor"]) == (900, 900)


@pytest.mark.requirement("CMD-F10")
async def test_one_report_is_approved_once(desk: Desk) -> None:
    report_id = await desk.submitted("alice", 300)

    outcomes = await asyncio.gather(
        *(desk.run("mia", APPROVE, report_id) for _ in range(3)), return_exceptions=True
    )

    refused = [each for each in outcomes if isinstance(each, Refused)]
    assert len(refused) == 2
    assert {each.reason for each in refused} <= {"illegal_state", "version_conflict"}


async def test_a_budget_set_after_the_submission_counts_at_the_approval(desk: Desk) -> None:
    report_id = await desk.submitted("alice", 300)
    await desk.limit("shanghai", 200)

    refused = await desk.refused("mia", APPROVE, report_id)

    assert refused.stage == "post_invariant"
    await desk.limit("shanghai", None)
    await desk.run("mia", APPROVE, report_id)
