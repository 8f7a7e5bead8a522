"""Opening runs: a lane with something to take in gets one, and one only."""

import asyncio

import pytest

from app.kernel import db
from app.runs import inputs, opening
from app.runs.run_models import Lane, RunInput
from app.runs.states import RunState
from tests.clock import Clock
from tests.runs.agents import Office


@pytest.mark.requirement("RUN-61", "F-3")
async def test_a_message_opens_a_run_of_its_lane_and_is_not_accepted_yet(office: Office) -> None:
    said = office.say("alice")
    await office.hear()

    assert await opening.open_due() == 1

    run = office.run()
    assert (run.state, run.kind, run.origin_message_id) == ("queued", "conversation", said.id)
    assert run.request_key == f"message:{office.agent().id}:{said.id}"
    assert office.fates() == [("queued", None)]
    assert await opening.open_due() == 0


@pytest.mark.requirement("RUN-61")
async def test_a_lane_has_one_live_run_however_many_processes_look(office: Office) -> None:
    office.say("alice")
    await office.hear()
    (lane,) = office.lanes()

    opened = await asyncio.gather(
        *(db.transaction(opening.open_lane, office.tenant_id, lane.id) for _ in range(4))
    )

    assert sorted(opened) == [False, False, False, True]
    assert len(office.runs()) == 1


@pytest.mark.requirement("RUN-10")
async def test_two_people_in_one_group_get_a_run_each(office: Office) -> None:
    group = office.group("bob")
    office.say_in(group, "alice", **office.mention())
    office.say_in(group, "bob", **office.mention())
    await office.hear()

    assert await opening.open_due() == 2

    users = office.world.acme
    assert {run.user_id for run in office.runs()} == {users["alice"].id, users["bob"].id}


@pytest.mark.requirement("RUN-18", "F-10")
@pytest.mark.parametrize(
    "state", [RunState.FAILED, RunState.CANCELED, RunState.INTERRUPTED, RunState.COMPLETED]
)
async def test_what_was_not_accepted_opens_the_next_run_however_the_last_one_ended(
    office: Office, state: RunState
) -> None:
    office.say("alice", text="One")
    run = await office.begun()
    assert await inputs.admit_first(run)
    later = office.say("alice", text="Two")
    await office.hear()

    office.end(run.claim, state)

    assert await opening.open_due() == 1
    assert office.runs()[-1].origin_message_id == later.id


@pytest.mark.requirement("RUN-22")
async def test_what_three_runs_did_not_take_is_dropped_and_says_so(
    office: Office, clock: Clock
) -> None:
    office.say("alice")
    await office.hear()
    for _ in range(3):
        assert await opening.open_due() == 1
        clock.move(minutes=1)
        (claim,) = office.claim()
        office.end(claim, RunState.FAILED)

    assert await opening.open_due() == 0

    assert office.fates() == [("dropped", "not_taken")]
    assert len({run.request_key for run in office.runs()}) == 3


@pytest.mark.requirement("RUN-97")
async def test_an_outside_peer_gets_twenty_runs_a_day(office: Office, clock: Clock) -> None:
    office.outsider("tina")
    for number in range(21):
        office.say("tina", text=str(number), thread_id=f"about-{number}")
    await office.hear()

    assert await opening.open_due() == 20

    assert office.fates()[-1] == ("queued", "quota")
    clock.move(hours=25)
    assert await opening.open_due() == 1


@pytest.mark.requirement("F-14", "RUN-14")
async def test_a_thousand_messages_to_one_lane_open_one_run_and_are_held_by_the_quota(
    office: Office,
) -> None:
    office.say_often(1_000)
    await office.hear()
    (lane,) = office.lanes()
    full = {"hour_start": office.inputs()[0].arrived_at, "hour_used": 120}
    office.force(Lane, (office.tenant_id, lane.id), **full)

    assert await opening.open_due() == 0

    assert set(office.fates()) == {("queued", "quota")}


@pytest.mark.requirement("RUN-61")
async def test_lanes_that_cannot_be_opened_leave_room_for_the_others(
    office: Office, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "LANES", 1)
    office.publish("expenses", limits=5)
    office.say("alice", to="expenses")
    office.say("alice", to="stock")
    await office.hear()
    (later,) = office.inputs("stock")
    office.force(RunInput, (later.tenant_id, later.id), log_seq=later.log_seq + 1_000)

    opened = [await opening.open_due() for _ in range(3)]

    assert opened == [0, 0, 1], "as soon as the first one rests"
