"""`expense.report.create`: a number of its own, the owner's account, readable at once."""

import pytest

from tests.packs.expenses.desk import CARD, PERIOD, Desk

CREATE = "expense.report.create"


@pytest.mark.requirement("CMD-25")
async def test_a_new_report_has_a_number_and_is_paid_like_the_one_before(desk: Desk) -> None:
    first = await desk.run("alice", CREATE, title="Trip", period=PERIOD, payeeAccount=CARD)
    second = await desk.run("alice", CREATE, title="Fair", period=PERIOD)
    of_bob = await desk.run("bob", CREATE, title="Taxi", period=PERIOD, currency="EUR")

    assert [done.result["number"] for done in (first, second, of_bob)] == [
        *("EXP-1", "EXP-2"),
        "EXP-3",
    ]
    report = await desk.report(str(second.result["reportId"]), who="alice")
    assert (report["state"], report["currency"], report["totalMinor"]) == ("draft", "CNY", 0)
    assert report["payeeName"] == desk.acme["alice"].display_name
    assert report["payeeAccount"] == CARD
    assert report["orgId"] == desk.acme["alice"].org_id
    assert (await desk.report(str(of_bob.result["reportId"])))["payeeAccount"] == ""


async def test_what_is_no_month_currency_or_account_is_refused(desk: Desk) -> None:
    good = {"title": "Trip", "period": PERIOD}
    for field, bad in (
        ("title", ""),
        ("period", "2026-13"),
        ("currency", "yuan"),
        ("payeeAccount", "'; DROP"),
        ("totalMinor", 5),
    ):
        refused = await desk.refused("alice", CREATE, **{**good, field: bad})

        assert (refused.stage, refused.reason) == ("schema_validate", "invalid_input")
        assert refused.errors


@pytest.mark.requirement("CMD-25")
async def test_taking_a_creation_back_leaves_nothing_of_it(desk: Desk) -> None:
    done = await desk.run("alice", CREATE, title="Trip", period=PERIOD)

    undone = await desk.undo("alice", done)

    gone = await desk.refused("alice", "expense.report.get", str(done.result["reportId"]))
    assert undone.code == "expense.report.discard"
    assert gone.reason == "record_not_found"
