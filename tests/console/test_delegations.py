"""What agents may do for me: seen in words, paused, narrowed, revoked (SEC-7)."""

import re
from datetime import timedelta

import pytest
from sqlmodel import Session, col, select

from app.audit.models import AuditEntry
from app.identity import agents, delegations
from app.identity.models import (
    AgentKind,
    AuthMethod,
    ClientSource,
    Delegation,
    OAuthClient,
    User,
)
from app.identity.oauth import clients
from app.identity.principal import Principal, Scope
from app.kernel import clock, db, ids
from app.kernel.db import Work
from tests.people import World


def current(row: Delegation) -> Delegation:
    return db.read_now(lambda session: session.get_one(Delegation, (row.tenant_id, row.id)))


def widen(world: World, user: User, *scopes: Scope) -> None:
    person = world.person(user)

    def more(work: Work) -> None:
        delegations.make_or_widen(work, person, world.acme.agents["stock"], scopes)

    db.transact_now(more)


@pytest.mark.requirement("UI-25")
async def test_an_agent_is_paused_and_goes_on(world: World) -> None:
    row = world.acme.delegations["alice"]
    path = f"/settings/delegations/{row.id}"
    async with world.client(world.acme["alice"]) as browser:
        page = await browser.get("/settings/delegations")
        assert "Stock" in page.text
        assert "Read what you may read" in page.text
        assert (await browser.post(f"{path}/pause")).status_code == 303
        assert current(row).paused_at is not None
        assert "Paused" in (await browser.get("/settings/delegations")).text
        assert (await browser.post(f"{path}/pause")).status_code == 409

        assert (await browser.post(f"{path}/resumption")).status_code == 303

    assert current(row).paused_at is None


@pytest.mark.requirement("SEC-7", "SEC-38")
async def test_scopes_are_taken_away_and_never_added_here(world: World) -> None:
    alice, row = world.acme["alice"], world.acme.delegations["alice"]
    widen(world, alice, Scope.COMMANDS_INVOKE)
    path = f"/settings/delegations/{row.id}"
    long_ago = timedelta(hours=1)  # to take away is asked of nobody twice
    async with world.client(alice, signed_in=long_ago) as browser:
        more = await browser.post(path, data={"scopes": ["commands.read", "audit.read"]})
        assert (more.status_code, "not add to it" in more.text) == (422, True)
        assert (await browser.post(path, data={})).status_code == 422
        assert (await browser.post(path, data={"scopes": ["commands.read"]})).status_code == 303

    assert current(row).scopes == ["commands.read"]


@pytest.mark.requirement("UI-25", "SEC-31")
async def test_a_delegation_is_revoked_after_a_question(world: World) -> None:
    row = world.acme.delegations["alice"]
    path = f"/settings/delegations/{row.id}/revocation"
    async with world.client(world.acme["alice"]) as browser:
        assert "Revoke this for good?" in (await browser.get(path)).text
        assert (await browser.post(path)).status_code == 303
        page = await browser.get("/settings/delegations")
        assert "No agent acts for you" in page.text
        assert "Ended" in page.text
        assert (await browser.post(path)).status_code == 409

    assert current(row).revoked_at is not None


async def test_somebody_elses_delegation_does_not_exist(world: World) -> None:
    row = world.acme.delegations["alice"]
    path = f"/settings/delegations/{row.id}"
    for user in (world.acme["olga"], world.globex["gus"]):
        async with world.client(user) as other:
            statuses = [
                (await other.get(path)).status_code,
                (await other.post(path, data={"scopes": ["commands.read"]})).status_code,
                (await other.post(f"{path}/pause")).status_code,
                (await other.post(f"{path}/resumption")).status_code,
                (await other.get(f"{path}/revocation")).status_code,
                (await other.post(f"{path}/revocation")).status_code,
            ]
        assert statuses == [404] * 6

    assert current(row).revoked_at is None


