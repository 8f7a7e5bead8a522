"""How runs end, row by row of the table: run, inputs, calls, consent, and what is said."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from app.commands import pipeline
from app.identity import delegations, users
from app.identity.models import Delegation, User
from app.identity.principal import Principal
from app.kernel import db
from app.kernel.db import Work
from app.runs import checkpoint, ending, preparing, tools, worker
from app.runs.errors import LeaseLost
from app.runs.models.protocol import Usage
from app.runs.models.scripted import Call, Step
from app.runs.run_models import Run
from app.runs.states import RunState
from tests.runs.playing import CREATE, GET, TOLD, TRIP, Stage, playing, remind, told

pytestmark = pytest.mark.anyio

LOOK = Call("read_conversation", {})
Act = Callable[[Stage, Any], Coroutine[Any, Any, None]]


@dataclass(frozen=True)
class End:
    """One row: what the model does, what happens meanwhile, and what becomes of everything."""

    steps: list[Step]
    run: tuple[str, str | None]
    input: str
    outcomes: list[str] = field(default_factory=list)
    release: dict[str, Any] = field(default_factory=dict)
    at: str = ""  # the gate at which `meanwhile` happens
    meanwhile: Act | None = None
    breaks: str = ""


async def _stopped(stage: Stage, scheduler: Any) -> None:
    await stage.stop(scheduler)


async def _disabled(stage: Stage, scheduler: Any) -> None:
    await db.transaction(_disable, stage.world.acme["alice"], stage.world.acme_admin)
    await scheduler.beat()


async def _revoked(stage: Stage, scheduler: Any) -> None:
    await db.transaction(_revoke, stage.desk.person("alice"), stage.enable("alice"))
    await scheduler.beat()


def _disable(work: Work, user: User, by: Principal) -> None:
    users.disable(work, by, work.session.get_one(User, (user.tenant_id, user.id)))


def _revoke(work: Work, person: Principal, made: Delegation) -> None:
    row = work.session.get_one(Delegation, (made.tenant_id, made.id))
    delegations.revoke(work, person, row)


ROWS = {
    "silence": End([Step(calls=[LOOK]), Step()], ("completed", None), "completed", ["done"]),
    "an answer": End(
        [Step(text="So.")],
        ("completed", None),
        "completed",
        release={"closing_text": "publish"},
    ),
    "a person's stop": End(
        [Step(calls=[LOOK]), Step(gate="g")],
        ("canceled", "by_user"),
        "canceled",
        ["done"],
        at="g",
        meanwhile=_stopped,
    ),
    "a user who was disabled": End(
        [Step(calls=[LOOK]), Step(gate="g")],
        ("canceled", "user_disabled"),
        "canceled",
        ["done"],
        at="g",
        meanwhile=_disabled,
    ),
    "a delegation that was revoked": End(
        [Step(calls=[LOOK]), Step(gate="g")],
        ("canceled", "delegation_revoked"),
        "canceled",
        ["done"],
        at="g",
        meanwhile=_revoked,
    ),
    "a provider that refuses": End(
        [Step(text="So f", fault="authentication")], ("failed", "model_authentication"), "failed"
    ),
    "a provider that is down": End(
        [Step(text="So f", fault="server")] * 4, ("failed", "model_server"), "failed"
    ),
    "a filter": End([Step(finish="content_filter")], ("failed", "model_filter"), "failed"),
    "an overflow after recovery": End(
        [Step(fault="overflow")] * 2, ("failed", "context_overflow"), "failed"
    ),
    "an answer that is too long twice": End(
        [Step(text="So", finish="length")] * 2, ("failed", "truncated"), "failed"
    ),
    "three flawed batches": End(
        [Step(calls=[Call("no_such_tool"), LOOK])] * 3,
        ("failed", "flawed"),
        "failed",
        ["not_started"] * 6,
    ),
    "eight calls that fail": End(
        [Step(calls=[Call(GET, {"targetRecordId": f"{n:026}"}) for n in range(9)])],
        ("failed", "failing"),
        "failed",
        ["refused"] * 8 + ["not_started"],
    ),
    "one call over and over": End(
        [Step(calls=[LOOK])] * 6,
        ("failed", "repeating"),
        "failed",
        ["done"] * 3 + ["not_started"] * 3,
    ),
    "too many steps": End(
        [Step(calls=[LOOK])],
        ("completed", "last_step"),
        "completed",
        release={"limits": {"steps": 1}},
    ),
    "a fault of ours": End(
        [Step(calls=[LOOK, LOOK])],
        ("failed", "internal"),
        "failed",
        ["interrupted", "not_started"],
        breaks="heads.finished",
    ),
}


@pytest.mark.requirement("RUN-74", "RUN-6", "RUN-44", "RUN-60", "F-7", "F-43")
@pytest.mark.parametrize("row", ROWS)
async def test_a_run_ends_as_the_table_says_and_its_lane_takes_the_next_message(
    stage: Stage, row: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = ROWS[row]
    stage.publish("expenses", **end.release)
    model = playing(*end.steps)
    stage.say("alice", "expenses", "Begin")
    if end.breaks:
        monkeypatch.setattr(f"app.runs.{end.breaks}", _break)

    async with stage.in_play() as scheduler:
        if end.meanwhile is not None:
            await asyncio.wait_for(model.gate(end.at).reached.wait(), 60)
            await end.meanwhile(stage, scheduler)

    run = stage.runs()[0]
    assert (run.state, run.reason) == end.run, run.public_error
    assert stage.outcomes() == end.outcomes
    heard = stage.inputs("expenses")[0]
    assert (heard.state, heard.reason) == (
        end.input,
        None if not end.run[1] or end.run[0] == "completed" else end.run[1],
    )
    assert [each.payload["text"] for each in stage.sent() if each.payload] == (
        ["So."] if row == "an answer" else []
    )
    assert stage.is_tidy()
    if row == "a user who was disabled":
        return
    monkeypatch.undo()
    monkeypatch.setenv("ASSENT_MODEL", "scripted:loop")
    stage.publish("expenses")
    playing(Step())
    await stage.tell("Next")
    assert stage.runs()[-1].state == "completed"
    assert len(stage.runs()) == 2


@pytest.mark.requirement("RUN-26", "RUN-40", "F-44", "F-87", "F-88")
async def test_a_stop_while_a_call_runs_lets_it_end_and_starts_no_other(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, running, go_on = tools.execute, asyncio.Event(), asyncio.Event()

    async def held(run: Any, call: Any) -> Any:
        running.set()
        await go_on.wait()
        return await real(run, call)

    monkeypatch.setattr(tools, "execute", held)
    playing(Step(calls=[Call(CREATE, TRIP), Call(CREATE, TRIP)]))
    stage.say("alice", "expenses", "Begin")
    async with stage.in_play() as scheduler:
        await asyncio.wait_for(running.wait(), 60)
        await stage.stop(scheduler)
        go_on.set()

    run = stage.run()
    assert (run.state, run.reason) == ("canceled", "by_user")
    assert stage.outcomes() == ["done", "not_started"]
    assert len(stage.done("expense.report.create")) == 1
    assert len(stage.requests()) == 1
    assert stage.is_tidy()


@pytest.mark.requirement("RUN-69", "RUN-65", "CON-55")
async def test_a_call_that_does_not_hear_the_stop_is_left_behind_and_has_no_effect_any_more(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, running, ended = tools.execute, asyncio.Event(), asyncio.Event()
    go_on = asyncio.Event()

    async def deaf(run: Any, call: Any) -> Any:
        running.set()
        try:
            await go_on.wait()
        except asyncio.CancelledError:
            await go_on.wait()
        try:
            return await real(run, call)
        finally:
            ended.set()

    monkeypatch.setattr(tools, "execute", deaf)
    monkeypatch.setattr(worker, "STOP_GRACE_S", 0.01)
    playing(Step(calls=[Call(CREATE, TRIP), Call(CREATE, TRIP)]))
    stage.say("alice", "expenses", "Begin")
    async with stage.in_play() as scheduler:
        await asyncio.wait_for(running.wait(), 60)
        await stage.stop(scheduler)

    assert (stage.run().state, stage.run().reason) == ("canceled", "by_user")
    assert stage.outcomes() == ["interrupted", "not_started"]
    go_on.set()
    await asyncio.wait_for(ended.wait(), 60)
    assert stage.done("expense.report.create") == []
    assert stage.is_tidy()


@pytest.mark.requirement("F-61", "F-88", "RUN-80")
async def test_a_stop_in_mid_stream_keeps_what_was_written_as_thought(stage: Stage) -> None:
    model = playing(Step(text=["Once upon", " a time"], end_gate="end"))
    stage.say("alice", "expenses", "Tell me")
    async with stage.in_play() as scheduler:
        await asyncio.wait_for(model.gate("end").reached.wait(), 60)
        await stage.stop(scheduler)

    (request,) = stage.requests()
    assert (request.state, request.fragment) == ("cancelled", "Once upon a time")
    assert stage.run().state == "canceled"
    assert stage.sent() == []
    assert stage.is_tidy()


@pytest.mark.requirement("F-60", "RUN-52", "RUN-63")
async def test_an_answer_that_comes_after_the_end_changes_nothing_and_is_counted(
    stage: Stage,
) -> None:
    used = Usage(input_tokens=100, output_tokens=20)
    model = playing(Step(calls=[Call(CREATE, TRIP)], usage=used, end_gate="end"))
    stage.say("alice", "expenses", "Begin")
    async with stage.in_play():
        await asyncio.wait_for(model.gate("end").reached.wait(), 60)
        db.transact_now(_end_elsewhere, stage.tenant_id, stage.run().id)
        model.gate("end").open()

    run = stage.run()
    assert (run.state, run.reason) == ("canceled", "by_user")
    assert run.tokens_used == 120
    (request,) = stage.requests()
    assert (request.state, request.input_tokens) == ("cancelled", 100)
    assert stage.calls() == []
    assert stage.is_tidy()


@pytest.mark.requirement("RUN-67", "F-52", "F-68")
async def test_a_request_that_fails_after_a_batch_repeats_none_of_its_calls(stage: Stage) -> None:
    playing(
        Step(calls=[Call(CREATE, TRIP)]),
        Step(text="I ha", fault="cut"),
        Step(fault="connection"),
        Step(check=told('\\"outcome\\":\\"done\\"')),
    )
    await stage.tell()

    assert [each.state for each in stage.requests()] == ["done", "cut", "failed", "done"]
    assert [each.fragment for each in stage.requests()] == [None, "I ha", None, None]
    assert len(stage.done("expense.report.create")) == 1
    assert stage.run().state == "completed"


@pytest.mark.requirement("RUN-48", "F-64")
async def test_a_run_that_finds_another_model_than_before_executes_nothing(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    from app.kernel import settings

    report = await stage.desk.submitted("alice", 5_000)
    playing(Step(calls=[remind(report), Call(CREATE, TRIP)]))
    await stage.tell()
    await stage.decide()

    monkeypatch.setenv("ASSENT_MODEL", "scripted:other")
    settings.current.cache_clear()
    await stage.play()

    run = stage.run()
    assert (run.state, run.reason) == ("failed", "config_changed")
    assert stage.outcomes() == ["not_started", "not_started"]
    assert [each.state for each in stage.approvals()] == ["cancelled"]
    assert stage.fates("expenses")[0] == ("failed", "config_changed")
    assert stage.is_tidy()


@pytest.mark.requirement("RUN-66", "F-51", "RUN-74")
@pytest.mark.parametrize("took_effect", [True, False])
async def test_a_call_that_broke_off_is_told_from_the_trail_and_never_repeated(
    stage: Stage, took_effect: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = tools.execute

    async def dies(run: Any, call: Any) -> Any:
        if took_effect:
            await real(run, call)
        raise LeaseLost

    monkeypatch.setattr(tools, "execute", dies)
    playing(Step(calls=[Call(CREATE, TRIP)]), Step())
    await stage.tell()
    monkeypatch.setattr(tools, "execute", real)
    stage.force(
        Run, (stage.tenant_id, stage.run().id), lease_until=None, state="queued", claim_token=None
    )
    await stage.play()

    assert stage.outcomes() == ["done" if took_effect else "interrupted"]
    assert len(stage.done("expense.report.create")) == took_effect
    assert stage.run().state == "completed"
    assert stage.is_tidy()


@pytest.mark.requirement("RUN-66", "RUN-88", "F-51", "F-53")
async def test_a_store_that_is_lost_after_the_effect_is_no_fault_of_the_call(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, lost = pipeline.execute, [OperationalError("COMMIT", {}, Exception("gone"))]

    async def execute(call: Any) -> Any:
        done = await real(call)
        if lost:
            raise lost.pop()
        return done

    monkeypatch.setattr(worker, "AGAIN_AFTER_S", 0.0)
    monkeypatch.setattr(pipeline, "execute", execute)
    playing(Step(calls=[Call(CREATE, TRIP), Call(CREATE, TRIP)]), Step())
    await stage.tell()

    assert (stage.run().state, stage.run().takeovers) == ("completed", 0)
    assert stage.outcomes() == ["done", "done"]
    assert len(stage.done("expense.report.create")) == 2
    assert [each.attempt for each in stage.calls()] == [1, 1]
    assert stage.is_tidy()


@pytest.mark.requirement("RUN-66", "RUN-74", "F-56")
@pytest.mark.parametrize("took_effect", [True, False])
async def test_a_run_that_is_given_up_tells_of_its_last_call_what_the_trail_says(
    stage: Stage, took_effect: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = tools.execute

    async def dies(run: Any, call: Any) -> Any:
        if took_effect:
            await real(run, call)
        raise LeaseLost

    monkeypatch.setattr(tools, "execute", dies)
    playing(Step(calls=[Call(CREATE, TRIP), LOOK]))
    await stage.tell()
    db.transact_now(_crash_loop, stage.tenant_id, stage.run().id)

    assert stage.run().state == "interrupted"
    assert stage.outcomes() == ["done" if took_effect else "interrupted", "not_started"]
    assert stage.is_tidy()


@pytest.mark.requirement("RUN-115", "F-53")
async def test_a_store_that_fails_gives_the_run_back_and_begins_nothing_anew(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = await stage.desk.submitted("alice", 5_000)
    playing(Step(calls=[remind(report)]), Step())
    await stage.tell()
    await stage.decide()

    def lost(*_: Any) -> Any:
        raise OperationalError("SELECT", {}, Exception("gone"))

    monkeypatch.setattr(worker, "AGAIN_AFTER_S", 0.0)
    with monkeypatch.context() as patched:
        patched.setattr(checkpoint, "newest", _fails_once(lost, checkpoint.newest))
        await stage.play()

    run = stage.run()
    assert (run.state, run.takeovers) == ("completed", 0)
    assert len(stage.done("expense.report.remind")) == 1
    assert len(stage.requests()) == 2


@pytest.mark.requirement("F-53", "F-56")
async def test_a_checkpoint_that_stays_unreadable_ends_the_run(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "AGAIN_AFTER_S", 0.0)
    monkeypatch.setattr(preparing, "_restored", _unreadable)
    playing()
    await stage.tell()

    run = stage.runs()[0]
    assert (run.state, run.reason) == ("interrupted", "crash_loop")
    assert stage.requests() == []


@pytest.mark.requirement("F-65", "RUN-68")
async def test_a_final_write_completes_while_its_task_is_cancelled(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, writing = ending.finish, asyncio.Event()
    loop = asyncio.get_running_loop()

    def slowly(*given: Any) -> None:
        loop.call_soon_threadsafe(writing.set)
        real(*given)

    monkeypatch.setattr(ending, "finish", slowly)
    playing(Step())
    stage.say("alice", "expenses", "Begin")
    scheduler = stage.scheduler(worker.execute)
    task = asyncio.create_task(scheduler.drain())
    await asyncio.wait_for(writing.wait(), 60)
    for held in scheduler.hands.held.values():
        assert held.task is not None
        held.task.cancel()
    await asyncio.wait([task], timeout=60)

    assert stage.run().state == "completed"
    assert stage.is_tidy()


@pytest.mark.requirement("RUN-74", "RUN-26")
async def test_a_stop_before_the_end_is_stored_is_a_stop_and_publishes_nothing(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = worker._finish

    async def stopped_first(run: Any, outcome: Any) -> None:
        await stage.stop()
        await real(run, outcome)

    monkeypatch.setattr(worker, "_finish", stopped_first)
    stage.publish("expenses", closing_text="publish")
    playing(Step(text="Too late."))
    await stage.tell()

    assert (stage.run().state, stage.run().reason) == ("canceled", "by_user")
    assert stage.sent() == []
    assert stage.is_tidy()


@pytest.mark.requirement("RUN-51", "RUN-88", "RUN-41")
async def test_an_outside_effect_of_which_nobody_knows_ends_the_run_and_is_not_repeated(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    from app.runs import offering

    async def reaches_out(_run: Any, _call: Any) -> Any:
        raise ConnectionError("host db-7 password hunter2")

    real = offering.tools_of

    async def with_outside(run: Any) -> Any:
        found = await real(run)
        found["read_conversation"] = replace(
            found["read_conversation"], effect="external", run=reaches_out
        )
        return found

    monkeypatch.setattr(offering, "tools_of", with_outside)
    playing(Step(calls=[LOOK, TOLD]))
    await stage.tell()

    run = stage.run()
    assert (run.state, run.reason) == ("outcome_unknown", "outcome_unknown")
    assert stage.outcomes() == ["unknown", "not_started"]
    assert stage.fates("expenses")[0] == ("interrupted", "outcome_unknown")
    assert "hunter2" not in str([each.model_dump() for each in stage.calls()])
    assert stage.sent() == []


def _break(*_: Any) -> None:
    raise RuntimeError("host db-7 password hunter2")


def _unreadable(*_: Any) -> Any:
    raise checkpoint.UnreadableCheckpoint


def _fails_once(first: Any, then: Any) -> Any:
    left = [first]

    def call(*given: Any) -> Any:
        return (left.pop() if left else then)(*given)

    return call


def _end_elsewhere(work: Work, tenant_id: str, run_id: str) -> None:
    row = work.session.get_one(Run, (tenant_id, run_id))
    ending.close(work, row, ending.End(state=RunState.CANCELED, reason="by_user"))


def _crash_loop(work: Work, tenant_id: str, run_id: str) -> None:
    row = work.session.get_one(Run, (tenant_id, run_id))
    row.state = "queued"
    work.session.add(row)
    work.session.flush()
    ending.end(work, row, RunState.INTERRUPTED, "crash_loop")
