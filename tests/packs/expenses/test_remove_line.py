"""`expense.line.remove`: a line goes with its receipt, and comes back with both."""

import pytest

from tests.packs.expenses.desk import Desk

REMOVE = "expense.line.remove"
OURS = ("spentOn", "category", "description", "amountMinor")


@pytest.mark.requirement("CMD-25")
async def test_a_removed_line_comes_back_as_it_was(desk: Desk) -> None:
    report_id = await desk.draft("alice", 4_200)
    added = await desk.add(
        *("alice", report_id, 30_000), receiptNumber="044031900111", receiptIssuer="Hotel"
    )
    before = await desk.report(report_id)

    removed = await desk.run("alice", REMOVE, report_id, lineId=added.result["lineId"])

    report = await desk.report(report_id)
    assert (report["totalMinor"], len(report["receipts"])) == (4_200, 1)
    await desk.undo("alice", removed)
    after = await desk.report(report_id)
    assert after["totalMinor"] == before["totalMinor"]
    assert [[line[name] for name in OURS] for line in after["lines"]] == [
        [line[name] for name in OURS] for line in before["lines"]
    ]
    assert [(each["number"], each["issuer"]) for each in after["receipts"]] == [
        (each["number"], each["issuer"]) for each in before["receipts"]
    ]


@pytest.mark.requirement("CMD-F18")
async def test_a_line_of_another_report_is_as_unknown_as_none(desk: Desk) -> None:
    report_id = await desk.draft("alice", 4_200)
    other = await desk.draft("alice", 100)
    of_bob = await desk.draft("bob", 100)
    foreign = [
        (await desk.report(other))["lines"][0]["id"],
        (await desk.report(of_bob))["lines"][0]["id"],
        "01JDXP5Y8GZ0000000000000AC",
    ]

    for line_id in foreign:
        refused = await desk.refused("alice", REMOVE, report_id, lineId=line_id)
        assert (refused.stage, refused.reason, refused.status) == (
            *("handler", "record_not_found"),
            404,
        )
    assert (await desk.report(of_bob))["lineCount"] == 1


async def test_a_submitted_report_keeps_its_lines(desk: Desk) -> None:
    report_id = await desk.submitted("alice", 4_200)
    line_id = (await desk.report(report_id))["lines"][0]["id"]

    refused = await desk.refused("alice", REMOVE, report_id, lineId=line_id)

    assert (refused.stage, refused.reason) == ("assert", "assertion_failed")
