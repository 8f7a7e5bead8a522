"""`/v1/audit`: programs read the trail with the rights of their user, where they were let."""

import csv
import io

import orjson
import pytest

from app.audit import trail
from app.identity import delegations, users
from app.identity.models import User
from app.identity.oauth import operator
from app.identity.principal import Scope
from app.kernel import db, rates
from app.kernel.db import Work
from tests.audit import trails
from tests.people import World


@pytest.mark.requirement("CMD-7", "CMD-21")
async def test_a_person_reads_entries_in_pages_by_the_filters_of_the_page(world: World) -> None:
    for number in range(60):
        append(world, "alice", target_id=str(number), risk="L3", reversible=False)
    axel = world.client(world.acme["axel"])

    first = (await axel.get("/v1/audit?user=alice&risk=L3&irreversible=yes")).json()
    second = (await axel.get("/v1/audit", params={"risk": "L3", "after": first["next"]})).json()
    one = (await axel.get(f"/v1/audit/{first['items'][0]['seq']}")).json()
    odd = await axel.get("/v1/audit?risk=L9&from=yesterday")

    assert [item["targetId"] for item in first["items"]] == [str(n) for n in range(59, 9, -1)]
    assert [item["targetId"] for item in second["items"]] == [str(n) for n in range(9, -1, -1)]
    assert (first["previous"], second["next"]) == (None, None)
    assert one == first["items"][0]
    assert (one["userId"], one["risk"]) == (
        world.acme["alice"].id,
        "L3",
    )
    assert odd.status_code == 422


@pytest.mark.requirement("CMD-7")
async def test_an_agent_reads_what_its_user_reads_where_it_was_let(world: World) -> None:
    hers, bobs = append(world, "alice"), append(world, "bob")
    without = token(world, "alice", "stock")
    db.transact_now(_let, world, world.acme["alice"], "expenses")
    db.transact_now(_let, world, world.acme["axel"], "expenses")
    for_alice, for_axel = token(world, "alice", "expenses"), token(world, "axel", "expenses")
    program = world.anonymous()

    refused = [
        await program.get(path, headers=without)
        for path in ("/v1/audit", "/v1/audit/1", "/v1/audit.csv", "/v1/audit.jsonl")
    ]
    own = (await program.get("/v1/audit", headers=for_alice)).json()
    every = (await program.get("/v1/audit", headers=for_axel)).json()
    foreign = await program.get(f"/v1/audit/{bobs}", headers=for_alice)

    assert [(a.status_code, a.json()["reason"]) for a in refused] == (
        [(403, "insufficient_scope")] * 4
    )
    assert {hers, bobs} & seqs(own) == {hers}
    assert {hers, bobs} <= seqs(every)
    assert foreign.status_code == 404
    assert (await program.get("/v1/audit")).status_code == 401


@pytest.mark.requirement("SEC-79", "SEC-54", "CMD-7")
async def test_files_are_those_of_the_page_and_say_which_agent_took_them(world: World) -> None:
    seq = append(world, "alice", target_id="@x")
    db.transact_now(_let, world, world.acme["axel"], "expenses")
    program, who = world.anonymous(), token(world, "axel", "expenses")

    lines = (await program.get("/v1/audit.jsonl?user=alice", headers=who)).text.splitlines()
    table = await program.get("/v1/audit.csv?user=alice", headers=who)
    entries = (await program.get("/v1/audit?command=audit.export", headers=who)).json()["items"]

    agent = world.acme.agents["expenses"].id
    about = orjson.loads(lines[0])
    found = list(csv.DictReader(io.StringIO(table.content.decode("utf-8-sig"), newline="")))
    assert (about["filters"], about["agent"]) == ({"user": "alice"}, agent)
    assert about["head"]["seq"] >= seq
    assert orjson.loads(lines[1])["target_id"] == found[0]["target_id"][1:] == "@x"
    assert found[0]["at"].endswith("+00:00")
    assert {(e["agentId"], e["userId"]) for e in entries} == {(agent, world.acme["axel"].id)}


@pytest.mark.requirement("CMD-7")
async def test_the_chain_is_verified_for_those_who_read_all_of_it(
    world: World, opened: str
) -> None:
    seq = append(world, "alice")
    axel, alice = world.client(world.acme["axel"]), world.client(world.acme["alice"])

    good = (await axel.get("/v1/audit/verify")).json()
    refused = await alice.get("/v1/audit/verify")
    trails.unlocked(opened, f"UPDATE audit_entry SET reason = 'x' WHERE seq = {seq}")  # noqa: S608
    bad = (await axel.get("/v1/audit/verify")).json()
    rates.of_process.cache_clear()
    often = [(await axel.get("/v1/audit/verify")).status_code for _ in range(7)]

    assert (good["ok"], good["firstBad"], good["problems"]) == (True, None, [])
    assert good["entries"] == good["head"] >= seq
    assert refused.status_code == 403
    assert (bad["ok"], bad["firstBad"]) == (False, seq)
    assert bad["problems"][0]["what"].startswith("The entry was changed")
    assert often == [200] * 6 + [429]


async def test_what_is_no_number_is_no_entry(world: World) -> None:
    axel = world.client(world.acme["axel"])

    for odd in ("0", "-1", "1.0", "x", "9" * 9, "9" * 400, "%00", "\u0661"):
        assert (await axel.get(f"/v1/audit/{odd}")).status_code == 404, odd


def append(world: World, login: str, **more: object) -> int:
    """Put a call of somebody in Acme on record; the number of its entry."""
    user = world.acme[login]
    given = {"user_id": user.id, "org_id": user.org_id, **more}
    return db.transact_now(trail.append, trails.entry(world.acme.id, **given))


def token(world: World, login: str, agent: str) -> dict[str, str]:
    """The headers of an agent that acts for somebody in Acme."""
    made = db.transact_now(operator.mint, f"acme/{login}", agent, "api")
    return {"Authorization": f"Bearer {made}"}


def seqs(page: dict[str, list[dict[str, int]]]) -> set[int]:
    """The numbers of a page's entries."""
    return {item["seq"] for item in page["items"]}


def _let(work: Work, world: World, user: User, agent: str) -> None:
    row = users.one(work.session, user.tenant_id, user.id)
    delegations.make_for(work, row, world.acme.agents[agent], [Scope.AUDIT_READ])
