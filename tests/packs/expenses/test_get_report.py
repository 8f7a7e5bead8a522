"""`expense.report.get`: a report with everything that belongs to it, for those who reach it."""

import pytest

from tests.packs.expenses.desk import CARD, Desk

GET = "expense.report.get"


@pytest.mark.requirement("CMD-3", "CMD-25")
async def test_a_report_comes_with_its_lines_receipts_payment_and_budget(desk: Desk) -> None:
    await desk.limit("shanghai", 10_000)
    report_id = await desk.approved("alice", 4_200, 100)
    await desk.agreed("fiona", "frank", "expense.payment.send", report_id)

    report = await desk.report(report_id, who="alice")

    assert (report["state"], report["totalMinor"], len(report["lines"])) == ("paid", 4_300, 2)
    assert {line["receiptId"] for line in report["lines"]} == {
        receipt["id"] for receipt in report["receipts"]
    }
    assert report["payment"]["payeeAccount"] == CARD
    assert report["budget"]["paidMinor"] == 4_300
    assert report["budget"]["leftMinor"] == 5_700


@pytest.mark.requirement("CMD-3", "CMD-F18")
async def test_a_report_out_of_reach_looks_like_none(desk: Desk) -> None:
    of_alice = await desk.draft("alice", 100)
    gus = desk.world.person(desk.globex_gus)

    for who in ("bob", gus):
        refused = await desk.refused(who, GET, of_alice)
        unknown = await desk.refused(who, GET, "01JDXP5Y8GZ0000000000000AC")
        assert (refused.stage, refused.reason, refused.status) == (
            *("authorize", "record_not_found"),
            404,
        )
        assert refused.words("en") == unknown.words("en")
        assert refused.facts == unknown.facts