@pytest.mark.requirement("UI-31")
async def test_without_an_agent_the_page_says_what_would_be_here(world: World) -> None:
    async with world.client(world.acme["olga"]) as browser:
        assert "No agent acts for you" in (await browser.get("/settings/delegations")).text


@pytest.mark.requirement("SEC-7", "UI-25")
async def test_a_person_lets_an_agent_act_for_them(world: World) -> None:
    olga, stock = world.acme["olga"], world.acme.agents["stock"]
    async with world.client(olga) as browser:
        listed = await browser.get("/settings/delegations")
        assert f"/settings/delegations/new?agent={stock.id}" in listed.text
        assert "Administered by" in listed.text
        asked = await browser.get("/settings/delegations/new", params={"agent": stock.id})
        assert "cannot approve anything" in asked.text
        assert 'value="commands.invoke"' in asked.text
        assert "offline_access" not in asked.text, "that is for applications"
        sent = {"agent_id": stock.id, "scopes": ["commands.read", "catalog.read"]}
        made = await browser.post("/settings/delegations", data=sent)
        after = await browser.get("/settings/delegations")

    assert (made.status_code, made.headers["location"]) == (303, "/settings/delegations")
    assert f"new?agent={stock.id}" not in after.text, "it is no longer offered"
    (row,) = live_of(olga)
    assert (row.agent_id, row.scopes) == (stock.id, ["catalog.read", "commands.read"])
    assert row.expires_at is None
    entry = db.read_now(last_entry, olga)
    assert (entry.command, entry.user_id) == ("identity.delegation.create", olga.id)
    assert (entry.target_type, entry.target_id) == ("delegation", row.id)


@pytest.mark.requirement("SEC-7")
async def test_an_agent_that_acts_already_may_do_more_and_is_not_there_twice(world: World) -> None:
    alice, stock = world.acme["alice"], world.acme.agents["stock"]
    new = f"/settings/delegations/new?agent={stock.id}"
    async with world.client(alice) as browser:
        page = await browser.get(f"/settings/delegations/{world.acme.delegations['alice'].id}")
        assert new in page.text
        asked = await browser.get(new)
        assert "It may already" in asked.text
        assert 'value="commands.read"' not in asked.text
        sent = {"agent_id": stock.id, "scopes": "commands.invoke", "expires_at": "2999-01-01T00:00"}
        assert (await browser.post("/settings/delegations", data=sent)).status_code == 303
        (row,) = live_of(alice)
        assert row.id == world.acme.delegations["alice"].id
        assert row.scopes == ["commands.invoke", "commands.read"]
        assert row.expires_at is not None
        assert db.read_now(last_entry, alice).command == "identity.delegation.widen"

        widen(world, alice, *(each for each in Scope if each != Scope.OFFLINE_ACCESS))
        full = await browser.get(new)

    assert (full.status_code, full.headers["location"]) == (303, f"/settings/delegations/{row.id}")


@pytest.mark.requirement("SEC-6", "SEC-11")
async def test_only_a_published_agent_of_ones_own_organisation_can_be_chosen(world: World) -> None:
    draft, off, outside = db.transact_now(unfit_agents, world)
    foreign = world.globex.agents["stock"].id
    olga = world.acme["olga"]
    async with world.client(olga) as browser:
        listed = await browser.get("/settings/delegations")
        for agent_id in (draft, off, outside, foreign, ids.ulid(), "x", "\0", ""):
            asked = await browser.get("/settings/delegations/new", params={"agent": agent_id})
            sent = {"agent_id": agent_id, "scopes": "commands.read"}
            made = await browser.post("/settings/delegations", data=sent)
            assert (asked.status_code, made.status_code) == (404, 404), agent_id
            assert not agent_id or f"agent={agent_id}" not in listed.text

    assert live_of(olga) == []


