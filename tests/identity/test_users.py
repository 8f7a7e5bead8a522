"""People: logins that cannot be confused, and everything that ends when one is disabled."""

import pytest
from hypothesis import given
from hypothesis import strategies as some
from sqlmodel import Session, select

from app.identity import links, sessions, users
from app.identity.errors import LastOwner, LinkInvalid, NotUsableNow
from app.identity.facts import AccessChanged
from app.identity.models import (
    LinkPurpose,
    OneTimeLink,
    TokenFamily,
    User,
    UserStatus,
)
from app.kernel import clock, db, events, ids
from app.kernel.db import Work
from app.kernel.errors import Conflict, Invalid
from tests.people import World


@pytest.mark.parametrize(
    "login", ["", " ", "a b", "a/b", "a\u200bb", "a\u202eb", "x" * 101, "\x00"]
)
def test_a_login_that_could_deceive_is_refused(login: str) -> None:
    with pytest.raises(Invalid):
        users.normal_login(login)


@given(some.text(max_size=100))
def test_a_login_is_normal_or_refused(login: str) -> None:
    try:
        name = users.normal_login(login)
    except Invalid:
        return
    assert users.normal_login(name) == name


@pytest.mark.parametrize("login", ["ALICE", "\uff21lice", " alice "])
def test_two_logins_that_look_alike_are_one(world: World, login: str) -> None:
    with pytest.raises(Invalid) as refused:
        db.transact_now(make, world, login)

    assert refused.value.errors[0].pointer == "login"


def make(work: Work, world: World, login: str) -> User:
    return users.create(work, None, world.acme.root, login=login, display_name="x")


@pytest.mark.requirement("SEC-31", "SEC-9")
def test_disabling_ends_sessions_tokens_and_links_in_one_commit(world: World) -> None:
    alice, ada = world.acme["alice"], world.person(world.acme["ada"])
    world.person(alice)
    secret = db.transact_now(links.make, ada, alice, LinkPurpose.RESET)
    db.transact_now(open_family, world)
    heard: list[AccessChanged] = []
    before = world.user(alice).authz_epoch
    end = events.subscribe(AccessChanged, heard.append)

    db.transact_now(disable, world, "alice")

    end()
    assert world.user(alice).authz_epoch == before + 1
    assert db.read_now(sessions.of_user, alice.tenant_id, alice.id) == []
    assert db.read_now(live_families, alice) == []
    with pytest.raises(LinkInvalid):
        db.read_now(links.read, secret)
    assert [news.user_id for news in heard if news.ends] == [alice.id]
    assert db.read_now(live_families, world.acme["bob"]), "others go on"


@pytest.mark.requirement("SEC-33")
def test_enabling_revives_nothing(world: World) -> None:
    alice = world.acme["alice"]
    world.person(alice)
    db.transact_now(open_family, world)
    db.transact_now(disable, world, "alice")

    db.transact_now(enable, world, "alice")

    assert world.user(alice).status == UserStatus.ACTIVE
    assert db.read_now(sessions.of_user, alice.tenant_id, alice.id) == []
    assert db.read_now(live_families, alice) == []
    assert db.read_now(unused_links, alice) == 0


def test_disabling_twice_and_enabling_an_active_one_are_refused(world: World) -> None:
    db.transact_now(disable, world, "alice")

    with pytest.raises(NotUsableNow):
        db.transact_now(disable, world, "alice")
    with pytest.raises(NotUsableNow):
        db.transact_now(enable, world, "bob")


@pytest.mark.requirement("SEC-10")
def test_the_last_owner_cannot_be_disabled_and_one_of_two_can(world: World) -> None:
    with pytest.raises(LastOwner):
        db.transact_now(disable, world, "olga")
    world.give(world.acme["bob"], "owner", world.acme.root)

    db.transact_now(disable, world, "olga")

    assert world.user(world.acme["olga"]).status == UserStatus.DISABLED


def test_a_change_on_an_old_version_is_a_conflict(world: World) -> None:
    with pytest.raises(Conflict):
        db.transact_now(rename, world, 7)


@pytest.mark.requirement("SEC-9")
def test_moving_to_another_organisation_raises_the_epoch(world: World) -> None:
    before = world.user(world.acme["alice"]).authz_epoch

    db.transact_now(rename, world, 1)

    moved = world.user(world.acme["alice"])
    assert moved.org_id == world.acme.orgs["beijing"].id
    assert moved.authz_epoch == before + 1


def rename(work: Work, world: World, version: int) -> None:
    users.change(
        work,
        world.acme_admin,
        users.one(work.session, world.acme.id, world.acme["alice"].id),
        display_name="Alice",
        email=None,
        org=world.acme.orgs["beijing"],
        expected_version=version,
    )


def disable(work: Work, world: World, login: str) -> None:
    user = users.one(work.session, world.acme.id, world.acme[login].id)
    users.disable(work, world.acme_admin, user)


def enable(work: Work, world: World, login: str) -> None:
    user = users.one(work.session, world.acme.id, world.acme[login].id)
    users.enable(work, world.acme_admin, user)


def open_family(work: Work, world: World) -> None:
    now = clock.now()
    for login in ("alice", "bob"):
        delegation = world.acme.delegations[login]
        work.session.add(
            TokenFamily(
                tenant_id=world.acme.id,
                id=ids.ulid(),
                user_id=delegation.user_id,
                agent_id=delegation.agent_id,
                delegation_id=delegation.id,
                client_id="c",
                scope="",
                resource="",
                auth_time=now,
                created_at=now,
                ends_at=now,
            )
        )


def live_families(session: Session, user: User) -> list[str]:
    query = select(TokenFamily).where(
        TokenFamily.tenant_id == user.tenant_id, TokenFamily.user_id == user.id
    )
    return [row.id for row in session.exec(query).all() if row.revoked_at is None]


def unused_links(session: Session, user: User) -> int:
    query = select(OneTimeLink).where(
        OneTimeLink.tenant_id == user.tenant_id, OneTimeLink.user_id == user.id
    )
    return len([row for row in session.exec(query).all() if row.used_at is None])
