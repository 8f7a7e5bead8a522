"""Ways to more rights than one was given, and to a tenant nobody owns: none of them leads there."""

import asyncio
import threading
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import httpx2
import pytest
from sqlmodel import Session, col, or_, select

from app.access import scope
from app.identity import links, orgs, roles, users
from app.identity.models import (
    LinkPurpose,
    Role,
    RoleAssignment,
    User,
    UserStatus,
)
from app.identity.principal import Principal
from app.kernel import clock, db
from app.kernel.db import Work
from tests.clock import Clock
from tests.identity.oauth import flow as f
from tests.identity.oauth.flow import CALLBACK, OFFLINE, Flow, Pkce
from tests.people import World
from tests.security import every_route
from tests.signing_in import PASSWORD, give_password, hidden, send, sign_in

NEW_PASSWORD = "another long and unusual one"
MANAGER = {
    "identity.role.manage": "all",
    "identity.user.manage": "all",
    "identity.user.read": "all",
}


@pytest.mark.requirement("SEC-10", "SEC-T33")
async def test_the_last_owner_is_not_lost_one_way_or_another(world: World) -> None:
    olga, root = world.acme["olga"], world.acme.root.id
    owner = role_of(world, "owner")
    browser, ada = world.client(olga), world.client(world.acme["ada"])
    path = f"/admin/users/{olga.id}"
    held = {"role_id": owner.id, "org_id": root}
    soon = (clock.now() + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M")

    answers = [
        await who.post(at, data=form)
        for who in (browser, ada)
        for at, form in (
            (f"{path}/deactivation", {}),
            (f"{path}/roles/removal", held),
            (f"{path}/roles", {**held, "ends_at": soon}),
            (f"/admin/roles/{owner.id}", {"name": "Owner", "version": "1"}),
            (f"/admin/roles/{owner.id}/removal", {}),
            (f"/admin/orgs/{root}/closure", {}),
        )
    ]

    assert {answer.status_code for answer in answers} <= {409, 422, 403}
    assert db.read_now(owners, world.acme.id) == ["olga"]
    assert world.user(olga).status == UserStatus.ACTIVE


@pytest.mark.requirement("SEC-10")
async def test_an_owner_for_a_while_is_no_reason_to_let_the_lasting_one_go(
    clock: Clock, world: World
) -> None:
    olga, bob = world.acme["olga"], world.acme["bob"]
    owner, root = role_of(world, "owner"), world.acme.root
    world.give(bob, "owner", root, ends_in=timedelta(days=2))
    browser = world.client(olga)
    held = {"role_id": owner.id, "org_id": root.id}
    soon = (clock.now + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M")

    answers = [
        await browser.post(f"/admin/users/{olga.id}{then}", data=form)
        for then, form in (
            ("/roles", {**held, "ends_at": soon}),
            ("/roles/removal", held),
            ("/deactivation", {}),
        )
    ]
    clock.move(days=3)

    assert [answer.status_code for answer in answers] == [422, 409, 409]
    assert db.read_now(owners, world.acme.id) == ["olga"]


@pytest.mark.requirement("SEC-10")
@pytest.mark.parametrize("how", ["unassign", "disable", "end"])
async def test_two_owners_who_take_each_other_down_at_once_leave_one(
    world: World, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    olga, bob, root = world.acme["olga"], world.acme["bob"], world.acme.root
    world.give(bob, "owner", root)
    people = {user.id: world.person(user) for user in (olga, bob)}
    both = threading.Barrier(1 if db.is_sqlite() else 2)  # one writer: one after the other
    genuine = scope.one

    def meet(*args: Any) -> Any:
        found = genuine(*args)
        both.wait(20)  # both have read that there are two owners
        return found

    def take_down(work: Work, actor: Principal, whom: str) -> None:
        user = meet(work.session, actor, "identity.user.manage", User, whom)
        owner = roles.by_code(work.session, actor.tenant_id, "owner")
        top = orgs.root(work.session, actor.tenant_id)
        assert owner is not None
        if how == "disable":
            users.disable(work, actor, user)
        elif how == "unassign":
            roles.unassign(work, actor, user, owner, top)
        else:
            later = clock.now() + timedelta(hours=1)
            roles.assign(work, actor, user, owner, top, ends_at=later)

    done = await asyncio.gather(
        db.transaction(take_down, people[olga.id], bob.id),
        db.transaction(take_down, people[bob.id], olga.id),
        return_exceptions=True,
    )

    assert sum(isinstance(each, BaseException) for each in done) == 1, done
    assert len(db.read_now(lasting_owners, world.acme.id)) == 1


@pytest.mark.requirement("SEC-6", "SEC-T39")
async def test_who_manages_roles_gives_nobody_more_than_she_holds(world: World) -> None:
    bob = world.acme["bob"]
    manager = world.give(bob, "manager", world.acme.root, grants=MANAGER)
    browser = world.client(bob)
    administrator, owner = role_of(world, "administrator"), role_of(world, "owner")
    root, own = world.acme.root.id, f"/admin/users/{bob.id}/roles"
    more = "audit.read=all"
    before = db.read_now(every_route.rows)

    answers = [
        await browser.post(path, data=form)
        for path, form in (
            (own, {"role_id": owner.id, "org_id": root}),
            (own, {"role_id": administrator.id, "org_id": root}),
            (f"/admin/roles/{manager.id}", {"name": "M", "version": "1", "grants": [more]}),
            ("/admin/roles", {"name": "M", "code": "more", "grants": [more]}),
            ("/admin/roles", {"name": "M", "code": "odd", "grants": ["audit.read=ALL"]}),
            ("/admin/roles", {"name": "M", "code": "none", "grants": ["*=all"]}),
            (f"/admin/roles/{owner.id}", {"name": "M", "version": "1", "grants": []}),
            (f"/admin/roles/{owner.id}/removal", {}),
            ("/admin/users", invitation(root, owner.id)),
            (f"/admin/users/{world.acme['olga'].id}/link", {}),
            (f"/admin/users/{world.acme['ada'].id}/link", {}),
        )
    ]

    assert {answer.status_code for answer in answers} <= {403, 409, 422}
    assert db.read_now(every_route.rows) == before
    given = await browser.post(own, data={"role_id": manager.id, "org_id": root})
    assert given.status_code == 303, "what she holds she may give"


@pytest.mark.requirement("SEC-6", "SEC-T39")
async def test_rights_over_one_organisation_do_not_become_rights_over_all(world: World) -> None:
    bob, shanghai = world.acme["bob"], world.acme.orgs["shanghai"]
    local = dict.fromkeys(MANAGER, "org_and_below")
    manager = world.give(bob, "local", shanghai, grants=local)
    wide = world.give(world.acme["ada"], "wide", grants={"identity.user.manage": "all"})
    browser, root = world.client(bob), world.acme.root.id
    alice, axel = world.acme["alice"].id, world.acme["axel"].id
    before = db.read_now(every_route.rows)

    answers = [
        await browser.post(path, data=form)
        for path, form in (
            (f"/admin/users/{bob.id}/roles", {"role_id": wide.id, "org_id": shanghai.id}),
            (f"/admin/users/{bob.id}/roles", {"role_id": manager.id, "org_id": root}),
            (f"/admin/users/{alice}/roles", {"role_id": manager.id, "org_id": root}),
            (f"/admin/users/{axel}/deactivation", {}),
            (f"/admin/users/{axel}/link", {}),
            (f"/admin/users/{alice}", {"display_name": "A", "org_id": root, "version": "1"}),
            ("/admin/users", invitation(root)),
            ("/admin/users", invitation(shanghai.id, wide.id)),
            ("/admin/roles", {"name": "X", "code": "xx", "grants": ["identity.user.manage=all"]}),
            (
                f"/admin/roles/{manager.id}",
                {"name": "X", "version": "1", "grants": ["audit.read=all"]},
            ),
        )
    ]

    assert {answer.status_code for answer in answers} <= {403, 404, 422}
    assert db.read_now(every_route.rows) == before


@pytest.mark.requirement("SEC-6", "SEC-40")
async def test_an_administrator_makes_no_owner_and_becomes_none(world: World) -> None:
    ada, olga = world.client(world.acme["ada"]), world.acme["olga"].id
    owner, root = role_of(world, "owner").id, world.acme.root.id
    held = {"role_id": owner, "org_id": root}
    before = db.read_now(every_route.rows)

    answers = [
        await ada.post("/admin/users", data=invitation(root, owner)),
        await ada.post(f"/admin/users/{world.acme['ada'].id}/roles", data=held),
        await ada.post(f"/admin/users/{world.acme['bob'].id}/roles", data=held),
        await ada.post(f"/admin/users/{olga}/link"),
    ]

    assert {answer.status_code for answer in answers} <= {403, 409, 422}
    assert db.read_now(every_route.rows) == before


@pytest.mark.requirement("SEC-40", "SEC-5")
async def test_links_work_once_for_one_person_who_may_still_come_in(world: World) -> None:
    bob, ines, gus = world.acme["bob"], world.acme["ines"], world.globex["gus"]
    give_password(bob)
    typed = {"password": NEW_PASSWORD, "again": NEW_PASSWORD}
    stale, used = link(bob), link(bob)
    invite, reset = link(ines, LinkPurpose.INVITE), link(gus)
    olga = world.person(world.acme["olga"])

    first = await send(world.anonymous(), f"/reset/{used}", **typed)
    tenant, _, rest = reset.partition(".")
    forged = [
        f"/reset/{stale}",  # a later one was made
        f"/reset/{used}",  # again
        f"/reset/{invite}",  # of another purpose
        f"/invite/{reset}",
        f"/reset/{world.acme.id}.{rest}",  # of another tenant
        f"/reset/{tenant}.{rest[:-1]}",
        f"/reset/{tenant}.",
        "/reset/%00",
        f"/reset/{reset.lower()}",
    ]
    answers = [await post_blind(world, path, **typed) for path in forged]

    assert first.status_code == 303
    assert {answer.status_code for answer in answers} == {404}
    late = link(bob)
    db.transact_now(disable, olga, bob.id)
    assert (await post_blind(world, f"/reset/{late}", **typed)).status_code == 404
    assert (await sign_in(world.anonymous(), "bob", NEW_PASSWORD)).status_code == 422
    gus_still = await send(world.anonymous(), f"/reset/{reset}", **typed)
    assert gus_still.status_code == 303, "and all that used nothing of his up"


@pytest.mark.requirement("SEC-40", "SEC-18")
async def test_of_many_who_open_a_link_at_once_one_gets_in(world: World) -> None:
    invite = link(world.acme["ines"], LinkPurpose.INVITE)
    browsers = [world.anonymous() for _ in range(8)]
    typed = {"password": NEW_PASSWORD, "again": NEW_PASSWORD}

    answers = await asyncio.gather(
        *(send(browser, f"/invite/{invite}", **typed) for browser in browsers)
    )

    assert sorted(answer.status_code for answer in answers) == [303] + [404] * 7


@pytest.mark.requirement("SEC-15", "SEC-18", "SEC-P10")
async def test_consent_is_the_stored_request_of_this_session_and_nothing_else(flow: Flow) -> None:
    world, alice = flow.world, flow.world.acme["alice"]
    client_id, _ = flow.register()
    pkce = Pkce.new()
    hers, elsewhere = world.client(alice), world.client(alice)
    bobs, gus = world.client(world.acme["bob"]), world.client(world.globex["gus"])
    page = await flow.authorize(flow.request(client_id, pkce), hers)
    form = {"request": f.request_id(page), "decision": "allow"}
    before = db.read_now(f.delegations)

    foreign = [await who.post("/oauth/consent", data=form) for who in (elsewhere, bobs, gus)]
    more = [
        await hers.post("/oauth/consent", data={**form, name: value})
        for name, value in (
            ("scope", OFFLINE),
            ("redirect_uri", "https://evil.example/cb"),
            ("client_id", "other"),
            ("user_id", world.acme["olga"].id),
            ("resource", flow.resource("aun")),
        )
    ]
    odd = [
        await hers.post("/oauth/consent", data={**form, "decision": value})
        for value in ("ALLOW", "yes", "true", "", "allow ")
    ]
    assert {answer.status_code for answer in foreign} == {409}
    assert {answer.status_code for answer in (*more, *odd)} == {422}
    assert db.read_now(f.delegations) == before

    given = await hers.post("/oauth/consent", data=form)
    again = await hers.post("/oauth/consent", data=form)

    assert given.headers["location"].startswith(CALLBACK)
    assert again.status_code == 409
    tokens = await flow.redeem(client_id, f.answer_of(given)["code"], pkce)
    assert tokens.json()["scope"] == f.READS, "not what was added to the form"


@pytest.mark.requirement("SEC-T39", "SEC-P66", "SEC-P42")
async def test_equal_logins_of_two_tenants_are_two_people(world: World) -> None:
    theirs = db.transact_now(twin, world.globex.root.id, world.globex.id)
    give_password(world.acme["olga"])
    twin_browser = world.client(theirs)

    stolen = await sign_in(world.anonymous(), "olga", PASSWORD, tenant="globex")
    me = (await twin_browser.get("/v1/me")).json()
    own = await twin_browser.get(f"/admin/users/{world.acme['olga'].id}")

    assert stolen.status_code == 422, "the password of one is not that of the other"
    assert (me["tenant"]["name"], me["permissions"]) == ("Globex", [])
    assert own.status_code in {403, 404}
    secret = next(iter(twin_browser.cookies.jar)).value or ""
    moved = f"{world.acme.id}.{secret.partition('.')[2]}"
    rider = world.anonymous()
    rider.headers["Cookie"] = f"__Host-sid={moved}"
    assert (await rider.get("/welcome")).status_code == 303, "nor is its cookie, renamed"


async def post_blind(world: World, path: str, **form: str) -> httpx2.Response:
    """A form sent with a sound token of this browser, to a page it never saw."""
    browser = world.anonymous()
    opened = await browser.get("/sign-in")
    token = hidden(opened, "_csrf")
    return await browser.post(path, data={"_csrf": token, **form})


def invitation(org_id: str, role_id: str = "") -> dict[str, str]:
    """The form that invites somebody."""
    form = {"display_name": "New", "login": "newcomer", "org_id": org_id}
    return {**form, "role_id": role_id} if role_id else form


def link(user: User, purpose: LinkPurpose = LinkPurpose.RESET) -> str:
    """A one-time link for `user`."""
    return db.transact_now(_link, user, purpose)


def _link(work: Work, user: User, purpose: LinkPurpose) -> str:
    return links.make(work, None, user, purpose)


def role_of(world: World, code: str) -> Role:
    """A role of Acme."""
    found = db.read_now(roles.by_code, world.acme.id, code)
    assert found is not None
    return found


def owners(session: Session, tenant_id: str) -> Sequence[str]:
    """Logins of who owns the tenant now."""
    ends_at = col(RoleAssignment.ends_at)
    query = (
        select(User.login)
        .join(RoleAssignment, col(RoleAssignment.user_id) == User.id)
        .join(Role, col(Role.id) == RoleAssignment.role_id)
        .where(User.tenant_id == tenant_id, Role.code == "owner")
        .where(User.status == UserStatus.ACTIVE)
        .where(or_(ends_at.is_(None), ends_at > clock.now()))
    )
    return session.exec(query).all()


def lasting_owners(session: Session, tenant_id: str) -> Sequence[str]:
    """Logins of who owns the tenant without an end."""
    query = (
        select(User.login)
        .join(RoleAssignment, col(RoleAssignment.user_id) == User.id)
        .join(Role, col(Role.id) == RoleAssignment.role_id)
        .where(User.tenant_id == tenant_id, Role.code == "owner")
        .where(User.status == UserStatus.ACTIVE)
        .where(col(RoleAssignment.ends_at).is_(None))
    )
    return session.exec(query).all()


def twin(work: Work, org_id: str, tenant_id: str) -> User:
    """Another Olga, in Globex, with no rights at all."""
    org = orgs.one(work.session, tenant_id, org_id)
    return users.create(
        work, None, org, login="olga", display_name="Olga Petrova", status=UserStatus.ACTIVE
    )


def disable(work: Work, actor: Principal, user_id: str) -> None:
    users.disable(work, actor, users.one(work.session, actor.tenant_id, user_id))
