"""Batches of calls: their order, their records, and what comes back after a break."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from sqlmodel import select

from app.commands import external
from app.commands.definition import Operation, Risk
from app.commands.external import ExternalResult
from app.commands.outbox_models import ExternalEffect
from app.kernel import db
from app.kernel.db import Work
from app.runs import budget, compaction, offering, tools
from app.runs.models.protocol import Ask
from app.runs.models.scripted import Call, ScriptedModel, Step
from app.runs.run_models import ToolCallDiagnostic
from tests.commands.declaring import installed, writing
from tests.runs.playing import CREATE, GET, TRIP, Stage, playing, remind, told

pytestmark = pytest.mark.anyio

NOTE = Call("desk-ticket-note", {"subject": "Printer"})
LOOK = Call("read_conversation", {})


@pytest.fixture
def outside(stage: Stage) -> Iterator[Stage]:
    """The desk, with a command whose effect is outside and that alice has to assent to."""
    with installed(writing("desk.ticket.note", operation=Operation.EXTERNAL, risk=Risk.L3)):
        grants = {"desk.ticket.write": "all"}
        stage.world.give(stage.world.acme["alice"], "clerk", grants=grants)
        yield stage


def settle(work: Work, outcome: Any) -> None:
    (effect,) = work.session.exec(select(ExternalEffect)).all()
    effect.state = outcome
    work.session.add(effect)
    work.session.flush()
    external.put_on_record(work, effect, ExternalResult(outcome=outcome, data={"no": 7}))


@pytest.mark.requirement("RUN-33", "RUN-34", "RUN-36", "RUN-38")
async def test_calls_run_in_order_each_on_record_before_it_happens_and_told_after(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, list[str], int]] = []
    real_prepare, real_execute = tools.prepare, tools.execute

    def prepare(run: Any, call: Any) -> Any:
        before = len(stage.calls())
        made = real_prepare(run, call)
        assert len(stage.calls()) == before
        return made

    async def execute(run: Any, call: Any) -> Any:
        states = [each.state for each in stage.calls()]
        seen.append((call.call.tool, states, len(stage.results())))
        return await real_execute(run, call)

    monkeypatch.setattr(tools, "prepare", prepare)
    monkeypatch.setattr(tools, "execute", execute)
    playing(Step(calls=[LOOK, Call(CREATE, TRIP), LOOK]), Step())
    await stage.tell()

    assert seen == [
        (LOOK.tool, ["started"], 0),
        (CREATE, ["done", "started"], 1),
        (LOOK.tool, ["done", "done", "started"], 2),
    ]
    assert stage.is_tidy()


@pytest.mark.requirement("RUN-41", "RUN-88", "F-86")
async def test_a_tool_that_falls_over_is_refused_and_its_cause_is_private(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "host db-7.internal password hunter2"
    real = offering.tools_of

    async def broken(run: Any) -> Any:
        found = await real(run)

        async def fall(_run: Any, _call: Any) -> Any:
            raise RuntimeError(secret)

        from dataclasses import replace

        found[LOOK.tool] = replace(found[LOOK.tool], run=fall)
        return found

    monkeypatch.setattr(offering, "tools_of", broken)
    playing(Step(calls=[LOOK, Call(CREATE, TRIP)]), Step())
    await stage.tell()

    assert stage.outcomes() == ["refused", "done"]
    assert stage.results()[0]["reason"] == "internal"
    kept = [str(each.model_dump()) for each in (*stage.calls(), *stage.entries(), *stage.runs())]
    assert not [each for each in kept if "hunter2" in each]
    (diagnostic,) = db.read_now(lambda session: session.exec(select(ToolCallDiagnostic)).all())
    assert secret in diagnostic.diagnostic
    assert stage.run().state == "completed"


@pytest.mark.requirement("RUN-88", "RUN-95")
async def test_an_effect_that_fails_as_it_is_recorded_leaves_nothing_and_is_refused(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    from app.runs import speaking

    real = speaking.say
    tries: list[int] = []

    def falls_after(*given: Any, **more: Any) -> Any:
        real(*given, **more)
        tries.append(1)
        raise RuntimeError("too late")

    playing(Step(calls=[Call("send_message", {"text": "Hi"}), LOOK]), Step())
    monkeypatch.setattr(speaking, "say", falls_after)
    await stage.tell()

    assert tries
    assert stage.outcomes() == ["refused", "done"]
    assert (stage.sent(), stage.sent_rows()) == ([], [])
    assert stage.is_tidy()


@pytest.mark.requirement("RUN-49", "RUN-82", "RUN-20", "F-80")
async def test_results_used_ids_and_the_scope_of_sends_come_back_together(stage: Stage) -> None:
    report = await stage.desk.submitted("alice", 5_000)
    say = Call("send_message", {"text": "Once"}, provider_id="used")
    again = Call("send_message", {"text": "Once"})
    playing(
        Step(calls=[say]),
        Step(calls=[remind(report)]),
        Step(calls=[again]),
        Step(calls=[Call(CREATE, TRIP, provider_id="used")]),
        Step(),
    )
    await stage.tell()
    await stage.decide()
    await stage.play()

    results = stage.results()
    assert results[2]["result"]["duplicate"] is True
    assert results[2]["result"]["message_id"] == results[0]["result"]["message_id"]
    assert results[3]["outcome"] == "not_started"
    assert len(stage.sent()) == 1
    assert stage.is_tidy()


@pytest.mark.requirement("RUN-92", "RUN-89", "RUN-66")
@pytest.mark.parametrize("outcome", ["done", "failed"])
async def test_an_approved_call_outside_waits_for_what_comes_of_it_and_is_made_once(
    outside: Stage, outcome: str
) -> None:
    playing(Step(calls=[NOTE, LOOK]), Step())
    await outside.tell()
    await outside.decide()
    await outside.play()
    assert outside.run().state == "suspended"
    assert [each.kind for each in outside.waits()] == ["approval", "call"]

    db.transact_now(settle, outcome)
    await outside.play()

    assert outside.run().state == "completed", outside.run().public_error
    assert outside.outcomes() == ["done" if outcome == "done" else "refused", "done"]
    assert len(_effects()) == 1
    assert outside.is_tidy()


@pytest.mark.requirement("RUN-51", "RUN-74")
async def test_a_call_outside_of_which_nobody_knows_ends_its_run(outside: Stage) -> None:
    playing(Step(calls=[NOTE, LOOK]))
    await outside.tell()
    await outside.decide()
    await outside.play()

    db.transact_now(settle, "unknown")
    await outside.play()

    run = outside.run()
    assert (run.state, run.reason) == ("outcome_unknown", "outcome_unknown")
    assert outside.outcomes() == ["unknown", "not_started"]
    assert outside.fates("expenses")[0] == ("interrupted", "outcome_unknown")
    assert outside.is_tidy()


@pytest.mark.requirement("RUN-74", "F-44")
async def test_a_call_outside_is_recorded_as_it_ends_though_its_run_was_stopped(
    outside: Stage,
) -> None:
    playing(Step(calls=[NOTE, LOOK]))
    await outside.tell()
    await outside.decide()
    await outside.play()

    await outside.stop()
    assert outside.run().state == "canceled"
    assert [each.state for each in outside.calls()] == ["waiting", "not_started"]
    db.transact_now(settle, "done")

    assert [each.state for each in outside.calls()] == ["done", "not_started"]
    assert sorted(outside.outcomes()) == ["done", "not_started"]
    assert outside.is_tidy()


def squeezed(monkeypatch: pytest.MonkeyPatch, *summary: Step) -> ScriptedModel:
    """A run of nine turns, in the last of which room has to be made; then one more call."""
    real = compaction.fit

    async def fit(run: Any) -> Ask:
        monkeypatch.setattr(budget, "room", lambda _run: 20_000 if run.turn == 9 else 10**6)
        return await real(run)

    monkeypatch.setattr(compaction, "FULL", 0.1)
    monkeypatch.setattr(compaction, "fit", fit)
    turns = [Step(calls=[Call(GET, {"targetRecordId": f"{n:026}"}), LOOK]) for n in range(8)]
    return playing(*turns, *summary, Step(calls=[LOOK]), Step())


@pytest.mark.requirement("F-74", "RUN-27", "RUN-11", "RUN-77")
async def test_a_message_during_compaction_is_taken_at_the_next_boundary(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = told("Summarise what happened")
    model = squeezed(monkeypatch, Step(text="What\x00 was.", gate="summary", check=asked))
    stage.say("alice", "expenses", "Begin")
    async with stage.in_play():
        await asyncio.wait_for(model.gate("summary").reached.wait(), 60)
        stage.say("alice", "expenses", "And one more thing")
        await stage.hear()
        model.gate("summary").open()

    assert stage.run().state == "completed", stage.run().public_error
    told("And one more thing")(model.asks[-1])
    assert [each.purpose for each in stage.requests()].count("compaction") == 1
    assert stage.run().steps_used == len(stage.requests())
    assert [state for state, _ in stage.fates("expenses")] == ["completed", "completed"]
    assert stage.is_tidy()


@pytest.mark.requirement("RUN-26", "RUN-79", "F-61")
async def test_a_stop_during_compaction_is_a_stop(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = squeezed(monkeypatch, Step(text="What was.", gate="summary"))
    stage.say("alice", "expenses", "Begin")
    async with stage.in_play() as scheduler:
        await asyncio.wait_for(model.gate("summary").reached.wait(), 60)
        await stage.stop(scheduler)

    assert (stage.run().state, stage.run().reason) == ("canceled", "by_user")
    assert [each.state for each in stage.requests()][-1] == "cancelled"
    assert stage.is_tidy()


@pytest.mark.requirement("RUN-28", "RUN-79")
@pytest.mark.parametrize("summary", [Step(text="Half a", finish=None), Step(fault="server")])
async def test_a_summary_that_broke_off_is_not_used(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, summary: Step
) -> None:
    model = squeezed(monkeypatch, summary)
    await stage.tell("Begin")

    assert stage.run().state == "completed", stage.run().public_error
    summed = [each.body["text"] for each in model.asks[-1].entries if each.kind == "summary"]
    assert len(summed) == 1
    assert "Half a" not in summed[0]
    assert f"- {GET}: refused" in summed[0]
    assert stage.is_tidy()


@pytest.mark.requirement("RUN-47")
async def test_the_end_of_a_run_leaves_an_open_call_of_nobody(stage: Stage) -> None:
    playing(Step(calls=[Call("await_timer", {"seconds": 60})]))
    await stage.tell()

    assert stage.run().state == "suspended"
    assert [each.state for each in stage.calls()] == ["done"]
    await stage.stop()
    assert stage.is_tidy()


@pytest.mark.requirement("RUN-86", "RUN-59")
async def test_a_long_result_is_kept_whole_and_shown_cut(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(5):
        stage.say("alice", "expenses", "x" * 6_000)
    playing(*[Step()] * 5)
    await stage.play()
    playing(Step(calls=[LOOK]), Step())
    await stage.tell("Read it all")

    (call,) = stage.calls()
    entry = next(each for each in stage.entries() if each.kind == "results")
    assert len(str(call.result)) > 20_000
    assert len(entry.body["text"]) < 17_000
    assert '"cut"' in entry.body["text"]


def _effects() -> list[ExternalEffect]:
    return db.read_now(lambda session: list(session.exec(select(ExternalEffect)).all()))
