"""The scripted model: what it says, when it waits, how it goes on after a takeover (RUN-109)."""

import json
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from app.runs.models import scripted
from app.runs.models.protocol import (
    Answered,
    Ask,
    CallDelta,
    Delta,
    Entry,
    Model,
    ModelFault,
    Response,
    TextDelta,
    ThoughtDelta,
    Usage,
)
from app.runs.models.scripted import (
    Call,
    NotAsScripted,
    OutOfSteps,
    Script,
    ScriptedModel,
    Step,
    Story,
)
from tests.runs.models.asking import ask, input_entry, response_entry

pytestmark = pytest.mark.requirement("RUN-109")


async def said(model: Model, asked: Ask) -> list[Delta]:
    return [piece async for piece in model.stream(asked)]


async def answer(model: Model, asked: Ask) -> Response:
    last = (await said(model, asked))[-1]
    assert isinstance(last, Answered)
    return last.response


async def test_a_step_is_said_piece_by_piece_and_then_as_a_whole() -> None:
    usage = Usage(input_tokens=10, output_tokens=3)
    call = Call("send_message", {"text": "Hi"}, provider_id="p1")
    step = Step(thoughts=["Hm. ", "Yes."], text=["Hel", "lo"], calls=[call], usage=usage)

    *pieces, last = await said(ScriptedModel([step]), ask())

    assert pieces == [
        ThoughtDelta("Hm. "),
        ThoughtDelta("Yes."),
        TextDelta("Hel"),
        TextDelta("lo"),
        CallDelta("send_message"),
    ]
    assert isinstance(last, Answered)
    response = last.response
    assert (response.thoughts, response.text) == (("Hm. ", "Yes."), "Hello")
    assert (response.finish, response.usage) == ("tool_calls", usage)
    assert response.calls[0].provider_id == "p1"
    assert json.loads(response.calls[0].arguments) == {"text": "Hi"}


async def test_running_out_of_steps_is_an_error() -> None:
    model = ScriptedModel([Step(text="One.")])
    await answer(model, ask())

    with pytest.raises(OutOfSteps):
        await answer(model, ask())
    assert model.steps_left == 0


async def test_a_step_asserts_on_what_is_asked() -> None:
    def no_tools(asked: Ask) -> None:
        assert not asked.tools_on

    model = ScriptedModel([Step(check=no_tools), Step(contains=["trains"]), Step(check=no_tools)])

    await answer(model, ask(tools_on=False))
    with pytest.raises(NotAsScripted):
        await answer(model, ask(input_entry("About planes")))
    with pytest.raises(AssertionError):
        await answer(model, ask())
    assert len(model.asks) == 3


async def test_a_gate_proves_what_was_in_flight() -> None:
    model = ScriptedModel([Step(text="Slow.", end_gate="end"), Step(gate="start", text="Later.")])
    heard: list[Delta] = []

    async def listen() -> None:
        heard.extend([piece async for piece in model.stream(ask())])

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listen)
            await model.gate("end").reached.wait()
            assert heard == []
            model.gate("end").open()
        assert heard[0] == TextDelta("Slow.")
        model.gate("start").open()  # before anybody stands there
        assert (await answer(model, ask())).text == "Later."


async def test_a_fault_comes_after_the_pieces_that_arrived() -> None:
    model = ScriptedModel([Step(text="Half an ", fault="cut"), Step(text="Half an answer.")])
    heard: list[Delta] = []

    with pytest.raises(ModelFault) as caught:
        await _hear(model, heard)

    assert heard == [TextDelta("Half an ")]
    assert (caught.value.kind, caught.value.retryable) == ("cut", True)
    assert (await answer(model, ask())).text == "Half an answer."


async def test_each_run_gets_the_story_of_its_own_input() -> None:
    model = ScriptedModel(
        Script(
            steps=[Step(text="Who knows.")],
            stories=[
                Story("train", [Step(text="T1"), Step(text="T2")]),
                Story("hotel", [Step(text="H1"), Step(text="H2")]),
            ],
        )
    )
    train, hotel = input_entry("A train, please"), input_entry("A hotel, please", id="m2")

    heard = [
        (await answer(model, ask(*entries))).text
        for entries in (
            [train],
            [hotel],
            [train, response_entry("T1"), input_entry("Any more?", id="m3")],
            [hotel, response_entry("H1")],
            [input_entry("Boo", id="m4")],
        )
    ]

    assert heard == ["T1", "H1", "T2", "H2", "Who knows."]


async def test_another_process_goes_on_after_the_answers_the_transcript_holds(
    tmp_path: Path,
) -> None:
    file = tmp_path / "story.json"
    steps = [
        {"fault": "overloaded"},
        {"calls": [{"tool": "send_message", "arguments": {"text": "Hi"}}]},
        {"fault": {"kind": "rate_limited", "retry_after_s": 2.5}, "text": "Ha"},
        {"text": ["Do", "ne"], "usage": {"input_tokens": 7, "output_tokens": 2}},
    ]
    file.write_text(json.dumps({"stories": [{"when": "train", "steps": steps}]}))
    first = ScriptedModel(scripted.from_json(file.read_bytes()))
    heard = input_entry("A train, please")
    with pytest.raises(ModelFault):
        await answer(first, ask(heard))
    response = await answer(first, ask(heard))

    taken_over = scripted.named(str(file))
    entries = [heard, response_entry(calls=[response.calls[0].name])]
    with pytest.raises(ModelFault) as caught:
        await answer(taken_over, ask(*entries))
    last = await answer(taken_over, ask(*entries))

    assert caught.value.retry_after_s == 2.5
    assert (last.text, last.usage) == ("Done", Usage(input_tokens=7, output_tokens=2))
    assert scripted.named(str(file)) is taken_over


@pytest.mark.parametrize("name", ["nobody-wrote-it", "/nowhere/story.json"])
def test_a_script_nobody_wrote_is_a_misconfigured_model(name: str) -> None:
    with pytest.raises(ModelFault) as caught:
        scripted.named(name)

    assert caught.value.kind == "misconfigured"


@pytest.mark.parametrize("arguments", ["{broken", "[]", ""])
async def test_arguments_may_be_anything_a_model_writes(arguments: str) -> None:
    step = Step(calls=[Call("send_message", arguments)])

    response = await answer(ScriptedModel([step]), ask())

    assert response.calls[0].arguments == arguments


async def test_ids_of_calls_are_new_ones_unless_the_script_says_otherwise() -> None:
    calls: Sequence[Call] = [Call("a"), Call("a"), Call("a", provider_id="x"), Call("a", {}, "x")]

    response = await answer(ScriptedModel([Step(calls=calls)]), ask())

    ids = [call.provider_id for call in response.calls]
    assert len(set(ids[:2])) == 2
    assert ids[2:] == ["x", "x"]


async def test_arguments_may_be_taken_from_what_was_asked() -> None:
    def quote(asked: Ask) -> dict[str, str]:
        return {"text": asked.entries[-1].body["text"]}

    step = Step(calls=[Call("send_message", quote)])
    heard: Entry = input_entry("Echo")

    response = await answer(ScriptedModel([step]), ask(heard))

    assert json.loads(response.calls[0].arguments) == {"text": "Echo"}


async def _hear(model: Model, heard: list[Delta]) -> None:
    async for piece in model.stream(ask()):
        heard.append(piece)  # noqa: PERF401 - what came before a fault is kept
