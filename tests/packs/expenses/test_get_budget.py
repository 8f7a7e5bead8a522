"""`expense.budget.get`: the month of one's own organisation, or the nearest above it."""

import pytest

from tests.packs.expenses.desk import PERIOD, Desk

GET = "expense.budget.get"


@pytest.mark.requirement("CMD-25")
async def test_the_nearest_budget_counts_from_an_organisation_upwards(desk: Desk) -> None:
    await desk.limit("shanghai", 5_000)
    of_bob = await desk.submitted("bob", 100)  # of Sales, below Shanghai
    assert (await desk.budget("sales"))["limitMinor"] == 5_000
    await desk.limit("sales", 900)
    later = await desk.submitted("bob", 200)

    sales, shanghai = await desk.budget("sales"), await desk.budget("shanghai")

    assert (sales["limitMinor"], sales["submittedMinor"]) == (900, 200)
    assert shanghai["submittedMinor"] == 100
    assert (await desk.report(of_bob))["budget"]["id"] == shanghai["id"]
    assert (await desk.report(later))["budget"]["id"] == sales["id"]


@pytest.mark.requirement("CMD-3")
async def test_a_budget_is_seen_by_its_readers_and_by_whose_report_it_pays(desk: Desk) -> None:
    await desk.limit("shanghai", 5_000)
    before = await desk.refused("alice", GET, period=PERIOD)
    await desk.submitted("alice", 100)

    mine = await desk.run("alice", GET, period=PERIOD)
    manager = await desk.run("mia", GET, period=PERIOD)
    elsewhere = await desk.refused("bob", GET, period=PERIOD, orgId=desk.acme.orgs["shanghai"].id)

    assert (before.stage, before.reason) == ("handler", "record_not_found")
    assert mine.result["submittedMinor"] == 100
    assert manager.result["id"] == mine.result["id"]
    assert elsewhere.reason == "record_not_found"
