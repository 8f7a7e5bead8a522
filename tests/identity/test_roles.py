"""Roles: nobody gives what they lack, and an owner is always left, however two race for it."""

import threading
from collections.abc import Callable

import pytest

from app.identity import permissions, roles
from app.identity.errors import BeyondYourRights, BuiltinRole, LastOwner, StillInUse
from app.identity.models import Role, User
from app.kernel import db
from app.kernel.db import Work
from app.kernel.errors import Conflict, Invalid, NotFound
from tests.people import World


def by_code(work: Work, world: World, code: str) -> Role:
    found = roles.by_code(work.session, world.acme.id, code)
    assert found is not None
    return found


def unassign_owner(work: Work, world: World, user: User) -> None:
    roles.unassign(work, world.acme_admin, user, by_code(work, world, "owner"), world.acme.root)


@pytest.mark.requirement("SEC-10")
def test_the_last_owner_keeps_the_role(world: World) -> None:
    with pytest.raises(LastOwner):
        db.transact_now(unassign_owner, world, world.acme["olga"])


@pytest.mark.requirement("SEC-10")
def test_an_owner_who_is_disabled_or_whose_time_ends_counts_for_nothing(world: World) -> None:
    world.give(world.acme["dora"], "owner", world.acme.root)

    with pytest.raises(LastOwner):
        db.transact_now(unassign_owner, world, world.acme["olga"])


@pytest.mark.requirement("SEC-10")
def test_two_owners_who_take_each_others_role_at_once_leave_one(world: World) -> None:
    world.give(world.acme["bob"], "owner", world.acme.root)
    start = threading.Barrier(2)
    ended: list[str] = []

    def racing(user: User) -> Callable[[], None]:
        def run() -> None:
            start.wait(20)
            try:
                db.transact_now(unassign_owner, world, user)
                ended.append("done")
            except LastOwner:
                ended.append("refused")

        return run

    threads = [threading.Thread(target=racing(world.acme[login])) for login in ("olga", "bob")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert sorted(ended) == ["done", "refused"]


@pytest.mark.requirement("SEC-9")
def test_a_changed_role_raises_the_epochs_of_its_holders_alone(world: World) -> None:
    role = world.give(world.acme["bob"], "desk", grants={"identity.user.read": "org"})
    before = {login: world.user(world.acme[login]).authz_epoch for login in ("alice", "bob")}

    def change(work: Work, version: int) -> None:
        roles.change(
            work,
            world.acme_admin,
            roles.one(work.session, world.acme.id, role.id),
            name="Desk",
            grants={"identity.user.read": "all"},
            expected_version=version,
            held=frozenset({"identity.user.read"}),
        )

    db.transact_now(change, 1)

    after = {login: world.user(world.acme[login]).authz_epoch for login in ("alice", "bob")}
    assert after == {"alice": before["alice"], "bob": before["bob"] + 1}
    with pytest.raises(Conflict):
        db.transact_now(change, 1)


def test_nobody_gives_what_they_lack(world: World) -> None:
    def make(work: Work) -> None:
        roles.create(
            work,
            world.acme_admin,
            tenant_id=world.acme.id,
            code="spy",
            name="Spy",
            grants={"audit.read": "all"},
            held=frozenset({"identity.user.read"}),
        )

    def assign(work: Work) -> None:
        roles.assign(
            work,
            world.acme_admin,
            world.acme["bob"],
            by_code(work, world, "auditor"),
            world.acme.root,
            held=frozenset({"identity.user.read"}),
        )

    for unit in (make, assign):
        with pytest.raises(BeyondYourRights):
            db.transact_now(unit)


@pytest.mark.parametrize("code", ["", "1st", "Big", "with space", "x" * 64, "member"])
def test_a_code_is_short_plain_and_free(world: World, code: str) -> None:
    def make(work: Work) -> None:
        roles.create(work, None, tenant_id=world.acme.id, code=code, name="x", grants={})

    with pytest.raises(Invalid):
        db.transact_now(make)


def test_shipped_and_held_roles_stay(world: World) -> None:
    world.give(world.acme["bob"], "desk", grants={})

    def remove(work: Work, code: str) -> None:
        roles.remove(work, world.acme_admin, by_code(work, world, code))

    with pytest.raises(BuiltinRole):
        db.transact_now(remove, "member")
    with pytest.raises(StillInUse):
        db.transact_now(remove, "desk")


def test_what_is_not_held_cannot_be_taken(world: World) -> None:
    with pytest.raises(NotFound):
        db.transact_now(unassign_owner, world, world.acme["bob"])


def test_an_owner_holds_whatever_there_is(world: World) -> None:
    owner = db.read_now(roles.by_code, world.acme.id, "owner")
    assert owner is not None

    assert set(db.read_now(roles.grants_of, owner)) == set(db.read_now(permissions.all_codes))
