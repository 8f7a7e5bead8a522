"""Waking: what a run waited for is read from rows, and answers once."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from app.aun.models import Message
from app.kernel import clock as kernel_clock
from app.kernel import db, ids
from app.runs import inputs, lanes, opening, recovery, waking
from app.runs.run_models import Run, RunWait
from app.runs.session import RunSession
from app.runs.states import RunKind, RunState, WaitKind
from tests.clock import Clock
from tests.runs.agents import Office
from tests.runs.test_recovery import LONG_AGO


async def _waiting(office: Office, kind: WaitKind, **values: Any) -> tuple[RunSession, str]:
    """A run that took in one message, and waits."""
    office.say("alice", text="One")
    run = await office.begun()
    await inputs.admit_first(run)
    return run, office.suspend(run.claim, kind, **values)


def _wait(office: Office) -> RunWait:
    (found,) = office.waits()
    return found


@pytest.mark.requirement("F-62", "RUN-61")
async def test_a_timer_that_fell_due_while_nothing_ran_fires_once(
    office: Office, clock: Clock
) -> None:
    await _waiting(office, WaitKind.TIMER, due_at=clock.now + timedelta(minutes=5))
    assert await waking.wake_due() == 0
    clock.move(days=2)

    assert await waking.wake_due() == 1
    assert await waking.wake_due() == 0

    assert (office.run().state, _wait(office).answer) == ("queued", {"value": "due"})


@pytest.mark.requirement("RUN-92")
@pytest.mark.parametrize("pause", [WaitKind.MESSAGE, WaitKind.TIMER])
async def test_a_message_of_the_lane_ends_a_wait_directly_and_is_taken_first(
    office: Office, clock: Clock, pause: WaitKind
) -> None:
    run, _ = await _waiting(office, pause, due_at=clock.now + timedelta(days=1))
    office.say("alice", text="An answer, or not", input_mode="follow_up")
    await office.hear()
    assert await opening.open_due() == 0

    assert await waking.wake_due() == 1

    heard = office.inputs()[1]
    assert _wait(office).answer == {"value": heard.id}
    (claim,) = office.claim()
    assert claim.run_id == run.claim.run_id
    again = office.session(claim)
    again.transcript.add(*run.transcript)
    assert await inputs.admit_first(again)
    assert office.inputs()[1].run_id == run.claim.run_id
    assert again.current_input is not None
    assert again.current_input.text == "An answer, or not"


@pytest.mark.requirement("RUN-55", "RUN-92")
async def test_nobody_who_writes_is_a_timeout_and_no_fault(office: Office, clock: Clock) -> None:
    await _waiting(office, WaitKind.MESSAGE, due_at=clock.now + timedelta(minutes=30))
    assert await waking.wake_due() == 0
    clock.move(minutes=31)

    assert await waking.wake_due() == 1

    assert (office.run().state, office.run().reason) == ("queued", None)
    assert _wait(office).answer == {"value": "timeout"}
    assert office.fates() == [("accepted", None)]


@pytest.mark.requirement("RUN-14")
async def test_a_message_that_was_taken_back_ends_no_wait(office: Office) -> None:
    await _waiting(office, WaitKind.MESSAGE)
    said = office.say("alice", text="Two")
    await office.hear()
    office.force(Message, (office.tenant_id, said.id), recalled_at=kernel_clock.now())

    assert await waking.wake_due() == 0

    assert office.run().state == "suspended"
    assert office.fates()[1] == ("dropped", "deleted")


@pytest.mark.requirement("F-63", "RUN-60")
@pytest.mark.parametrize("answer", [False, 0, "", None])
async def test_an_empty_answer_is_an_answer(office: Office, answer: Any) -> None:
    await _waiting(office, WaitKind.MESSAGE)
    wait = _wait(office)

    assert db.transact_now(waking.satisfy, wait, answer)

    assert _wait(office).answer == {"value": answer}
    assert db.read_now(waking._wakeable) == []
    assert office.run().state == "queued"


@pytest.mark.requirement("F-66")
async def test_of_two_answers_the_first_counts_and_the_second_is_an_ordinary_input(
    office: Office,
) -> None:
    await _waiting(office, WaitKind.MESSAGE)
    office.say("alice", text="Two")
    office.say("alice", text="Three")
    await office.hear()
    wait = _wait(office)

    woken = await asyncio.gather(
        *(db.transaction(waking.wake, wait.tenant_id, wait.id) for _ in range(3))
    )

    assert sorted(woken) == [False, False, True]
    first, second = office.inputs()[1:]
    assert _wait(office).answer == {"value": first.id}
    assert second.state == "queued"


@pytest.mark.requirement("RUN-61")
async def test_a_parent_wakes_when_its_child_has_ended(office: Office) -> None:
    run, _ = await _waiting(office, WaitKind.TIMER)
    child = Run(
        tenant_id=office.tenant_id,
        id=ids.ulid(),
        kind=RunKind.DELEGATED,
        agent_id=office.agent("expenses").id,
        request_key="call:1",
        root_run_id=run.claim.run_id,
        state=RunState.RUNNING,
        queued_at=kernel_clock.now(),
    )
    db.transact_now(lambda work: work.session.add(child))
    wait = _wait(office)
    values = {"kind": WaitKind.RUN, "ref": child.id}
    office.force(RunWait, (wait.tenant_id, wait.id), **values)
    assert await waking.wake_due() == 0

    office.force(Run, (child.tenant_id, child.id), state=RunState.FAILED)

    assert await waking.wake_due() == 1
    assert _wait(office).answer == {"value": "failed"}


@pytest.mark.requirement("RUN-61")
async def test_an_external_call_that_settled_wakes_its_run(office: Office) -> None:
    await _waiting(office, WaitKind.CALL, ref="a-call")

    assert await waking.wake_due() == 1

    assert office.run().state == "queued"


@pytest.mark.requirement("RUN-14")
async def test_a_parked_run_goes_on_when_nothing_rests_any_more(office: Office) -> None:
    await _waiting(office, WaitKind.PAUSE)
    alice, (lane,) = office.person("alice"), office.lanes()
    db.transact_now(lanes.pause, alice, lane.id, True)
    assert await waking.wake_due() == 0

    db.transact_now(lanes.pause, alice, lane.id, False)

    assert await waking.wake_due() == 1
    assert _wait(office).answer == {"value": "resumed"}


@pytest.mark.requirement("RUN-73", "F-6")
async def test_a_message_behind_an_open_batch_says_what_it_waits_for_and_is_taken_after(
    office: Office,
) -> None:
    await _waiting(office, WaitKind.CALL, ref="a-call")
    office.say("alice", text="Two")
    await office.hear()

    assert db.transact_now(waking.hold_inputs) == 1
    assert office.fates()[1] == ("queued", "approval")
    assert db.transact_now(waking.hold_inputs) == 0

    await waking.wake_due()
    assert office.fates()[1] == ("queued", None)
    (claim,) = office.claim()
    assert await inputs.admit_steering(office.session(claim))
    assert office.fates()[1] == ("accepted", None)


@pytest.mark.requirement("RUN-23")
async def test_an_ordinary_message_ends_no_wait_of_work_and_enters_none(office: Office) -> None:
    run, _ = await _waiting(office, WaitKind.MESSAGE)
    key = (run.claim.tenant_id, run.claim.run_id)
    office.force(Run, key, kind=RunKind.WORK, lane_id=None)
    office.say("alice", text="By the way")
    await office.hear()

    assert await waking.wake_due() == 0
    assert await opening.open_due() == 1
    assert not await inputs.admit_steering(office.session(run.claim))

    assert db.transact_now(waking.satisfy, _wait(office), {"amount": 3})
    assert _wait(office).answer == {"value": {"amount": 3}}


@pytest.mark.requirement("F-59")
async def test_a_crash_in_a_run_that_a_timer_woke_leaves_the_lane_to_later_messages(
    office: Office, clock: Clock
) -> None:
    await _waiting(office, WaitKind.TIMER, due_at=clock.now + timedelta(minutes=5))
    clock.move(minutes=6)
    await waking.wake_due()
    (claim,) = office.claim()
    office.force(Run, (claim.tenant_id, claim.run_id), lease_until=LONG_AGO)
    await recovery.recover_due(())

    assert await waking.wake_due() == 0
    (again,) = office.claim()
    office.end(again)
    office.say("alice", text="Later")
    await office.hear()

    assert [each.state for each in office.inputs()] == ["completed", "queued"]
    assert await opening.open_due() == 1
