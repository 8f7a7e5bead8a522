"""Who keeps a call from starting: its arguments, the release, the breaker."""

import json
from typing import Any

import pytest

from app.runs import tools
from app.runs.errors import RunFailed
from app.runs.outcome import Done, NotStarted, Refused, Result, Tools
from app.runs.session import RunSession
from app.runs.states import CallKind
from app.runs.tool import Prepared, Tool
from tests.runs import bare

pytestmark = pytest.mark.anyio

AMOUNT = {
    "type": "object",
    "properties": {"amount": {"type": "integer", "minimum": 1}},
    "required": ["amount"],
    "additionalProperties": False,
}


def prepared(run: RunSession, tool: Tool, arguments: str) -> Prepared:
    """A call of this tool, as the loop prepares it."""
    run.tools = {tool.name: tool}
    return tools.prepare(run, bare.call(tool.name, arguments))


async def refusal(tool: Tool, arguments: str, **release: Any) -> Result | None:
    """What the policies say of one call."""
    run = bare.session(**release)
    return await tools.permit(run, prepared(run, tool, arguments))


@pytest.mark.requirement("RUN-84", "F-47")
async def test_arguments_that_are_no_json_are_answered_with_where_and_why() -> None:
    said = await refusal(bare.tool(schema=AMOUNT), '{"amount": 12,\n "note": tru}')

    assert isinstance(said, Refused)
    assert said.reason == "invalid_arguments"
    assert said.advice == "fix_arguments"
    assert "line 2" in said.detail


@pytest.mark.requirement("RUN-84", "F-48")
@pytest.mark.parametrize("arguments", ["[]", "null", "7", '"x"', '{"amount": 1, "amount": 2}'])
async def test_arguments_that_are_not_one_object_are_refused(arguments: str) -> None:
    assert isinstance(await refusal(bare.tool(schema=AMOUNT), arguments), Refused)


@pytest.mark.requirement("RUN-84", "F-48")
async def test_what_comes_back_of_two_megabytes_is_short() -> None:
    said = await refusal(bare.tool(schema=AMOUNT), json.dumps({"amount": "9" * 2_000_000}))

    assert isinstance(said, Refused)
    assert len(said.for_model()) < 1_000


@pytest.mark.requirement("RUN-84")
async def test_a_field_that_does_not_fit_is_named_with_what_was_expected() -> None:
    said = await refusal(bare.tool(schema=AMOUNT), '{"amount": 0, "memo": "x"}')

    assert isinstance(said, Refused)
    named = {each["field"]: each["expected"] for each in said.facts["fields"]}
    assert named["amount"] == 1
    assert named["memo"] == "no such field"


@pytest.mark.requirement("RUN-84")
async def test_what_cannot_be_told_apart_from_secrets_is_not_sent_back() -> None:
    reading = bare.tool("look", AMOUNT)
    paying = bare.tool("run_command", AMOUNT, kind=CallKind.COMMAND)
    broken, unknown = '{"card": "6222', '{"code": "x.y", "arguments": {"card": "6222"}}'

    shown = [str((await refusal(reading, each)).facts) for each in (broken, unknown)]  # type: ignore[union-attr]
    hidden = [str((await refusal(paying, each)).facts) for each in (broken, unknown)]  # type: ignore[union-attr]

    assert all("6222" in each for each in shown)
    assert not any("6222" in each for each in hidden)
    assert "x.y" in hidden[1]


@pytest.mark.requirement("RUN-84")
async def test_an_empty_text_is_no_arguments_only_for_a_tool_that_takes_none() -> None:
    assert await refusal(bare.tool(), "") is None
    assert isinstance(await refusal(bare.tool(schema=AMOUNT), ""), Refused)


@pytest.mark.requirement("RUN-35", "RUN-85")
async def test_a_release_narrows_the_tools_by_pattern_and_its_no_comes_first() -> None:
    look = bare.tool("expense-report-get")

    assert await refusal(look, "{}", tools={"allow": ["expense-*"]}) is None
    only_stock = await refusal(look, "{}", tools={"allow": ["stock-*"]})
    both = await refusal(look, "{}", tools={"allow": ["*"], "deny": ["*-get"]})
    assert isinstance(only_stock, Refused)
    assert only_stock.reason == "tool_not_allowed"
    assert isinstance(both, Refused)


@pytest.mark.requirement("RUN-85", "F-76")
async def test_the_same_call_with_the_same_outcome_is_stopped_and_then_the_run() -> None:
    run, look = bare.session(), bare.tool()
    call = prepared(run, look, "{}")
    verdicts: list[str] = []
    for _ in range(5):
        said = await tools.permit(run, call)
        verdicts.append("stopped" if isinstance(said, NotStarted) else "runs")
        run.history.append(tools.past("look", call.sha256, said or Done(result="as before")))

    with pytest.raises(RunFailed) as failed:
        await tools.permit(run, call)

    assert verdicts == ["runs", "runs", "runs", "stopped", "stopped"]
    assert failed.value.reason == "repeating"
    run.before_input = len(run.history)  # an input came: there is a reason to look again
    assert await tools.permit(run, call) is None


@pytest.mark.requirement("RUN-85")
async def test_another_outcome_or_another_call_in_between_is_no_repetition() -> None:
    run, look = bare.session(), bare.tool()
    call = prepared(run, look, "{}")
    for result in (1, 2, 3, 3):
        run.history.append(tools.past("look", call.sha256, Done(result=result)))
    assert await tools.permit(run, call) is None

    run.history.append(tools.past("look", call.sha256, Done(result=3)))
    assert isinstance(await tools.permit(run, call), NotStarted)
    run.history.append(tools.past("other", call.sha256, Done(result=3)))
    assert await tools.permit(run, call) is None


@pytest.mark.requirement("RUN-31", "F-46")
async def test_two_calls_with_one_id_are_a_flaw() -> None:
    run = bare.session()
    run.tools = {"look": bare.tool()}
    twice = (bare.call(id="1", provider_id="x"), bare.call(id="2", provider_id="x"))

    assert tools.find_flaw(run, Tools(twice)) == tools.ID_TWICE


@pytest.mark.requirement("RUN-31", "RUN-32", "F-49")
async def test_an_unknown_tool_or_a_wait_beside_others_is_a_flaw_of_the_whole_batch() -> None:
    run = bare.session()
    run.tools = {"look": bare.tool(), "await_timer": bare.tool("await_timer", waits=True)}
    known, waits = bare.call(id="1"), bare.call("await_timer", id="2")
    unknown = bare.call("launch", id="3")

    assert tools.find_flaw(run, Tools((waits,))) is None
    assert tools.find_flaw(run, Tools((known, waits))) == tools.NOT_ALONE
    assert "launch" in (tools.find_flaw(run, Tools((known, unknown))) or "")


@pytest.mark.requirement("RUN-82")
async def test_an_id_of_an_earlier_batch_is_a_flaw_unless_the_model_counts_anew() -> None:
    run = bare.session()
    run.tools = {"look": bare.tool()}
    run.ids_of_earlier_batches = {"call_0"}
    again = Tools((bare.call(provider_id="call_0"),))

    assert tools.find_flaw(run, again) == tools.ID_TWICE
    run.model.ids_are_per_response = True
    assert tools.find_flaw(run, again) is None
