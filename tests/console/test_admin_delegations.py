"""Delegations of everybody are listed, filtered and revoked, as far as one's permission reaches."""

import re

import pytest

from app.identity import delegations
from app.kernel import db
from tests.people import World


def rows(page: str) -> list[str]:
    return re.findall(r'<th scope="row"><a href="/admin/users/\w+" dir="auto">([^<]+)</a>', page)


@pytest.mark.requirement("SEC-31")
async def test_a_revoked_delegation_ends_and_stays_on_record(world: World) -> None:
    ada = world.client(world.acme["ada"])
    path = f"/admin/delegations/{world.acme.delegations['alice'].id}/revocation"

    asked = await ada.get(path)
    done = await ada.post(path)
    twice = await ada.post(path)

    assert "Stop Stock from acting for Alice Wang 王爱丽?" in asked.text
    assert (done.status_code, twice.status_code) == (303, 409)
    assert rows((await ada.get("/admin/delegations")).text) == ["陈博 Bob Chen"]
    ended = await ada.get("/admin/delegations", params={"state": "ended"})
    assert rows(ended.text) == ["Alice Wang 王爱丽"]
    stock = world.acme.agents["stock"].id
    live = db.read_now(delegations.live, world.acme.id, world.acme["alice"].id, stock)
    assert live is None


async def test_delegations_are_found_by_person_and_by_agent(world: World) -> None:
    ada = world.client(world.acme["ada"])

    person = await ada.get("/admin/delegations", params={"q": "博"})
    agent = await ada.get("/admin/delegations", params={"q": "stock alice"})
    none = await ada.get("/admin/delegations", params={"q": "expenses"})
    other = await ada.get("/admin/delegations", params={"state": "'; --"})

    assert rows(person.text) == ["陈博 Bob Chen"]
    assert rows(agent.text) == ["Alice Wang 王爱丽"]
    assert rows(none.text) == []
    assert other.status_code == 422


async def test_a_lead_sees_those_of_the_people_below(world: World) -> None:
    grants = {"identity.delegation.read": "org", "identity.delegation.manage": "org"}
    world.give(world.acme["bob"], "lead", world.acme.orgs["sales"], grants=grants)
    bob = world.client(world.acme["bob"])

    listed = await bob.get("/admin/delegations")
    beyond = await bob.post(f"/admin/delegations/{world.acme.delegations['alice'].id}/revocation")

    assert rows(listed.text) == ["陈博 Bob Chen"]
    assert beyond.status_code == 404


@pytest.mark.requirement("UI-31")
async def test_nothing_paused_says_what_would_be_here(world: World) -> None:
    page = await world.client(world.acme["ada"]).get(
        "/admin/delegations", params={"state": "paused"}
    )

    assert "No delegation here" in page.text
