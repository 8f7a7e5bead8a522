"""Somebody is disabled while a hundred things of theirs are under way: none is written after."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest
from sqlmodel import Session, col, select

from app.audit.models import AuditEntry
from app.identity import cookies, links, orgs, roles, users
from app.identity.models import LinkPurpose, Org, User
from app.identity.principal import Principal
from app.kernel import db
from app.kernel.db import Work
from tests.api import streaming
from tests.api.streaming import Client, SignedIn
from tests.identity.oauth import flow as f
from tests.identity.oauth.flow import OFFLINE, Flow, Pkce
from tests.people import World
from tests.signing_in import PASSWORD, give_password, hidden, send

PATIENCE_S = 20
IN_FLIGHT = 100


@pytest.mark.requirement("SEC-T41", "SEC-33", "SEC-31")
async def test_nothing_of_a_disabled_person_commits_after_the_deactivation(
    flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, ada = flow.world, flow.world.acme["ada"]
    give_password(ada)
    attempts = await everything_of(flow, ada)
    olga = world.person(world.acme["olga"])
    known = db.read_now(names)

    with held(monkeypatch, len(attempts)) as requests:
        sent = [asyncio.ensure_future(attempt()) for attempt in attempts]
        await requests.until_all_wait()
        await requests.genuine(disable, olga, ada.id)
    answers = await asyncio.gather(*sent)

    statuses = {answer.status_code for answer in answers}
    assert statuses <= {400, 401, 403, 404, 422}, statuses
    assert db.read_now(done_after_the_deactivation, ada) == []
    assert db.read_now(names) == known
    assert world.user(ada).display_name == "Ada Lin"


@pytest.mark.requirement("SEC-T41", "SEC-33")
async def test_a_unit_that_has_begun_loses_to_a_deactivation_that_commits(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, olga = world.acme["ada"], world.person(world.acme["olga"])
    begun, go_on = threading.Event(), threading.Event()
    genuine = orgs.create

    def slowly(work: Work, *args: Any) -> Org:
        begun.set()
        assert db.is_sqlite() or go_on.wait(PATIENCE_S)  # one writer: nobody comes between
        return genuine(work, *args)

    monkeypatch.setattr(orgs, "create", slowly)
    browser = world.client(ada)

    form = {"name": "Too late", "parent_id": world.acme.root.id}
    sent = asyncio.ensure_future(browser.post("/admin/orgs", data=form))
    await asyncio.to_thread(begun.wait, PATIENCE_S)
    await db.transaction(disable, olga, ada.id)
    go_on.set()
    answer = await sent

    was_first = db.is_sqlite()
    assert ("Too late" in db.read_now(names)) is was_first
    assert answer.status_code == (303 if was_first else 401)
    assert db.read_now(done_after_the_deactivation, ada) == []


@pytest.mark.requirement("SEC-T41", "SEC-33", "SEC-27")
async def test_enabling_somebody_again_brings_nothing_back(flow: Flow) -> None:
    world, ada = flow.world, flow.world.acme["ada"]
    give_password(ada)
    client_id, _ = flow.register()
    tokens = await flow.tokens(client_id, user=ada, scope=OFFLINE, resource=flow.resource("v1"))
    browser, reset = world.client(ada), db.transact_now(link_for, ada)
    pkce = Pkce.new()
    code = await flow.code(client_id, pkce, user=ada)
    olga = world.person(world.acme["olga"])
    assert (await browser.get("/welcome")).status_code == 200
    assert (await flow.me(tokens["access_token"])).status_code == 200

    db.transact_now(disable, olga, ada.id)
    db.transact_now(enable, olga, ada.id)

    assert (await browser.get("/welcome")).status_code == 303
    assert (await flow.me(tokens["access_token"])).status_code == 401
    assert (await flow.refresh(client_id, tokens["refresh_token"])).status_code == 400
    assert (await flow.redeem(client_id, code, pkce)).status_code == 400
    assert (await world.anonymous().get(f"/reset/{reset}")).status_code == 404
    again = await send(world.anonymous(), "/sign-in", tenant="acme", login="ada", password=PASSWORD)
    assert again.status_code == 303, "the account itself is back"


@pytest.mark.requirement("SEC-T41", "SEC-31")
async def test_streams_of_a_disabled_person_close_and_nobody_elses(world: World) -> None:
    ada, alice = world.acme["ada"], world.acme["alice"]
    olga = world.person(world.acme["olga"])
    with streaming.served() as port:
        async with (
            Client.connected(port, signed_in(world, ada)) as first,
            Client.connected(port, signed_in(world, ada)) as second,
            Client.connected(port, signed_in(world, alice)) as other,
        ):
            for client in (first, second, other):
                assert (await client.until("ready")).name == "ready"

            await db.transaction(disable, olga, ada.id)

            await first.rest()
            await second.rest()
            await streaming.until_open(lambda count: count == 1)  # alice still listens


@pytest.mark.requirement("SEC-9", "SEC-32", "SEC-3")
async def test_a_role_that_was_taken_away_counts_no_more_on_the_next_request(
    flow: Flow,
) -> None:
    world, bob = flow.world, flow.world.acme["bob"]
    clerk = world.give(bob, "clerk", world.acme.root, grants={"identity.org.manage": "all"})
    browser = world.client(bob)
    token = await flow.access_token("v1", user=bob)
    form = {"name": "Allowed", "parent_id": world.acme.root.id}
    assert (await browser.post("/admin/orgs", data=form)).status_code == 303
    assert (await flow.me(token)).status_code == 200

    db.transact_now(take_away, world.person(world.acme["olga"]), bob, clerk.id)

    refused = await browser.post("/admin/orgs", data={**form, "name": "Refused"})
    assert refused.status_code == 403
    assert "Refused" not in db.read_now(names)
    assert (await flow.me(token)).status_code == 401, "a token of the old epoch"


@pytest.mark.requirement("SEC-37", "SEC-9")
async def test_requests_side_by_side_survive_the_rotation_of_their_cookie(world: World) -> None:
    bob = world.acme["bob"]
    browser = world.client(bob)
    old = browser.cookies[cookies.session_name()]
    world.give(bob, "auditor", world.acme.root)

    answers = await asyncio.gather(*(browser.get("/settings") for _ in range(20)))

    given = {made for answer in answers if (made := answer.cookies.get(cookies.session_name()))}
    assert {answer.status_code for answer in answers} == {200}
    assert len(given) == 1, "one of them rotated it, once"
    assert old not in given
    assert (await browser.get("/settings")).status_code == 200


@contextmanager
def held(monkeypatch: pytest.MonkeyPatch, expected: int) -> Iterator["Held"]:
    """Requests pass their guards and then wait, until so many of them are about to write."""
    made = Held(expected, db.transaction)
    monkeypatch.setattr(db, "transaction", made.transaction)
    try:
        yield made
    finally:
        made.go_on.set()
        monkeypatch.setattr(db, "transaction", made.genuine)


class Held:
    """Stands between the requests and the database."""

    def __init__(self, expected: int, genuine: Any) -> None:
        self.expected, self.genuine = expected, genuine
        self.waiting, self.all_wait, self.go_on = 0, asyncio.Event(), asyncio.Event()

    async def transaction(self, unit: Any, *args: Any, **kwargs: Any) -> Any:
        """As the database's own, but later."""
        self.waiting += 1
        if self.waiting == self.expected:
            self.all_wait.set()
        await self.go_on.wait()
        return await self.genuine(unit, *args, **kwargs)

    async def until_all_wait(self) -> None:
        """Return when everything is under way."""
        async with asyncio.timeout(PATIENCE_S):
            await self.all_wait.wait()


