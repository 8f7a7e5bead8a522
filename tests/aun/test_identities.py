"""Every user and agent has an AID from creation, whose key stays here; it follows their status."""

import pytest
from aun_core import _cert_utils
from sqlalchemy import update
from sqlmodel import Session, col

from app.aun import identities, queries
from app.aun.caller import CONSOLE_DEVICE, Door
from app.aun.errors import NoSuchParty, NotAParty
from app.aun.models import IdentityKind, IdentityStatus
from app.aun.pki import building, keys
from app.identity import agents
from app.identity import users as people
from app.identity.models import Agent, User
from app.kernel import db
from app.kernel.db import Work
from tests.people import World

BASE = "assent.localhost"


def test_people_and_agents_have_an_aid_from_creation(world: World) -> None:
    made = {login: world.user(user).aid for login, user in world.acme.people.items()}

    assert made["alice"] == f"alice.{BASE}"
    assert made["bob"] == f"user-bob.{BASE}", "three letters are too few for clients"
    assert world.acme.agents["stock"].aid == f"stock.{BASE}"
    assert world.user(world.globex["gina"]).aid == f"gina.globex.{BASE}"
    system = db.read_now(queries.identity, world.acme.id, f"connect.{BASE}")
    assert system is not None
    assert system.kind == IdentityKind.SYSTEM


def test_the_certificate_of_an_aid_belongs_to_the_key_that_is_held_here(world: World) -> None:
    aid = f"alice.{BASE}"
    row = db.read_now(queries.active_certificate, world.acme.id, aid)
    assert row is not None

    certificate = building.parsed(row.der)
    key = keys.of_scalar(db.read_now(identities.key_of, world.acme.id, aid))

    assert _cert_utils.cert_common_name(certificate) == aid
    assert certificate.public_key() == key.public_key()
    assert _cert_utils.cert_matches_fingerprint(certificate, f"sha256:{row.fingerprint}")
    assert _cert_utils.cert_matches_fingerprint(certificate, f"sha256:{row.key_fingerprint}")


def test_two_with_one_name_get_different_aids_and_none_is_reused(world: World) -> None:
    person = db.transact_now(
        people.create, None, world.acme.root, login="Stock", display_name="Stock Person"
    )
    other = db.transact_now(
        people.create, None, world.acme.root, login="st.ock", display_name="Another"
    )
    third = db.transact_now(
        people.create, None, world.acme.root, login="st-ock", display_name="A third"
    )
    connect = db.transact_now(
        people.create, None, world.acme.root, login="connect", display_name="Connie"
    )

    assert person.aid == f"user-stock.{BASE}"
    assert (other.aid, third.aid) == (f"st-ock.{BASE}", f"user-st-ock.{BASE}")
    assert connect.aid == f"user-connect.{BASE}"


def test_whoever_is_switched_off_sends_nothing_and_only_an_agent_stays_reachable(
    world: World,
) -> None:
    alice, stock = f"alice.{BASE}", f"stock.{BASE}"
    db.transact_now(_off, world)

    assert _status(world, alice) == _status(world, stock) == IdentityStatus.INACTIVE
    assert db.read_now(queries.party, world.acme.id, stock).aid == stock
    with pytest.raises(NoSuchParty):
        db.read_now(queries.party, world.acme.id, alice)
    with pytest.raises(NotAParty):
        db.read_now(
            identities.caller_of_user,
            world.person(world.acme["ada"]).__class__.person(
                tenant_id=world.acme.id,
                user_id=world.acme["alice"].id,
                session_id="",
                epoch=1,
                channel=world.acme_admin.channel,
            ),
        )

    db.transact_now(_on, world)
    assert _status(world, alice) == _status(world, stock) == IdentityStatus.ACTIVE


def test_those_who_were_here_before_messaging_get_their_aids_at_start(world: World) -> None:
    db.transact_now(_forget_aids, world.acme.id)

    identities.prepare()

    assert world.user(world.acme["alice"]).aid == f"alice.{BASE}"
    assert db.read_now(agents.one, world.acme.id, world.acme.agents["stock"].id).aid


def test_the_person_of_a_session_calls_as_their_own_aid(world: World) -> None:
    person = world.person(world.acme["alice"])

    caller = db.read_now(identities.caller_of_user, person)

    assert (caller.aid, caller.kind) == (f"alice.{BASE}", IdentityKind.USER)
    assert (caller.device_id, caller.door) == (CONSOLE_DEVICE, Door.CONSOLE)
    assert caller.principal == person
    assert caller.is_hosted


def test_parties_are_shown_by_their_names(world: World) -> None:
    aids = [f"alice.{BASE}", f"stock.{BASE}", f"connect.{BASE}", f"nobody.{BASE}"]

    shown = db.read_now(identities.display_names, world.acme.id, aids)

    assert {aid: each.name for aid, each in shown.items()} == {
        f"alice.{BASE}": "Alice Wang 王爱丽",
        f"stock.{BASE}": "Stock",
        f"connect.{BASE}": f"connect.{BASE}",
    }
    assert shown[f"stock.{BASE}"].owner_id == world.acme.agents["stock"].id


def test_a_key_that_is_not_held_here_cannot_be_had(world: World) -> None:
    with pytest.raises(LookupError):
        db.read_now(identities.key_of, world.globex.id, f"alice.{BASE}")


def _status(world: World, aid: str) -> str:
    found = db.read_now(queries.identity, world.acme.id, aid)
    assert found is not None
    return found.status


def _off(work: Work, world: World) -> None:
    people.disable(work, world.acme_admin, _alice(work.session, world))
    agents.disable(work, world.acme_admin, _stock(work.session, world))


def _on(work: Work, world: World) -> None:
    people.enable(work, world.acme_admin, _alice(work.session, world))
    agents.enable(work, world.acme_admin, _stock(work.session, world))


def _alice(session: Session, world: World) -> User:
    return people.one(session, world.acme.id, world.acme["alice"].id)


def _stock(session: Session, world: World) -> Agent:
    return agents.one(session, world.acme.id, world.acme.agents["stock"].id)


def _forget_aids(work: Work, tenant_id: str) -> None:
    for table in (User, Agent):
        work.session.execute(
            update(table).where(col(table.tenant_id) == tenant_id).values(aid=None)
        )
