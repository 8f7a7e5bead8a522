"""The scheduler: one look does everything that is due, and an idle one asks once."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from app.aun.models import Message
from app.kernel import db
from app.kernel.errors import Busy
from app.runs import cancelling, delivery, ending, inputs, opening, recovery, schedules, waking
from app.runs import scheduler as scheduling
from app.runs.errors import Cancelled, LeaseLost
from app.runs.lease import Claim
from app.runs.run_models import Run
from app.runs.scheduler import Scheduler, Started
from app.runs.states import RunState
from tests.clock import Clock
from tests.runs.agents import Office

PATIENCE_S = 10


async def _until(done: asyncio.Event) -> None:
    await asyncio.wait_for(done.wait(), PATIENCE_S)


@pytest.mark.requirement("RUN-61", "RUN-3")
async def test_one_look_hears_opens_and_hands_a_claim_to_a_worker(office: Office) -> None:
    office.say("alice")
    scheduler = office.scheduler()

    await scheduler.drain()

    (claim,), run = office.claims, office.run()
    assert (claim.run_id, claim.token) == (run.id, run.claim_token)
    assert run.claimed_by == scheduler.process


@pytest.mark.requirement("RUN-18", "F-9", "F-14")
async def test_a_message_that_comes_as_the_run_ends_is_handled_without_another(
    office: Office,
) -> None:
    executed: list[str] = []
    both = asyncio.Event()

    async def execute(claim: Claim, _started: Started) -> None:
        run = office.session(claim)
        await inputs.admit_first(run)
        if not executed:
            office.say("alice", text="While you end")
        executed.append(run.current_input.text if run.current_input else "")
        await db.transaction(ending.finish, run, ending.End(state=RunState.COMPLETED))
        if len(executed) == 2:
            both.set()

    office.say("alice", text="First")
    scheduler = office.scheduler(execute)
    scheduler.start()
    try:
        await _until(both)
    finally:
        await scheduler.stop()

    assert executed == ["First", "While you end"]


@pytest.mark.requirement("RUN-69")
async def test_a_stop_is_heard_at_once_by_who_executes(office: Office) -> None:
    began, heard = asyncio.Event(), asyncio.Event()

    async def execute(claim: Claim, started: Started) -> None:
        run = office.session(claim)
        started(run)
        began.set()
        await run.stop.wait()
        assert isinstance(run.stopped, Cancelled)
        heard.set()

    office.say("alice")
    scheduler = office.scheduler(execute)
    scheduler.start()
    try:
        await _until(began)
        await db.transaction(cancelling.cancel, office.run(), office.person("alice"))
        await _until(heard)
    finally:
        await scheduler.stop()


@pytest.mark.requirement("RUN-68", "K-23")
async def test_a_process_that_ends_gives_its_runs_back_and_counts_no_takeover(
    office: Office,
) -> None:
    began, finished = asyncio.Event(), asyncio.Event()

    async def execute(claim: Claim, started: Started) -> None:
        run = office.session(claim)
        started(run)
        began.set()
        await run.stop.wait()
        assert isinstance(run.stopped, LeaseLost)
        finished.set()

    office.say("alice")
    scheduler = office.scheduler(execute)
    scheduler.start()
    await _until(began)

    await scheduler.stop()

    assert finished.is_set()
    row = office.run()
    assert (row.state, row.takeovers, row.claim_token) == ("queued", 0, None)


@pytest.mark.requirement("RUN-68")
async def test_a_run_that_cannot_be_given_back_keeps_no_other_from_it(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = [asyncio.Event(), asyncio.Event()]
    waiting = iter(began)

    async def execute(_claim: Claim, _started: Started) -> None:
        next(waiting).set()
        await asyncio.Event().wait()

    requeue, away = ending.requeue, [Busy()]

    def requeue_later(*given: Any, **more: Any) -> bool:
        if away:
            raise away.pop()
        return requeue(*given, **more)

    monkeypatch.setattr(scheduling, "GRACE_S", 0.01)
    monkeypatch.setattr(ending, "requeue", requeue_later)
    office.say("alice")
    office.say("bob")
    scheduler = office.scheduler(execute)
    scheduler.start()
    for each in began:
        await _until(each)

    await scheduler.stop()

    assert sorted(run.state for run in office.runs()) == ["queued", "running"]
    assert scheduler.hands.claims == []


@pytest.mark.requirement("F-58", "RUN-61")
async def test_a_worker_that_breaks_leaves_its_run_to_the_lease(office: Office) -> None:
    async def execute(_claim: Claim, _started: Started) -> None:
        raise RuntimeError("a fault nobody expected")

    office.say("alice")
    scheduler = office.scheduler(execute)

    await scheduler.drain()

    assert (office.run().state, scheduler.hands.claims) == ("running", [])


@pytest.mark.requirement("RUN-62")
async def test_a_process_has_no_more_in_hand_than_it_may(office: Office) -> None:
    going_on = asyncio.Event()

    async def execute(_claim: Claim, _started: Started) -> None:
        await going_on.wait()

    for who in ("alice", "bob", "olga"):
        office.say(who)
    scheduler = office.scheduler(execute, at_once=2)

    await scheduler.tick()
    await scheduler.tick()

    assert sorted(run.state for run in office.runs()) == ["queued", "running", "running"]
    going_on.set()
    await scheduler.drain()
    assert [run.state for run in office.runs()] == ["running"] * 3


@pytest.mark.requirement("RUN-64")
async def test_the_heartbeat_ends_what_another_took(office: Office) -> None:
    ended = asyncio.Event()

    async def execute(claim: Claim, started: Started) -> None:
        run = office.session(claim)
        started(run)
        await run.stop.wait()
        ended.set()

    office.say("alice")
    scheduler = office.scheduler(execute)
    await scheduler.tick()
    await asyncio.sleep(0)
    row = office.run()
    office.force(Run, (row.tenant_id, row.id), claim_token="another's")

    await scheduler.beat()

    await _until(ended)


async def test_an_idle_look_is_one_question_and_no_transaction(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler = office.scheduler()
    await scheduler.tick()
    asked: list[Any] = []
    for name in ("read", "transaction"):
        monkeypatch.setattr(db, name, _noting(getattr(db, name), asked))

    await scheduler.tick()

    assert len(asked) == 1


@pytest.mark.requirement("RUN-61")
async def test_what_a_lost_hint_left_behind_is_found_by_the_sweep(office: Office) -> None:
    scheduler = Scheduler(office.scheduler()._execute)
    await scheduler.tick()
    office.say("alice")
    await scheduler.tick()
    assert office.inputs() == []

    scheduler._sweep_at_s = 0.0
    await scheduler.tick()

    assert len(office.inputs()) == 1


@pytest.mark.requirement("RUN-61", "RUN-8")
async def test_what_could_not_be_delivered_is_tried_again_though_nothing_more_is_said(
    clock: Clock, office: Office
) -> None:
    scheduler = office.scheduler()
    office.say("alice")
    await scheduler.tick()
    said = office.say("alice")
    key = (office.tenant_id, said.id)
    office.force(Message, key, payload=5)
    await _sweep(scheduler)
    assert len(office.inputs()) == 1

    clock.move(seconds=5)
    office.force(Message, key, payload={"type": "text", "text": "Mended"})
    await _sweep(scheduler)

    assert [each.message_id for each in office.inputs()][1:] == [said.id]


async def _sweep(scheduler: Scheduler) -> None:
    scheduler._sweep_at_s = 0.0
    await scheduler.tick()


def _noting(ask: Any, asked: list[Any]) -> Any:
    def note(what: Any, *args: Any, **more: Any) -> Any:
        asked.append(what)
        return ask(what, *args, **more)

    return note


@pytest.mark.requirement("RUN-61")
async def test_stages_that_break_keep_no_run_from_being_claimed(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.say("alice")
    await office.hear()
    await opening.open_due()
    broke: list[str] = []

    def breaking(stage: str) -> Any:
        async def breaks(*_: object) -> int:
            broke.append(stage)
            raise RuntimeError("a fault nobody expected")

        return breaks

    everything = ("scheduling", "opening", "holding", "waking", "recovering", "claiming")
    due = SimpleNamespace(**dict.fromkeys(everything, True))
    monkeypatch.setattr(scheduling, "_due", lambda _session: due)
    for module, stage in (
        (delivery, "sweep"),
        (schedules, "fire_due"),
        (opening, "open_due"),
        (waking, "hold_due"),
        (waking, "wake_due"),
        (recovery, "recover_due"),
    ):
        monkeypatch.setattr(module, stage, breaking(stage))

    await office.scheduler().tick()

    assert len(broke) == 6
    assert office.run().state == "running"