async def everything_of(flow: Flow, ada: User) -> list[Callable[[], Awaitable[httpx2.Response]]]:
    """A hundred requests of `ada`, of every kind, ready to be sent."""
    world = flow.world
    browsers = [world.client(ada) for _ in range(5)]
    root, bob = world.acme.root.id, world.acme["bob"]
    client_id, _ = flow.register()
    made: list[Callable[[], Awaitable[httpx2.Response]]] = []

    def post(number: int, path: str, **form: str) -> None:
        browser = browsers[number % len(browsers)]
        made.append(lambda: browser.post(path, data=form))

    for _ in range(8):
        tokens = await flow.tokens(client_id, user=ada, scope=OFFLINE)
        refresh = tokens["refresh_token"]
        made.append(lambda token=refresh: flow.refresh(client_id, token))  # type: ignore[misc]
    for _ in range(4):
        pkce = Pkce.new()
        code = await flow.code(client_id, pkce, user=ada)
        made.append(lambda code=code, pkce=pkce: flow.redeem(client_id, code, pkce))  # type: ignore[misc]
        asked = await flow.authorize(flow.request(client_id, pkce), browsers[0])
        post(0, "/oauth/consent", request=f.request_id(asked), decision="allow")
        stranger = world.anonymous()
        token = hidden(await stranger.get("/sign-in"), "_csrf")
        form = {"_csrf": token, "tenant": "acme", "login": "ada", "password": PASSWORD}
        made.append(lambda who=stranger, form=form: who.post("/sign-in", data=form))  # type: ignore[misc]
    while len(made) < IN_FLIGHT:
        number = len(made)
        post(number, "/admin/orgs", name=f"Late {number}", parent_id=root)
        post(number, "/settings", display_name="Ada the Late", time_zone="UTC")
        post(number, f"/admin/users/{bob.id}/link")
        post(number, "/admin/users", display_name="L", login=f"late{number}", org_id=root)
        post(number, "/admin/roles", name="Late", code=f"late{number}")
    return made


