"""Whose authority a run has: of the person at the start of the chain, and never more."""

import pytest
from sqlmodel import Session

from app.identity import delegations, users
from app.identity.models import Agent, AgentStatus, Delegation, PeerLink
from app.identity.principal import Channel, Principal, Scope
from app.kernel import db
from app.runs import authority, opening
from app.runs.errors import Cancelled
from app.runs.run_models import AgentPause, Lane, Run
from tests.clock import Clock
from tests.runs.agents import Office


async def _run(office: Office) -> Run:
    await office.hear()
    assert await opening.open_due() == 1
    return office.runs()[-1]


def _principal(run: Run) -> Principal | None:
    return db.read_now(authority.principal_of, run)


def _is_paused(session: Session, run: Run) -> bool:
    return authority.is_paused(authority.standing(session.connection(), run.tenant_id, run.id))


def _cause(run: Run) -> str:
    with pytest.raises(Cancelled) as ended:
        db.read_now(authority.check, run)
    return ended.value.reason


@pytest.mark.requirement("RUN-97")
async def test_a_person_who_enabled_the_agent_lends_it_what_the_delegation_says(
    office: Office,
) -> None:
    office.say("alice")

    principal = _principal(await _run(office))

    alice = office.world.acme["alice"]
    assert principal is not None
    assert (principal.user_id, principal.channel) == (alice.id, Channel.RUN)
    assert principal.delegation_id == office.delegation("alice").id
    assert principal.actors == (office.agent().id,)
    assert principal.scopes == {Scope.COMMANDS_READ}
    assert principal.epoch == office.world.user(alice).authz_epoch


@pytest.mark.requirement("RUN-97")
async def test_a_person_who_did_not_is_who_it_acts_for_and_lends_nothing(office: Office) -> None:
    office.say("olga")

    principal = _principal(await _run(office))

    assert principal is not None
    assert principal.user_id == office.world.acme["olga"].id
    assert (principal.delegation_id, principal.scopes) == (None, frozenset())


@pytest.mark.requirement("RUN-97")
async def test_in_a_group_it_is_who_wrote(office: Office) -> None:
    group = office.group("bob", owner="alice")
    office.say_in(group, "bob", **office.mention())

    principal = _principal(await _run(office))

    assert principal is not None
    assert principal.user_id == office.world.acme["bob"].id


@pytest.mark.requirement("RUN-97")
async def test_a_linked_peer_is_its_user_and_an_unknown_one_is_nobody(office: Office) -> None:
    office.outsider("tina")
    office.outsider("tom", linked_to="alice")
    office.say("tom")
    linked = _principal(await _run(office))
    office.say("tina")
    unknown = _principal(await _run(office))

    assert linked is not None
    assert linked.user_id == office.world.acme["alice"].id
    assert linked.scopes == {Scope.COMMANDS_READ}
    assert unknown is None


@pytest.mark.requirement("RUN-97")
async def test_an_agents_words_carry_the_person_of_its_run_and_fewer_scopes(
    office: Office,
) -> None:
    office.say("alice")
    first = await _run(office)
    said = office.say("stock", to="expenses")
    office.said_by(first, said)
    await office.hear()
    await opening.open_due()

    run = next(each for each in office.runs() if each.agent_id != first.agent_id)

    assert run.user_id == office.world.acme["alice"].id
    assert run.actors == [office.agent("expenses").id, office.agent("stock").id]
    assert (run.depth, run.scopes, run.delegation_id) == (2, [], None)


@pytest.mark.requirement("RUN-97")
async def test_along_a_chain_scopes_are_those_that_every_delegation_has(office: Office) -> None:
    office.say("alice")
    first = await _run(office)
    wide = [Scope.COMMANDS_READ, Scope.COMMANDS_INVOKE]
    db.transact_now(
        lambda work: delegations.make_for(
            work, office.world.acme["alice"], office.agent("expenses"), wide
        )
    )
    said = office.say("stock", to="expenses")
    office.said_by(first, said)
    await office.hear()
    await opening.open_due()

    run = next(each for each in office.runs() if each.agent_id != first.agent_id)

    assert run.scopes == [Scope.COMMANDS_READ]
    assert run.delegation_id is not None


