"""An outside AID speaks for a user only when both proved it, and until either end lets go."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlmodel import Session, select

from app.audit.models import AuditEntry
from app.aun import contacts, linking, queries, tokens
from app.aun.caller import Caller
from app.aun.errors import BadToken, LoginFailed, NotAdmitted
from app.aun.events import Evicted
from app.aun.linking import LinkedAlready, NotProved
from app.aun.models import IdentityKind, IdentityStatus
from app.identity import users as people
from app.identity.models import PeerLink
from app.identity.principal import Principal
from app.kernel import db, events, settings
from app.kernel.db import Work
from app.kernel.errors import NotFound
from app.kernel.settings import Settings
from tests.aun import contact_rows
from tests.aun.outside import Outside
from tests.clock import Clock
from tests.people import World

OTTO = "otto.assent.localhost"


@pytest.fixture
def otto(world: World) -> Caller:
    """A registered outside AID that is connected."""
    return _outside(world, "otto")


def test_a_code_from_the_client_and_a_yes_from_the_user_make_a_link(
    world: World, otto: Caller
) -> None:
    alice = world.person(world.acme["alice"])
    code = db.transact_now(linking.begin, alice)

    _say(otto, f" {code[:5].lower()}-{code[5:]} ")
    waiting = db.read_now(linking.waiting, alice)
    assert waiting is not None
    assert waiting.proved_aid == OTTO
    assert db.read_now(linking.links, alice) == [], "not before she confirms"
    db.transact_now(linking.confirm, alice, OTTO)

    assert [link.aid for link in db.read_now(linking.links, alice)] == [OTTO]
    entry = db.read_now(_entry, world.acme.id, "identity.contact.link")
    assert (entry.user_id, entry.target_id) == (alice.user_id, OTTO)


def test_a_code_that_is_wrong_unsigned_late_or_repeated_changes_nothing(
    clock: Clock, world: World
) -> None:
    otto, owen = _outside(world, "otto"), _outside(world, "owen")
    alice = world.person(world.acme["alice"])
    code = db.transact_now(linking.begin, alice)

    for text in ("", "ABCDEFGHJK", f"{code}X", "x" * 10_000, code[:9]):
        _say(otto, text)
    _say(otto, code, is_signed=False)
    db.transact_now(linking.listen, otto, {"text": ["list"]}, True)
    db.transact_now(linking.listen, otto, {}, True)
    _say(_outside(world, "gerd", tenant=world.globex.id), code)
    hosted = Caller(world.acme.id, "bob.x", IdentityKind.USER, "d")
    _say(hosted, code)
    assert _proved(alice) is None

    _say(otto, code)
    _say(owen, code)
    assert _proved(alice) == OTTO, "the first counts"
    later = db.transact_now(linking.begin, alice)
    _say(owen, code)
    assert _proved(alice) is None, "another code ends the first"
    clock.move(minutes=10, seconds=1)
    _say(owen, later)
    assert _proved(alice) is None


def test_only_the_session_that_asked_confirms_and_only_what_proved_itself(
    clock: Clock, world: World
) -> None:
    otto = _outside(world, "otto")
    _outside(world, "owen")
    alice = world.person(world.acme["alice"])
    other_session = world.person(world.acme["alice"])
    code = db.transact_now(linking.begin, alice)
    _say(otto, code)

    for person, aid in (
        (other_session, OTTO),
        (world.person(world.acme["bob"]), OTTO),
        (alice, "owen.assent.localhost"),
        (alice, "nobody.assent.localhost"),
    ):
        with pytest.raises(NotProved):
            db.transact_now(linking.confirm, person, aid)
    clock.move(minutes=10, seconds=1)
    with pytest.raises(NotProved):
        db.transact_now(linking.confirm, alice, OTTO)


def test_a_linked_aid_cannot_be_linked_again_before_its_link_ended(
    world: World, otto: Caller
) -> None:
    alice, bob = world.person(world.acme["alice"]), world.person(world.acme["bob"])
    _link(alice, otto)
    code = db.transact_now(linking.begin, bob)
    _say(otto, code)

    with pytest.raises(LinkedAlready):
        db.transact_now(linking.confirm, bob, OTTO)
    with pytest.raises(NotFound):
        db.transact_now(linking.end, bob, OTTO)

    with heard() as told:
        db.transact_now(linking.end, alice, OTTO)
    db.transact_now(linking.confirm, bob, OTTO)
    assert [(each.aid, each.code) for each in told] == [(OTTO, 1000)]
    assert [link.aid for link in db.read_now(linking.links, bob)] == [OTTO]
    assert db.read_now(linking.links, alice) == []


def test_disabling_the_user_ends_the_link_and_closes_the_sockets(
    world: World, otto: Caller
) -> None:
    alice = world.person(world.acme["alice"])
    _link(alice, otto)

    with heard() as told:
        db.transact_now(_disable, world)

    assert [(each.aid, each.code) for each in told] == [(OTTO, 1000)]
    link = db.read_now(lambda session: session.get_one(PeerLink, (world.acme.id, OTTO)))
    assert link.revoked_at is not None


async def test_blocking_ends_certificates_tokens_the_link_and_the_sockets(
    clock: Clock, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "current", lambda: Settings(aun_registration="open"))
    otto = Outside(OTTO)
    await otto.register()
    told = await otto.login()
    begun = await otto.begin()
    alice = world.person(world.acme["alice"])
    db.transact_now(contact_rows.link, alice, OTTO)
    clock.move(seconds=11)

    with heard() as evicted:
        db.transact_now(contacts.block, world.acme_admin, OTTO)

    assert [(each.aid, each.code) for each in evicted] == [(OTTO, 4003)]
    with pytest.raises(BadToken):
        db.read_now(tokens.verify, told["access_token"])
    for step in (otto.begin(), otto.finish(begun), otto.register()):
        with pytest.raises(NotAdmitted):
            await step
    assert db.read_now(linking.links, alice) == []
    assert db.read_now(queries.active_certificate, world.acme.id, OTTO) is None
    entry = db.read_now(_entry, world.acme.id, "identity.contact.block")
    assert entry.target_id == OTTO

    db.transact_now(contacts.unblock, world.acme_admin, OTTO)
    with pytest.raises(LoginFailed):
        await otto.begin()
    with pytest.raises(BadToken):
        db.read_now(tokens.verify, told["access_token"])
    await otto.register()
    await otto.login()
    found = db.read_now(contacts.one, world.acme.id, OTTO)
    assert (found.identity.status, found.user) == (IdentityStatus.ACTIVE, None)


def test_contacts_are_listed_by_name_in_pages(world: World) -> None:
    for number in range(60):
        _outside(world, f"c{number:03}")

    first = db.read_now(contacts.page, world.acme.id, "", "")
    second = db.read_now(contacts.page, world.acme.id, "", first.next or "")

    assert (len(first.rows), len(second.rows), first.total) == (50, 10, 60)
    assert [c.identity.aid for c in first.rows] == sorted(c.identity.aid for c in first.rows)
    assert first.rows[-1].identity.aid < second.rows[0].identity.aid


@contextmanager
def heard() -> Iterator[list[Evicted]]:
    """Whose connections have to end."""
    found: list[Evicted] = []
    end = events.subscribe(Evicted, found.append)
    try:
        yield found
    finally:
        end()


def _outside(world: World, name: str, tenant: str = "") -> Caller:
    tenant_id = tenant or world.acme.id
    aid = db.transact_now(contact_rows.contact, tenant_id, name)
    return Caller(tenant_id, aid, IdentityKind.OUTSIDE, "phone")


def _say(caller: Caller, text: str, *, is_signed: bool = True) -> None:
    db.transact_now(linking.listen, caller, {"type": "text", "text": text}, is_signed)


def _proved(person: Principal) -> str | None:
    waiting = db.read_now(linking.waiting, person)
    return waiting.proved_aid if waiting else None


def _link(person: Principal, caller: Caller) -> None:
    code = db.transact_now(linking.begin, person)
    _say(caller, code)
    db.transact_now(linking.confirm, person, caller.aid)


def _disable(work: Work, world: World) -> None:
    alice = people.one(work.session, world.acme.id, world.acme["alice"].id)
    people.disable(work, world.acme_admin, alice)


def _entry(session: Session, tenant_id: str, command: str) -> AuditEntry:
    query = select(AuditEntry).where(
        AuditEntry.tenant_id == tenant_id, AuditEntry.command == command
    )
    return session.exec(query).one()