def signed_in(world: World, user: User) -> SignedIn:
    """`user` with a cookie, as the streams' clients send it."""
    browser = world.client(user)
    name = cookies.session_name()
    return SignedIn(user.tenant_id, user.id, f"{name}={browser.cookies[name]}", "")


def disable(work: Work, actor: Principal, user_id: str) -> None:
    users.disable(work, actor, users.one(work.session, actor.tenant_id, user_id))


def enable(work: Work, actor: Principal, user_id: str) -> None:
    users.enable(work, actor, users.one(work.session, actor.tenant_id, user_id))


def link_for(work: Work, user: User) -> str:
    return links.make(work, None, user, LinkPurpose.RESET)


def take_away(work: Work, actor: Principal, user: User, role_id: str) -> None:
    tenant_id = actor.tenant_id
    row = users.one(work.session, tenant_id, user.id)
    role = roles.one(work.session, tenant_id, role_id)
    roles.unassign(work, actor, row, role, orgs.root(work.session, tenant_id))


def names(session: Session) -> list[str]:
    """What the attempts would have made: organisations, people and roles."""
    return sorted([*session.exec(select(Org.name)).all(), *session.exec(select(User.login)).all()])


def done_after_the_deactivation(session: Session, user: User) -> list[str]:
    """Entries of things that `user` did, after the one that disabled them."""
    query = select(AuditEntry.seq).where(
        AuditEntry.tenant_id == user.tenant_id,
        AuditEntry.command == "identity.user.disable",
        AuditEntry.target_id == user.id,
    )
    disabled = session.exec(query).one()
    later = select(AuditEntry).where(
        AuditEntry.tenant_id == user.tenant_id,
        AuditEntry.user_id == user.id,
        AuditEntry.outcome == "done",
        col(AuditEntry.seq) > disabled,
    )
    return [f"{row.seq}: {row.command}" for row in session.exec(later).all()]