@pytest.mark.requirement("RUN-97", "RUN-98")
async def test_a_chain_ends_with_the_delegation_of_any_agent_in_it(office: Office) -> None:
    office.say("alice")
    first = await _run(office)
    alice, wide = office.world.acme["alice"], [Scope.COMMANDS_READ]
    db.transact_now(lambda work: delegations.make_for(work, alice, office.agent("expenses"), wide))
    office.said_by(first, office.say("stock", to="expenses"))
    await office.hear()
    await opening.open_due()
    second = next(each for each in office.runs() if each.agent_id != first.agent_id)
    db.read_now(authority.check, second)
    assert _principal(second).scopes == {Scope.COMMANDS_READ}  # type: ignore[union-attr]
    stock = office.delegation("alice")
    assert stock.agent_id == first.agent_id

    db.transact_now(delegations.revoke, office.person("alice"), stock)

    assert _principal(second).scopes == frozenset()  # type: ignore[union-attr]
    assert _cause(second) == "delegation_revoked"


@pytest.mark.requirement("RUN-97", "RUN-98")
async def test_what_a_client_sent_that_was_unlinked_since_is_carried_no_further(
    office: Office, clock: Clock
) -> None:
    office.outsider("tom", linked_to="alice")
    office.say("tom")
    run = await _run(office)
    db.read_now(authority.check, run)

    office.force(PeerLink, (office.tenant_id, office.aid("tom")), revoked_at=clock.now)

    assert _cause(run) == "delegation_revoked"


@pytest.mark.requirement("RUN-97")
async def test_a_fourth_agent_in_a_chain_is_too_many(office: Office) -> None:
    office.say("alice")
    first = await _run(office)
    office.force(Run, (first.tenant_id, first.id), depth=3)
    said = office.say("stock", to="expenses")
    office.said_by(first, said)

    await office.hear()

    assert office.fates("expenses") == [("archived", "chain_too_long")]


@pytest.mark.requirement("RUN-97")
async def test_an_agent_whom_nobody_sent_speaks_for_nobody(office: Office) -> None:
    office.say("expenses", user=office.world.acme["olga"].id, approved=True)

    assert _principal(await _run(office)) is None


@pytest.mark.requirement("RUN-98")
async def test_what_a_run_stands_on_is_read_anew(office: Office, clock: Clock) -> None:
    office.say("alice")
    run = await _run(office)
    db.read_now(authority.check, run)

    delegation = (office.tenant_id, office.delegation("alice").id)
    office.force(Delegation, delegation, expires_at=clock.now)
    assert _cause(run) == "delegation_revoked"
    assert _principal(run).scopes == frozenset()  # type: ignore[union-attr]
    office.force(Delegation, delegation, expires_at=None)

    agent = (office.tenant_id, office.agent().id)
    office.force(Agent, agent, status=AgentStatus.DISABLED)
    assert _cause(run) == "agent_disabled"


@pytest.mark.requirement("RUN-98")
async def test_a_disabled_user_has_no_run(office: Office) -> None:
    office.say("bob")
    run = await _run(office)

    bob, ada = office.world.acme["bob"], office.person("ada")
    db.transact_now(
        lambda work: users.disable(work, ada, users.one(work.session, bob.tenant_id, bob.id))
    )

    assert _cause(run) == "user_disabled"


@pytest.mark.requirement("RUN-14")
@pytest.mark.parametrize("who", ["bob", "stock"])
async def test_who_was_put_out_of_the_group_works_there_no_more(office: Office, who: str) -> None:
    group = office.group("bob")
    office.say_in(group, "bob", **office.mention())
    run = await _run(office)
    db.read_now(authority.check, run)

    office.put_out(group, who)

    assert _cause(run) == "not_member"


@pytest.mark.requirement("RUN-14")
async def test_a_pause_of_agent_delegation_or_lane_rests_the_run(
    office: Office, clock: Clock
) -> None:
    office.say("alice")
    run = await _run(office)
    assert not db.read_now(_is_paused, run)

    places = [
        (Delegation, office.delegation("alice").id),
        (Lane, office.lanes()[0].id),
    ]
    for table, id in places:
        office.force(table, (office.tenant_id, id), paused_at=clock.now)
        assert db.read_now(_is_paused, run)
        office.force(table, (office.tenant_id, id), paused_at=None)
    assert not db.read_now(_is_paused, run)
    pause = AgentPause(
        tenant_id=run.tenant_id, agent_id=run.agent_id, paused_at=clock.now, paused_by="somebody"
    )
    db.transact_now(lambda work: work.session.add(pause))
    assert db.read_now(_is_paused, run)
