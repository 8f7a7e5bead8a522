"""`expense.budget.set`: finance limits a month, and lifts the limit again."""

import asyncio

import pytest

from tests.packs.expenses.desk import PERIOD, Desk

SET = "expense.budget.set"


@pytest.mark.requirement("CMD-25")
async def test_a_limit_is_set_changed_and_taken_back(desk: Desk) -> None:
    first = await desk.limit("shanghai", 5_000)
    second = await desk.limit("shanghai", 7_000)

    assert first.result["id"] == second.result["id"]
    await desk.undo("fiona", second)
    assert (await desk.budget("shanghai"))["limitMinor"] == 5_000
    await desk.undo("fiona", first)
    org = desk.acme.orgs["shanghai"].id
    none = await desk.refused("fiona", "expense.budget.get", orgId=org, period=PERIOD)
    assert none.reason == "record_not_found"


async def test_only_who_sets_budgets_there_does(desk: Desk) -> None:
    org = desk.acme.orgs["shanghai"].id
    foreign = desk.world.globex.root.id
    wanted = {"period": PERIOD, "limitMinor": 1}

    member = await desk.refused("mia", SET, orgId=org, **wanted)
    elsewhere = await desk.refused("fiona", SET, orgId=foreign, **wanted)
    below_zero = await desk.refused("fiona", SET, orgId=org, period=PERIOD, limitMinor=-1)

    assert (member.stage, member.reason) == ("authorize", "permission_denied")
    assert (elsewhere.stage, elsewhere.reason) == ("handler", "record_not_found")
    assert below_zero.reason == "invalid_input"


async def test_a_month_made_twice_at_once_is_one(desk: Desk) -> None:
    done = await asyncio.gather(desk.limit("shanghai", 5_000), desk.limit("shanghai", 5_000))

    assert len({each.result["id"] for each in done}) == 1
