"""What an input must pass at the moment of its admission (agent-loop.md, 4)."""

import pytest

from app.aun.group_models import Group, GroupStatus
from app.aun.models import Message
from app.identity import delegations
from app.identity.models import Agent, AgentStatus, PeerLink
from app.kernel import db
from app.runs import inputs, lanes, opening
from app.runs.gates import HOUR
from app.runs.run_models import Lane
from tests.clock import Clock
from tests.runs.agents import Office


async def _hold(office: Office, **lane: object) -> list[tuple[str, str | None]]:
    """How a message stands whose lane is like this."""
    office.say("alice")
    await office.hear()
    office.force(Lane, (office.tenant_id, office.lanes()[0].id), **lane)
    await opening.open_due()
    return office.fates()


@pytest.mark.requirement("RUN-14", "RUN-73")
async def test_a_lane_that_rests_holds_its_messages_until_it_goes_on(
    office: Office, clock: Clock
) -> None:
    assert await _hold(office, paused_at=clock.now) == [("queued", "paused")]
    assert office.runs() == []

    alice, (lane,) = office.person("alice"), office.lanes()
    db.transact_now(lanes.pause, alice, lane.id, False)

    assert office.fates() == [("queued", None)]
    assert await opening.open_due() == 1


@pytest.mark.requirement("RUN-14", "RUN-73")
async def test_an_agent_that_rests_or_is_off_gets_its_mail_when_it_is_on_again(
    office: Office, clock: Clock
) -> None:
    ada = office.person("ada")
    db.transact_now(lanes.pause_agent, ada, office.agent().id, True)
    assert await _hold(office) == [("queued", "paused")]
    db.transact_now(lanes.pause_agent, ada, office.agent().id, False)
    assert office.fates() == [("queued", None)]

    key = (office.tenant_id, office.agent().id)
    office.force(Agent, key, status=AgentStatus.DISABLED)
    await opening.open_due()
    assert office.fates() == [("queued", "paused")]
    office.force(Agent, key, status=AgentStatus.PUBLISHED)
    clock.move(minutes=2)

    assert await opening.open_due() == 1


@pytest.mark.requirement("RUN-14")
async def test_a_paused_delegation_holds_what_its_person_writes(office: Office) -> None:
    alice, given = office.person("alice"), office.delegation("alice").id
    db.transact_now(
        lambda work: delegations.pause(
            work, alice, delegations.own(work.session, alice, given), "asked"
        )
    )
    assert await _hold(office) == [("queued", "paused")]

    db.transact_now(
        lambda work: delegations.resume(work, alice, delegations.own(work.session, alice, given))
    )

    assert office.fates() == [("queued", None)]


@pytest.mark.requirement("RUN-14", "F-78")
async def test_two_agents_are_held_after_six_in_a_row_until_a_person_writes(
    office: Office,
) -> None:
    group = office.group("bob", agents=("stock", "expenses"))
    for number in range(8):
        office.say_in(group, "expenses", str(number), **office.mention())
    run = await office.begun()
    assert await inputs.admit_first(run)
    while await inputs.admit_follow_up(run):
        pass

    states = [each.state for each in office.inputs()]
    assert states == ["accepted"] * 6 + ["queued"] * 2
    assert office.fates()[6:] == [("queued", "quota")] * 2

    office.say_in(group, "alice", "Go on, then")
    await office.hear()

    assert office.fates()[6:8] == [("queued", None)] * 2
    assert await inputs.admit_follow_up(run)


@pytest.mark.requirement("RUN-13", "RUN-14")
async def test_the_hour_of_a_lane_is_full_at_120_for_people_and_60_for_agents(
    office: Office, clock: Clock
) -> None:
    assert await _hold(office, hour_start=clock.now, hour_used=119) == [("queued", None)]
    office.say("expenses")
    await office.hear()
    agents_lane = next(lane for lane in office.lanes() if lane.user_id is None)
    full = {"hour_start": clock.now, "hour_used": 60}
    office.force(Lane, (office.tenant_id, agents_lane.id), **full)

    assert await opening.open_due() == 0

    assert office.fates()[1] == ("queued", "quota")
    clock.move(seconds=HOUR.total_seconds() + 1)
    assert await opening.open_due() == 1


@pytest.mark.requirement("RUN-14")
@pytest.mark.parametrize("who", ["bob", "stock"])
async def test_who_is_no_member_any_more_is_heard_no_more(office: Office, who: str) -> None:
    group = office.group("bob")
    office.say_in(group, "bob", **office.mention())
    await office.hear()

    office.put_out(group, who)
    await opening.open_due()

    assert office.fates() == [("dropped", "not_member")]


@pytest.mark.requirement("RUN-14", "RUN-97")
async def test_what_waits_of_a_client_that_was_unlinked_is_dropped(
    office: Office, clock: Clock
) -> None:
    office.outsider("tom", linked_to="alice")
    office.say("tom")
    office.say("alice", text="Mine")
    await office.hear()

    office.force(PeerLink, (office.tenant_id, office.aid("tom")), revoked_at=clock.now)
    await opening.open_due()

    assert office.fates() == [("dropped", "unlinked"), ("queued", None)]
    assert office.run().origin_message_id == office.inputs()[1].message_id


@pytest.mark.requirement("RUN-14")
async def test_a_recalled_message_and_a_dissolved_group_are_deleted(
    office: Office, clock: Clock
) -> None:
    said = office.say("alice")
    group = office.group("bob")
    office.say_in(group, "bob", **office.mention())
    await office.hear()

    office.force(Message, (office.tenant_id, said.id), recalled_at=clock.now)
    office.force(Group, (office.tenant_id, group), status=GroupStatus.DISSOLVED)
    await opening.open_due()

    assert office.fates() == [("dropped", "deleted")] * 2
    assert office.runs() == []


@pytest.mark.requirement("RUN-14")
async def test_what_was_said_before_a_reset_enters_no_context(office: Office) -> None:
    office.say("alice", text="Before")
    await office.hear()
    (lane,) = office.lanes()

    db.transact_now(lanes.reset, office.person("alice"), lane.id)
    office.say("alice", text="After")
    await office.hear()
    await opening.open_due()

    assert office.fates() == [("dropped", "context_reset"), ("queued", None)]
    assert office.run().origin_message_id == office.inputs()[1].message_id
