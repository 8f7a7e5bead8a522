"""`expense.report.list`: what each person may see, page by page."""

import pytest

from tests.packs.expenses.desk import Desk

LIST = "expense.report.list"


@pytest.mark.requirement("CMD-3", "CMD-25")
async def test_everybody_sees_their_part_and_no_more(desk: Desk) -> None:
    of_alice = await desk.draft("alice", 100)
    of_bob = await desk.submitted("bob", 100)
    of_fiona = await desk.draft("fiona", 100)
    gus = desk.world.person(desk.globex_gus)

    seen = {
        who: {row["id"] for row in (await desk.run(who, LIST)).result["reports"]}
        for who in ("alice", "bob", "mia", "fiona", "axel")
    }

    assert seen == {
        "alice": {of_alice},
        "bob": {of_bob},
        "mia": {of_alice, of_bob},
        "fiona": {of_alice, of_bob, of_fiona},
        "axel": {of_alice, of_bob, of_fiona},
    }
    assert (await desk.run(gus, LIST)).result["reports"] == []
    rows = (await desk.run("mia", LIST)).result["reports"]
    assert [row["ownerName"] for row in rows] == [
        desk.acme["bob"].display_name,
        desk.acme["alice"].display_name,
    ]


async def test_filters_narrow_and_pages_follow_each_other(desk: Desk) -> None:
    ids = [await desk.draft("alice") for _ in range(5)]
    await desk.run("alice", "expense.report.update", ids[1], title="上海 Fair")
    await desk.add("alice", ids[3], 100)
    await desk.run("alice", "expense.report.submit", ids[3])

    async def found(**asked: object) -> list[str]:
        return [row["id"] for row in (await desk.run("fiona", LIST, **asked)).result["reports"]]

    assert await found(state="submitted") == [ids[3]]
    assert await found(q="fair 上海") == [ids[1]]
    assert await found(q="exp-5") == [ids[4]]
    assert await found(ownerId=desk.acme["bob"].id) == []
    assert await found(period="2026-09") == []
    first = (await desk.run("fiona", LIST, limit=2)).result
    second = (await desk.run("fiona", LIST, limit=2, cursor=first["nextCursor"])).result
    third = (await desk.run("fiona", LIST, limit=2, cursor=second["nextCursor"])).result
    pages = [[row["id"] for row in page["reports"]] for page in (first, second, third)]
    assert pages == [ids[:2:-1], ids[2:0:-1], ids[:1]]
    assert third["nextCursor"] is None