async def test_what_cannot_be_given_is_said_at_its_field(world: World) -> None:
    olga, stock = world.acme["olga"], world.acme.agents["stock"]
    cases: list[tuple[dict[str, str], str, str]] = [
        ({"expires_at": "2999-01-01T00:00"}, "scopes", "Choose at least 1."),
        ({"scopes": "offline_access"}, "scopes", "Choose one of the offered values."),
        ({"scopes": "everything"}, "scopes", "Choose one of the offered values."),
        ({"scopes": "audit.read", "expires_at": "2001-01-01T00:00"}, "expires_at", "has passed"),
        ({"scopes": "audit.read", "expires_at": "soon"}, "expires_at", ""),
    ]
    async with world.client(olga) as browser:
        for sent, field, says in cases:
            answer = await browser.post(
                "/settings/delegations", data={"agent_id": stock.id, **sent}
            )
            assert answer.status_code == 422
            assert f'id="field-{field}-error"' in answer.text, sent
            assert says in answer.text
            assert f'value="{sent.get("expires_at", "")}"' in answer.text, "what was typed stays"
            if sent.get("scopes") == "audit.read":
                assert re.search(r'value="audit.read"[^>]* checked', answer.text)

    assert live_of(olga) == []


@pytest.mark.requirement("UI-31")
async def test_where_every_agent_acts_the_page_says_so(world: World) -> None:
    alice = world.acme["alice"]
    async with world.client(alice) as browser:
        sent = {"agent_id": world.acme.agents["expenses"].id, "scopes": "commands.read"}
        await browser.post("/settings/delegations", data=sent)
        page = await browser.get("/settings/delegations")

    assert "There is no further agent" in page.text


async def test_an_agents_own_page_leads_to_letting_it_act(world: World) -> None:
    stock = world.acme.agents["stock"]
    async with world.client(world.acme["ada"]) as browser:
        page = await browser.get(f"/admin/agents/{stock.id}")

    assert f'href="/settings/delegations/new?agent={stock.id}"' in page.text


async def test_two_agents_of_one_name_are_told_apart(world: World) -> None:
    olga = world.acme["olga"]
    db.transact_now(two_applications, world.person(olga))
    async with world.client(olga) as browser:
        page = await browser.get("/settings/delegations")

    assert page.text.count(">Desk</bdi></h2>") == 2
    assert "Describes itself at https://desk.example/client" in page.text
    assert "Registered by an administrator of yours" in page.text


def live_of(user: User) -> list[Delegation]:
    found = db.read_now(delegations.of_user, user.tenant_id, user.id)
    return [row for row, _ in found if row.revoked_at is None]


def last_entry(session: Session, user: User) -> AuditEntry:
    query = select(AuditEntry).where(AuditEntry.tenant_id == user.tenant_id)
    return session.exec(query.order_by(col(AuditEntry.seq).desc()).limit(1)).one()


def unfit_agents(work: Work, world: World) -> tuple[str, str, str]:
    """A draft, one that was disabled, and an outside application."""
    admin = world.acme_admin
    ada = world.acme["ada"]
    draft = agents.create(work, None, ada, code="draft", name="Draft")
    off = agents.create(work, None, ada, code="off", name="Off")
    agents.publish(work, None, off)
    agents.disable(work, admin, off)
    outside = agents.create(work, None, ada, code="outside", name="Outside")
    agents.publish(work, None, outside)
    outside.kind = AgentKind.EXTERNAL
    work.session.add(outside)
    return draft.id, off.id, outside.id


def two_applications(work: Work, person: Principal) -> None:
    """One that describes itself, and one that an administrator registered; both act."""
    registered, _ = clients.create(
        work, person, name="Desk", redirect_uris=["https://desk.example/cb"]
    )
    described = OAuthClient(
        id="https://desk.example/client",
        source=ClientSource.CIMD,
        name="Desk",
        auth_method=AuthMethod.NONE,
        created_at=clock.now(),
    )
    work.session.add(described)
    for client in (registered, described):
        agent, _ = agents.external_for(work, person, client)
        delegations.make_or_widen(work, person, agent, [Scope.COMMANDS_READ])
