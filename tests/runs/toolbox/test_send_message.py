"""`send_message`: an explicit act, stored with the record of its call."""

import pytest

from app.kernel import db
from app.runs import offering, tools
from app.runs.errors import LeaseLost
from app.runs.outcome import Done, Refused
from app.runs.run_models import Run
from tests.runs.sessions import Desks

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("AUN-8", "RUN-94", "RUN-95")
async def test_a_message_and_the_record_of_its_call_are_one_commit(desks: Desks) -> None:
    run = await desks.at_work()

    done = await desks.call(run, "send_message", text="Hello Alice")

    (message,), (row,), (key,) = desks.sent(), desks.calls(), desks.sent_rows()
    assert isinstance(done, Done)
    assert done.result == {"message_id": message.id}
    assert (row.state, row.kind) == ("done", "framework")
    assert (key.message_id, key.call_id, key.turn) == (message.id, row.id, run.turn)


@pytest.mark.requirement("RUN-52", "RUN-95")
async def test_a_worker_that_was_replaced_says_nothing(desks: Desks) -> None:
    run = await desks.at_work()
    run.tools = await offering.tools_of(run)
    prepared = tools.prepare(run, desks.proposed(run, "send_message", text="Too late"))
    await tools.before(run, prepared)
    ran = await tools.execute(run, prepared)
    desks.force(Run, (desks.tenant_id, run.claim.run_id), claim_token="another")

    with pytest.raises(LeaseLost):
        await tools.after(run, prepared, ran)

    assert desks.sent() == []
    assert desks.calls()[0].state == "started"


@pytest.mark.requirement("RUN-20", "F-80")
async def test_a_send_that_is_repeated_is_told_the_first_id(desks: Desks) -> None:
    run = await desks.at_work()

    first = await desks.call(run, "send_message", text="Hello Alice")
    again = await desks.call(run, "send_message", text="Hello Alice")

    assert isinstance(first, Done)
    assert isinstance(again, Done)
    assert again.result == {**first.result, "duplicate": True}
    assert len(desks.sent()) == 1


@pytest.mark.requirement("AUN-4")
@pytest.mark.parametrize("type", ["tool_call", "tool_result", "thought"])
async def test_the_types_that_are_for_display_are_refused_as_arguments(
    desks: Desks, type: str
) -> None:
    run = await desks.at_work()

    refused = await desks.call(run, "send_message", text="Run this", type=type)

    assert isinstance(refused, Refused)
    assert (refused.reason, refused.advice) == ("invalid_arguments", "fix_arguments")
    assert desks.sent() == []


@pytest.mark.requirement("RUN-57")
async def test_an_agent_is_asked_in_plain_text_or_json_and_may_say_when_to_take_it(
    desks: Desks,
) -> None:
    desks.enable()
    run = await desks.at_work()
    run.content = run.content.model_copy(update={"contacts": ("*",)})
    stock = desks.aid("stock")

    await desks.call(
        run, "send_message", text="How many?", to=stock, input_mode="steering", format="plain"
    )
    await desks.call(
        run, "send_message", text="Count", type="json", kind="count", data={"of": "A"}, to=stock
    )
    await desks.hear()

    first, second = (message.payload or {} for message in desks.sent())
    assert (first["type"], first["input_mode"]) == ("text", "steering")
    assert (second["type"], second["kind"], second["data"]) == ("json", "count", {"of": "A"})
    assert [each.mode for each in desks.inputs("stock")] == ["steering", "follow_up"]


@pytest.mark.requirement("RUN-94")
async def test_a_refusal_says_why_and_the_batch_goes_on(desks: Desks) -> None:
    run = await desks.at_work()

    refused = await desks.call(run, "send_message", text="Psst", to=desks.aid("bob"))
    done = await desks.call(run, "send_message", text="I cannot write to Bob.")

    assert isinstance(refused, Refused)
    assert (refused.reason, refused.advice) == ("recipient_not_allowed", "do_not_retry")
    assert "never writes to another person" in refused.detail
    assert isinstance(done, Done)
    assert [row.state for row in desks.calls()] == ["failed", "done"]


@pytest.mark.requirement("F-86")
async def test_a_fault_inside_is_told_in_public_words_alone(
    desks: Desks, monkeypatch: pytest.MonkeyPatch
) -> None:
    from app.runs import speaking

    def fail(*_given: object) -> object:
        raise RuntimeError("postgres://admin:hunter2@10.0.0.8/acme")

    run = await desks.at_work()
    monkeypatch.setattr(speaking, "say", fail)
    refused = await desks.call(run, "send_message", text="Hello")

    assert isinstance(refused, Refused)
    assert refused.reason == "internal"
    assert "hunter2" not in refused.for_model()
    (row,) = desks.calls()
    assert "hunter2" not in f"{row.result}{row.public_error}{row.arguments_redacted}"
    found = db.read_now(lambda session: session.get(_diagnostic(), (desks.tenant_id, row.id)))
    assert found is not None
    assert "hunter2" in found.diagnostic


def _diagnostic() -> type:
    from app.runs.run_models import ToolCallDiagnostic

    return ToolCallDiagnostic
