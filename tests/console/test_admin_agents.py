"""Agents are made as drafts, published as releases that never change, and stopped for everybody."""

import re

import pytest

from app.identity import agents
from app.identity.models import Agent, AgentStatus
from app.kernel import db
from tests.people import World


def current(world: World, code: str = "stock") -> Agent:
    found = db.read_now(agents.by_code, world.acme.id, code)
    assert found is not None
    return found


def fields(world: World, **changed: str) -> dict[str, str]:
    return {
        "name": "Travel desk",
        "description": "Books trips.",
        "instructions": "You book trips.\nAsk before you pay.",
        "admin_user_id": world.acme["ada"].id,
        **changed,
    }


async def test_an_agent_begins_as_a_draft_and_is_published(world: World) -> None:
    ada = world.client(world.acme["ada"])

    made = await ada.post("/admin/agents", data=fields(world, code="travel"))
    path = made.headers["location"]
    draft = await ada.get(path)
    published = await ada.post(f"{path}/releases")
    again = await ada.post(f"{path}/releases")
    release = await ada.get(f"{path}/releases/1")

    assert made.status_code == published.status_code == again.status_code == 303
    assert "nobody can let it act before it is published" in draft.text
    assert current(world, "travel").status == AgentStatus.PUBLISHED
    assert len(db.read_now(agents.releases, current(world, "travel"))) == 1
    assert "Ask before you pay." in release.text
    assert re.search(r"\b[0-9a-f]{64}\b", release.text)


async def test_what_runs_stays_the_release_until_the_next(world: World) -> None:
    ada = world.client(world.acme["ada"])
    path = f"/admin/agents/{world.acme.agents['stock'].id}"

    await ada.post(path, data=fields(world, version="1"))
    page = await ada.get(path)
    first = await ada.get(f"{path}/releases/1")
    await ada.post(f"{path}/releases")
    second = await ada.get(f"{path}/releases/2")

    assert "The draft says something that no release says yet." in page.text
    assert "You are Stock." in first.text
    assert "You book trips." in second.text
    assert (await ada.get(f"{path}/releases/3")).status_code == 404
    assert (await ada.get(f"{path}/releases/one")).status_code == 404


async def test_a_taken_code_is_said_at_its_field(world: World) -> None:
    ada = world.client(world.acme["ada"])

    taken = await ada.post("/admin/agents", data=fields(world, code="stock"))
    odd = await ada.post("/admin/agents", data=fields(world, code="No Good!"))

    assert (taken.status_code, odd.status_code) == (422, 422)
    assert 'id="field-code-error"' in taken.text
    assert "Use small letters, digits and hyphens." in odd.text
    assert "Ask before you pay." in odd.text, "what was typed"


async def test_two_who_edit_an_agent_at_once_lose_nothing(world: World) -> None:
    ada = world.client(world.acme["ada"])
    path = f"/admin/agents/{world.acme.agents['stock'].id}"
    await ada.post(path, data=fields(world, version="1", name="First"))

    second = await ada.post(path, data=fields(world, version="1", name="Second"))

    assert second.status_code == 422
    assert "Meanwhile somebody else saved this" in second.text
    assert "First" in second.text
    assert 'value="Second"' in second.text
    assert current(world).name == "First"


@pytest.mark.requirement("SEC-31")
async def test_disabling_says_for_whom_it_stops_and_stops_it(world: World) -> None:
    ada = world.client(world.acme["ada"])
    path = f"/admin/agents/{world.acme.agents['stock'].id}"

    asked = await ada.get(f"{path}/deactivation")
    done = await ada.post(f"{path}/deactivation")
    twice = await ada.post(f"{path}/deactivation")
    published = await ada.post(f"{path}/releases")
    enabled = await ada.post(f"{path}/activation")

    assert "It stops acting for 2 people." in asked.text
    assert (done.status_code, twice.status_code) == (303, 409)
    assert published.status_code == 409
    assert enabled.status_code == 303
    assert current(world).status == AgentStatus.PUBLISHED


async def test_agents_are_found_and_filtered(world: World) -> None:
    ada = world.client(world.acme["ada"])

    chinese = await ada.get("/admin/agents", params={"q": "报"})
    outside = await ada.get("/admin/agents", params={"kind": "external"})
    odd = await ada.get("/admin/agents", params={"kind": "alien"})

    assert "报销助手" in chinese.text
    assert ">Stock<" not in chinese.text
    assert "No agent matches" in outside.text
    assert odd.status_code == 422


async def test_whoever_only_reads_changes_nothing(world: World) -> None:
    axel = world.client(world.acme["axel"])
    path = f"/admin/agents/{world.acme.agents['stock'].id}"

    page = await axel.get(path)
    refused = await axel.post(f"{path}/deactivation")

    assert page.status_code == 200
    assert "/edit" not in page.text
    assert refused.status_code == 403
    assert current(world).status == AgentStatus.PUBLISHED
