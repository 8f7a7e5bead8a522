"""`expense.line.add`: a line, its receipt, and the report's new total."""

import asyncio

import pytest

from app.commands.refused import Refused
from tests.packs.expenses.desk import Desk


@pytest.mark.requirement("CMD-25")
async def test_lines_add_up_and_each_can_be_taken_back(desk: Desk) -> None:
    report_id = await desk.draft("alice", 4_200)

    added = await desk.add(
        *("alice", report_id, 30_000), receiptNumber="044031900111", receiptIssuer="Hotel"
    )

    report = await desk.report(report_id)
    assert (report["totalMinor"], report["lineCount"]) == (34_200, 2)
    assert added.result["totalMinor"] == 34_200
    assert [line["amountMinor"] for line in report["lines"]] == [4_200, 30_000]
    assert report["receipts"][-1]["issuer"] == "Hotel"
    await desk.undo("alice", added)
    report = await desk.report(report_id)
    assert (report["totalMinor"], report["lineCount"], len(report["receipts"])) == (4_200, 1, 1)


async def test_a_rejected_report_takes_lines_and_a_submitted_one_does_not(desk: Desk) -> None:
    report_id = await desk.submitted("alice", 4_200)

    refused = await _refused(desk, report_id)
    await desk.run("mia", "expense.report.reject", report_id, reason="The hotel is missing")
    await desk.add("alice", report_id, 100)

    assert (refused.stage, refused.reason) == ("assert", "assertion_failed")
    assert (await desk.report(report_id))["totalMinor"] == 4_300


async def test_what_is_no_expense_is_refused(desk: Desk) -> None:
    report_id = await desk.draft("alice")
    for bad in (
        {"amountMinor": 0},
        {"amountMinor": 1.5},
        {"amountMinor": "12"},
        {"amountMinor": 10**12},
        {"spentOn": "2026-02-30"},
        {"category": "fun"},
        {"description": ""},
    ):
        refused = await _refused(desk, report_id, **bad)
        assert (refused.stage, refused.reason) == ("schema_validate", "invalid_input"), bad

    nameless = await _refused(desk, report_id, receiptIssuer="Hotel")
    assert (nameless.stage, nameless.reason) == ("cross_field_validation", "cross_field_failed")
    assert (await desk.report(report_id))["lineCount"] == 0


@pytest.mark.requirement("CMD-25")
async def test_lines_added_at_the_same_time_are_all_in_the_total(desk: Desk) -> None:
    report_id = await desk.draft("alice")

    await asyncio.gather(*(desk.add("alice", report_id, 100) for _ in range(8)))

    report = await desk.report(report_id)
    assert (report["totalMinor"], report["lineCount"]) == (800, 8)


async def _refused(desk: Desk, report_id: str, **sent: object) -> Refused:
    line = {
        "spentOn": "2026-10-14",
        "category": "meals",
        "description": "Lunch",
        "amountMinor": 100,
    }
    return await desk.refused("alice", "expense.line.add", report_id, **{**line, **sent})
