"""Turns against a provider that forgives nothing, over HTTP on both wires (RUN-110)."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from app.kernel import settings
from app.runs import policies
from app.runs import request as asking
from app.runs.states import EntryKind
from tests import strict_provider
from tests.runs.models import odd_answers
from tests.runs.playing import CREATE, REMIND, TRIP, Stage, about
from tests.strict_provider import KEY, LEAK, Calls, Counted, Fail, Say, StrictProvider

pytestmark = pytest.mark.anyio

FILE = Calls(CREATE, json.dumps(TRIP))
LOOK = Calls("read_conversation", "{}")
NUMBERS = count()
ODD = {
    "openai": [
        ("worded", "choices is a number"),
        ("worded", "model is half a character"),
        ("worded", "choices.0.delta.content is a NUL"),
        ("worded", "choices.0.delta.tool_calls.0.id is half a character"),
        ("worded", "choices.0.delta.tool_calls.0.function.name is control characters"),
        ("counted", "usage.prompt_tokens is huge"),
    ],
    "anthropic": [
        ("worded", "message is a number"),
        ("worded", "message.model is half a character"),
        ("worded", "content_block.text is a number"),
        ("worded", "content_block.id is half a character"),
        ("worded", "content_block.name is control characters"),
        ("counted", "usage.output_tokens is huge"),
    ],
}


@pytest.fixture
def provider() -> Iterator[StrictProvider]:
    with strict_provider.serving() as served:
        yield served
    assert served.complaints == []


@pytest.fixture(params=["openai", "anthropic"], autouse=True)
def wire(
    request: pytest.FixtureRequest,
    provider: StrictProvider,
    scripted: None,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[str]:
    """Every agent thinks with that provider, on one wire, and waits for nothing."""
    wire = str(request.param)
    monkeypatch.setenv("ASSENT_MODEL", f"{wire}:strict-1")
    monkeypatch.setenv("ASSENT_MODEL_BASE_URL", provider.url(wire))
    monkeypatch.setenv("ASSENT_MODEL_API_KEY", KEY)
    monkeypatch.setattr(asking, "FIRST_WAIT_S", 0.0)
    monkeypatch.setattr(asking, "LONGEST_ASKED_S", 0.0)
    settings.current.cache_clear()
    yield wire
    settings.current.cache_clear()


def anew(*calls: Calls) -> list[Calls]:
    """These calls, under ids that were never used before."""
    return [replace(each, id=f"call-{next(NUMBERS)}") for each in calls]


def raws(provider: StrictProvider) -> list[bytes]:
    return [asked.raw for asked in provider.asked]


@pytest.mark.requirement("RUN-110", "RUN-44", "RUN-82", "F-17", "F-32", "F-33", "RUN-103")
@pytest.mark.parametrize("verdict", ["approve", "deny"])
async def test_calls_made_at_once_are_answered_one_by_one_also_after_a_person_decided(
    stage: Stage, provider: StrictProvider, verdict: str
) -> None:
    report = await stage.desk.submitted("alice", 5_000)
    nudge = Calls(REMIND, json.dumps(about(report)))
    provider.will(
        Say(thoughts=["Hm."], text=["I do", " it."], calls=anew(FILE, nudge, LOOK)), Say()
    )
    await stage.tell()
    assert stage.run().state == "suspended", stage.run().public_error

    await stage.decide(verdict, **({"reason": "No!"} if verdict == "deny" else {}))
    await stage.play()

    middle = "done" if verdict == "approve" else "denied"
    assert stage.outcomes() == ["done", middle, "done"]
    assert stage.run().state == "completed", stage.run().public_error
    assert stage.is_tidy()


@pytest.mark.requirement("RUN-28", "RUN-102")
@pytest.mark.filterwarnings("ignore::UserWarning")  # the library's, about what it read
async def test_a_run_comes_to_its_end_whatever_its_provider_answers(
    stage: Stage, provider: StrictProvider, wire: str
) -> None:
    for what, name in ODD[wire]:
        provider.will(odd_answers.of(wire, what)[name], Say(text=["Well."]))
        await stage.tell()

    assert [run.state for run in stage.runs()] == ["completed"] * len(ODD[wire])
    assert stage.is_tidy()


@pytest.mark.requirement("F-67", "F-68", "F-69", "F-84", "RUN-25", "RUN-28", "RUN-81")
@pytest.mark.parametrize("end", ["early", "drop", "error"])
async def test_a_broken_stream_executes_nothing_and_the_very_same_request_goes_out_again(
    stage: Stage, provider: StrictProvider, end: Any
) -> None:
    provider.will(Say(calls=anew(FILE)), Say(text=["Half a "], calls=anew(FILE), end=end), Say())
    await stage.tell()

    assert stage.run().state == "completed", stage.run().public_error
    assert len(stage.done("expense.report.create")) == 1
    _, broken, again = stage.requests()
    assert broken.state in ("cut", "failed")
    assert (broken.turn, broken.attempt, broken.fragment) == (2, 1, "Half a ")
    assert (again.turn, again.attempt, again.thought_id) == (2, 2, broken.thought_id)
    assert broken.request_digest == again.request_digest
    assert raws(provider)[1] == raws(provider)[2]
    texts = [each.body["text"] for each in stage.entries() if each.kind == EntryKind.RESPONSE]
    assert "Half a " not in texts
    assert stage.is_tidy()


@pytest.mark.requirement("F-70", "RUN-82")
async def test_an_answer_cut_at_its_length_is_not_executed_and_asked_for_once_more(
    stage: Stage, provider: StrictProvider
) -> None:
    provider.will(Say(calls=anew(FILE), finish="length"), Say(text=["Short."]), Say())
    await stage.tell()

    assert stage.run().state == "completed", stage.run().public_error
    assert stage.notes()[0] == "shorter"
    assert stage.calls() == []
    assert stage.run().steps_used == 3  # the first, the shorter one, and after the reminder
    assert stage.is_tidy()


@pytest.mark.requirement("RUN-81", "RUN-25", "RUN-41")
async def test_passing_faults_are_tried_four_times_and_tell_nothing_of_the_provider(
    stage: Stage, provider: StrictProvider
) -> None:
    fails = [Fail("rate_limited", retry_after=7), Fail("overloaded"), Fail("server")]
    provider.will(*fails, Say(), *fails, Fail("server"))
    await stage.tell("One")
    await stage.tell("Two")

    first, second = stage.runs()
    assert (first.state, first.steps_used) == ("completed", 1)
    assert (second.state, second.reason) == ("failed", "model_server")
    assert len(provider.asked) == 8
    assert len(set(raws(provider)[:4])) == 1
    told = [second.public_error, *(each.public_error for each in stage.requests())]
    assert not [each for each in told if each and (LEAK in each or "hunter2" in each)]
    assert stage.is_tidy()


@pytest.mark.requirement("RUN-81")
@pytest.mark.parametrize("fault", ["authentication", "not_found", "rejected", "quota"])
async def test_final_faults_are_never_tried_again(
    stage: Stage, provider: StrictProvider, fault: str
) -> None:
    provider.will(Fail(fault))
    await stage.tell()

    run = stage.run()
    assert (run.state, run.reason) == ("failed", f"model_{fault}")
    assert len(provider.asked) == 1


@pytest.mark.requirement("F-61", "RUN-26", "RUN-69")
async def test_a_stop_in_mid_stream_ends_the_request_at_the_provider(
    stage: Stage, provider: StrictProvider
) -> None:
    provider.will(Say(text=["Once", " upon", " a", " time"], gate="tale"))
    gate = provider.gate("tale")
    stage.say("alice", "expenses", "Tell me")
    async with stage.in_play() as scheduler:
        assert await asyncio.to_thread(gate.reached.wait, 20)
        await stage.stop(scheduler)

    assert await asyncio.to_thread(gate.gone.wait, 20)
    assert (stage.run().state, stage.run().reason) == ("canceled", "by_user")
    assert [each.state for each in stage.requests()] == ["cancelled"]
    provider.will(Say())
    await stage.tell("Next")
    assert stage.runs()[-1].state == "completed"


@pytest.mark.requirement("RUN-83", "RUN-30", "RUN-77")
async def test_an_overflow_is_recovered_from_once_and_a_whole_batch_gives_that_back(
    stage: Stage, provider: StrictProvider
) -> None:
    turns = [Say(calls=anew(call)) for call in (LOOK, FILE, LOOK, FILE)]
    provider.will(*turns, Fail("overflow"), Say(text=["What was: all of it."]))
    provider.will(Say(calls=anew(LOOK)), Fail("overflow"), Say(text=["A summary."]), Say())
    await stage.tell()

    run = stage.run()
    assert run.state == "completed", (run.reason, run.public_error)
    purposes = [each.purpose for each in stage.requests()]
    assert purposes.count("compaction") == 2
    asked = [each for each in stage.requests() if each.state != "failed"]
    assert run.steps_used == len(asked) + 2  # a request that overflowed took its step too
    inputs = [each for each in stage.entries() if each.kind == EntryKind.INPUT]
    assert inputs[0].body["text"] in raws(provider)[-1].decode()
    assert stage.is_tidy()


@pytest.mark.requirement("F-75", "RUN-79", "RUN-27")
async def test_a_long_run_in_a_small_window_is_accepted_at_every_step(
    stage: Stage, provider: StrictProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.publish("expenses", limits={"tokens": 10**7})
    monkeypatch.setenv("ASSENT_MODEL_CONTEXT_TOKENS", "22000")
    monkeypatch.setenv("ASSENT_MODEL_OUTPUT_TOKENS", "256")
    settings.current.cache_clear()
    turn = count()

    def answers(asked: Any) -> Say:
        if b"Summarise what happened" in asked.raw:
            return Say(text=["It went on."], usage=None)
        number = next(turn)
        if number >= 20:
            return Say(usage=None)
        told = json.dumps({"text": f"{number}" + " word" * 900})
        said = Calls("send_message", told) if number < 3 else FILE
        return Say(calls=anew(said, LOOK), usage=None)

    provider.answer = answers
    await stage.tell("Remember this word: Rumpelstilzchen")

    run = stage.run()
    assert run.state == "completed", (run.reason, run.public_error)
    assert [each for each in stage.requests() if each.purpose == "compaction"]
    assert all("Rumpelstilzchen" in raw.decode() for raw in raws(provider))
    assert stage.is_tidy()


@pytest.mark.requirement("F-46", "F-47", "F-49", "RUN-31", "RUN-84")
async def test_flaws_and_bad_arguments_are_answered_and_the_next_request_is_accepted(
    stage: Stage, provider: StrictProvider
) -> None:
    twice = [Calls(CREATE, json.dumps(TRIP), id="same")] * 2
    bad = anew(LOOK, Calls(CREATE, '{"title": "Tr'), FILE)
    unknown = anew(FILE, LOOK, Calls("no_such_tool"))
    provider.will(Say(calls=twice), Say(calls=bad), Say(calls=unknown), Say())
    await stage.tell()

    assert stage.run().state == "completed", stage.run().public_error
    assert stage.outcomes() == [
        *["not_started"] * 2,
        *["done", "refused", "done"],
        *["not_started"] * 3,
    ]
    assert "no_such_tool" in stage.results()[-1]["reason"]
    assert len(stage.done("expense.report.create")) == 1
    assert stage.is_tidy()


@pytest.mark.requirement("F-41", "RUN-88", "RUN-41")
async def test_a_policy_that_raises_costs_its_call_alone(
    stage: Stage, provider: StrictProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = policies.release
    asked: list[int] = []

    async def release(run: Any, call: Any) -> Any:
        asked.append(1)
        if len(asked) == 2:
            raise RuntimeError(LEAK)
        return await real(run, call)

    monkeypatch.setattr(policies, "POLICIES", (release,))
    provider.will(Say(calls=anew(FILE, FILE, FILE)), Say())
    await stage.tell()

    assert stage.run().state == "completed", stage.run().public_error
    assert stage.outcomes() == ["done", "refused", "done"]
    assert stage.results()[1]["reason"] == "internal"
    assert LEAK not in str(stage.results())
    assert stage.is_tidy()


@pytest.mark.requirement("F-43", "F-44", "F-61", "RUN-40", "RUN-44")
async def test_after_a_stop_within_a_batch_the_lanes_next_run_is_accepted(
    stage: Stage, provider: StrictProvider
) -> None:
    report = await stage.desk.submitted("alice", 5_000)
    nudge = Calls(REMIND, json.dumps(about(report)))
    provider.will(Say(calls=anew(FILE, nudge, FILE, LOOK)))
    await stage.tell()
    await stage.stop()
    assert stage.outcomes() == ["done", "not_started", "not_started", "not_started"]

    provider.will(Say(calls=anew(LOOK)), Say())
    await stage.tell("Next")

    assert [run.state for run in stage.runs()] == ["canceled", "completed"]
    assert stage.is_tidy()


@pytest.mark.requirement("F-71", "F-72", "RUN-104", "RUN-29")
async def test_what_was_counted_is_kept_once_and_what_was_not_is_unknown(
    stage: Stage, provider: StrictProvider
) -> None:
    provider.will(Say(calls=anew(LOOK), usage=Counted(input=100, output=7, cached=60)))
    provider.will(Say(usage=None))
    await stage.tell()

    first, second = stage.requests()
    assert (first.input_tokens, first.cache_read_tokens, first.output_tokens) == (100, 60, 7)
    assert (second.input_tokens, second.measured) == (None, False)
    assert stage.run().tokens_used > 107  # the estimate counts for what nobody measured
