"""Agents: releases never change, and a disabled one stops for everybody."""

import pytest
from sqlmodel import Session, select

from app.identity import agents
from app.identity.errors import NotUsableNow
from app.identity.facts import AccessChanged
from app.identity.models import Agent, AgentRelease, AgentStatus, OAuthClient
from app.identity.oauth import clients
from app.kernel import db, events
from app.kernel.db import Work
from app.kernel.errors import Conflict, Invalid
from tests.identity.test_users import live_families, open_family
from tests.people import World


def stock(work: Work, world: World) -> Agent:
    return agents.one(work.session, world.acme.id, world.acme.agents["stock"].id)


def edit(work: Work, world: World, instructions: str, version: int) -> None:
    agents.change(
        work,
        world.acme_admin,
        stock(work, world),
        name="Stock",
        description="",
        admin=world.acme["ada"],
        content={"instructions": instructions},
        expected_version=version,
    )


def publish(work: Work, world: World) -> AgentRelease:
    return agents.publish(work, world.acme_admin, stock(work, world))


def all_releases(session: Session, world: World) -> list[AgentRelease]:
    return list(agents.releases(session, world.acme.agents["stock"]))


def test_publishing_makes_one_release_for_each_content(world: World) -> None:
    first = db.transact_now(publish, world)
    db.transact_now(edit, world, "Count twice.", 1)
    second = db.transact_now(publish, world)
    third = db.transact_now(publish, world)

    assert (first.number, second.number, third.number) == (1, 2, 2)
    assert first.content_sha256 != second.content_sha256
    kept = db.read_now(all_releases, world)
    assert [each.content["instructions"] for each in kept] == ["Count twice.", "You are Stock."]


def test_an_old_draft_does_not_overwrite_a_newer_one(world: World) -> None:
    db.transact_now(edit, world, "New.", 1)

    with pytest.raises(Conflict):
        db.transact_now(edit, world, "Old.", 1)


@pytest.mark.requirement("SEC-31", "SEC-33")
def test_a_disabled_agent_stops_for_everybody_and_its_tokens_stay_ended(world: World) -> None:
    db.transact_now(open_family, world)
    heard: list[AccessChanged] = []
    end = events.subscribe(AccessChanged, heard.append)

    db.transact_now(lambda work: agents.disable(work, world.acme_admin, stock(work, world)))
    with pytest.raises(NotUsableNow):
        db.transact_now(publish, world)
    db.transact_now(lambda work: agents.enable(work, world.acme_admin, stock(work, world)))

    end()
    assert [news.agent_id for news in heard if news.ends] == [world.acme.agents["stock"].id]
    for login in ("alice", "bob"):
        assert db.read_now(live_families, world.acme[login]) == []
    current = db.read_now(agents.one, world.acme.id, world.acme.agents["stock"].id)
    assert current.status == AgentStatus.PUBLISHED


@pytest.mark.parametrize("code", ["", "1st", "Big", "with space", "stock"])
def test_a_code_is_short_plain_and_free(world: World, code: str) -> None:
    def make(work: Work) -> None:
        agents.create(work, world.acme_admin, world.acme["ada"], code=code, name="x")

    with pytest.raises(Invalid):
        db.transact_now(make)


def test_an_application_is_an_agent_from_its_first_consent_on(world: World) -> None:
    def let_in(work: Work, name: str) -> tuple[str, int]:
        query = select(OAuthClient).where(OAuthClient.name == "Desk")
        client = work.session.exec(query).first()
        if client is None:
            client, _ = clients.create(
                work, world.acme_admin, name="Desk", redirect_uris=["https://desk.example/cb"]
            )
        client.metadata_sha256 = name
        agent, release = agents.external_for(work, world.acme_admin, client)
        return agent.id, release.number

    first = db.transact_now(let_in, "one")
    same = db.transact_now(let_in, "one")
    other = db.transact_now(let_in, "two")

    assert first == same
    assert other == (first[0], 2)
