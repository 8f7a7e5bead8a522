"""One-time links: an invitation, the reset of a password; used once, in time (SEC-40)."""

import pytest

from app.identity import links, sessions, users
from app.identity.errors import LinkInvalid, NotUsableNow
from app.identity.models import LinkPurpose, User
from app.kernel import db
from app.kernel.db import Work
from tests.clock import Clock
from tests.people import World


def make(user: User, purpose: LinkPurpose) -> str:
    def run(work: Work) -> str:
        row = users.one(work.session, user.tenant_id, user.id)
        return links.make(work, None, row, purpose)

    return db.transact_now(run)


def opens(secret: str) -> bool:
    try:
        db.read_now(links.read, secret)
    except LinkInvalid:
        return False
    return True


@pytest.mark.requirement("SEC-40")
def test_a_link_is_used_once(world: World) -> None:
    secret = make(world.acme["alice"], LinkPurpose.RESET)
    assert opens(secret)
    assert opens(secret), "looking uses nothing up"

    db.transact_now(links.take, secret)

    assert not opens(secret)
    with pytest.raises(LinkInvalid):
        db.transact_now(links.take, secret)


@pytest.mark.requirement("SEC-40")
def test_a_reset_lives_an_hour_and_an_invitation_a_week(clock: Clock, world: World) -> None:
    reset = make(world.acme["alice"], LinkPurpose.RESET)
    invitation = make(world.acme["ines"], LinkPurpose.INVITE)

    clock.move(minutes=59, seconds=59)
    assert opens(reset)
    clock.move(seconds=1)
    assert not opens(reset)
    clock.move(days=6, hours=22)
    assert opens(invitation)
    clock.move(hours=1)
    assert not opens(invitation)


def test_a_new_link_ends_the_older_ones(world: World) -> None:
    old = make(world.acme["alice"], LinkPurpose.RESET)
    new = make(world.acme["alice"], LinkPurpose.RESET)

    assert (opens(old), opens(new)) == (False, True)


@pytest.mark.requirement("SEC-31")
def test_disabling_its_person_ends_a_link_for_good(world: World) -> None:
    alice = world.acme["alice"]
    secret = make(alice, LinkPurpose.RESET)
    olga = world.person(world.acme["olga"])

    def act(work: Work, what: str) -> None:
        getattr(users, what)(work, olga, users.one(work.session, alice.tenant_id, alice.id))

    db.transact_now(act, "disable")
    assert not opens(secret)
    db.transact_now(act, "enable")

    assert not opens(secret)


def test_only_who_has_not_begun_is_invited_and_the_disabled_get_no_link(world: World) -> None:
    for login, purpose in (
        ("alice", LinkPurpose.INVITE),
        ("dora", LinkPurpose.INVITE),
        ("dora", LinkPurpose.RESET),
    ):
        with pytest.raises(NotUsableNow):
            make(world.acme[login], purpose)


@pytest.mark.parametrize("secret", ["", "x", "x.y", f"{'0' * 26}.{'A' * 43}", "../x"])
def test_what_never_was_a_link_opens_nothing(world: World, secret: str) -> None:
    assert not opens(secret)
    assert db.read_now(sessions.find, secret) is None
