"""Delegations: one live one a person and agent, widened, paused, revoked and run out."""

from datetime import timedelta

import pytest

from app.identity import agents, delegations
from app.identity.errors import NotUsableNow, ScopeUnknown
from app.identity.models import Delegation
from app.kernel import db
from app.kernel.db import Work
from app.kernel.errors import NotFound
from tests.clock import Clock
from tests.identity.test_users import live_families, open_family
from tests.people import World


def of_alice(world: World) -> Delegation | None:
    stock = world.acme.agents["stock"].id
    return db.read_now(delegations.live, world.acme.id, world.acme["alice"].id, stock)


def live(work: Work, world: World) -> Delegation:
    found = work.session.get(Delegation, (world.acme.id, world.acme.delegations["alice"].id))
    assert found is not None
    return found


def test_a_second_consent_widens_the_first(world: World) -> None:
    alice = world.person(world.acme["alice"])

    def again(work: Work) -> str:
        agent = agents.one(work.session, world.acme.id, world.acme.agents["stock"].id)
        return delegations.make_or_widen(work, alice, agent, ["commands.invoke"]).id

    made = db.transact_now(again)

    found = of_alice(world)
    assert found is not None
    assert found.id == made == world.acme.delegations["alice"].id
    assert found.scopes == ["commands.invoke", "commands.read"]


@pytest.mark.parametrize("scopes", [[], ["admin"], ["commands.read", "approve"]])
def test_no_other_scopes_exist(world: World, scopes: list[str]) -> None:
    def narrow(work: Work) -> None:
        delegations.set_scopes(work, world.acme_admin, live(work, world), scopes)

    with pytest.raises(ScopeUnknown):
        db.transact_now(narrow)


@pytest.mark.requirement("SEC-31")
def test_a_revoked_delegation_takes_its_tokens_along(world: World) -> None:
    db.transact_now(open_family, world)

    db.transact_now(lambda work: delegations.revoke(work, world.acme_admin, live(work, world)))

    assert of_alice(world) is None
    assert db.read_now(live_families, world.acme["alice"]) == []
    assert db.read_now(live_families, world.acme["bob"]) != []
    with pytest.raises(NotUsableNow):
        db.transact_now(lambda work: delegations.revoke(work, world.acme_admin, live(work, world)))


@pytest.mark.requirement("SEC-31")
def test_a_paused_delegation_keeps_its_tokens_and_is_refused_meanwhile(world: World) -> None:
    db.transact_now(open_family, world)

    db.transact_now(lambda work: delegations.pause(work, None, live(work, world), "burst"))

    found = of_alice(world)
    assert found is not None
    assert found.paused_why == "burst"
    assert db.read_now(live_families, world.acme["alice"]) != []


@pytest.mark.requirement("SEC-31")
def test_a_delegation_that_ran_out_is_ended(world: World, clock: Clock) -> None:
    ends = clock.now + timedelta(hours=1)

    def limit(work: Work) -> None:
        row = live(work, world)
        row.expires_at = ends
        work.session.add(row)

    db.transact_now(limit)
    db.transact_now(open_family, world)

    early = db.transact_now(delegations.end_expired, clock.now)
    late = db.transact_now(delegations.end_expired, clock.move(hours=2))

    assert (early, late) == (0, 1)
    assert of_alice(world) is None
    assert db.read_now(live_families, world.acme["alice"]) == []


@pytest.mark.requirement("SEC-31", "SEC-15")
def test_a_consent_after_the_end_brings_nothing_old_back(world: World, clock: Clock) -> None:
    alice = world.person(world.acme["alice"])

    def limit(work: Work) -> None:
        row = live(work, world)
        row.expires_at = clock.now + timedelta(hours=1)
        work.session.add(row)

    def consent(work: Work) -> Delegation:
        agent = agents.one(work.session, world.acme.id, world.acme.agents["stock"].id)
        return delegations.make_or_widen(work, alice, agent, ["catalog.read"])

    db.transact_now(limit)
    db.transact_now(open_family, world)
    clock.move(hours=2)

    made = db.transact_now(consent)

    assert made.id != world.acme.delegations["alice"].id
    assert made.scopes == ["catalog.read"], "only what was asked for this time"
    assert db.read_now(live_families, world.acme["alice"]) == []


def test_one_owns_ones_own_delegations(world: World) -> None:
    bob = world.person(world.acme["bob"])

    with pytest.raises(NotFound):
        db.read_now(delegations.own, bob, world.acme.delegations["alice"].id)
