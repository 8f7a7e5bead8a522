"""The one way by which a run says something: where it may, once, and linked to what it answers."""

from dataclasses import replace
from typing import Any

import pytest

from app.aun.e2ee import hosted
from app.aun.models import Message
from app.identity.principal import Scope
from app.kernel import db
from app.kernel.db import Work
from app.kernel.errors import AppError, Invalid
from app.runs import authority, replies, speaking
from app.runs.outcome import SILENCE, Reply
from app.runs.run_models import Run
from app.runs.session import RunSession
from app.runs.speaking import Said, Speech
from tests.runs.sessions import Desks

pytestmark = pytest.mark.anyio


async def say(run: RunSession, text: str, **more: Any) -> Said:
    """Make ready and store in one go, as the loop does it."""
    speech = await speaking.ready(run, text=text, **more)
    return await db.transaction(speaking.say, run.claim, run, speech)


async def refused(run: RunSession, text: str = "Hello", **more: Any) -> AppError:
    """Why it is not said; that it is said fails the test."""
    with pytest.raises(AppError) as caught:
        await say(run, text, **more)
    return caught.value


@pytest.mark.requirement("RUN-21", "RUN-97")
async def test_what_is_said_is_linked_to_the_input_and_its_chain_is_the_run(desks: Desks) -> None:
    desks.enable()
    run = await desks.at_work("File my trip", thread_id="trip")
    run.facts = replace(run.facts, discussion="trip")

    said = await say(run, "Done, **all of it**.")

    (message,), (asked,) = desks.sent(), desks.inputs("expenses")
    assert said == Said(message.id)
    assert run.current_input is not None
    assert message.in_reply_to == run.current_input.sent_as
    assert message.thread_id == "trip"
    assert message.payload is not None
    assert message.payload["reply_to"]["sender_aid"] == desks.aid("alice")
    assert message.payload["client_context"] == {"run": run.claim.run_id}
    assert message.html is not None
    assert "<strong>" in message.html
    assert asked.run_id == run.claim.run_id
    chain = db.read_now(_chain, message)
    assert chain.party.user_id == desks.world.acme["alice"].id
    assert chain.actors == (desks.agent("expenses").id,)
    assert not {"user", "origin", "actors", "approved"} & set(message.payload)


def _chain(session: Any, message: Message) -> authority.Chain:
    return authority.chain_of(
        session.connection(), message.tenant_id, message.id, message.sender_aid
    )


@pytest.mark.requirement("RUN-20", "F-80")
async def test_the_same_text_is_one_message_in_a_scope_and_a_new_one_in_the_next(
    desks: Desks,
) -> None:
    run = await desks.at_work()

    first = await say(run, "Hello back")
    again = await say(run, "Hello back", format="plain")
    run.scope = 2
    later = await say(run, "Hello back")

    assert again == Said(first.message_id, is_duplicate=True)
    assert later.message_id != first.message_id
    assert [each.id for each in desks.sent()] == [first.message_id, later.message_id]
    assert [each.scope for each in desks.sent_rows()] == [1, 2]


@pytest.mark.requirement("RUN-54")
async def test_none_one_or_many_messages_are_equally_right(desks: Desks) -> None:
    run = await desks.at_work()
    assert desks.sent() == []

    for number in range(3):
        await say(run, f"Part {number}")

    assert [each.payload["text"] for each in desks.sent() if each.payload] == [
        "Part 0",
        "Part 1",
        "Part 2",
    ]


@pytest.mark.requirement("AUN-4")
@pytest.mark.parametrize("type", ["tool_call", "tool_result", "thought", "status"])
async def test_what_looks_like_a_call_of_a_tool_is_never_sent(desks: Desks, type: str) -> None:
    run = await desks.at_work()

    error = await refused(run, type=type)

    assert error.reason == "type_not_allowed"
    assert desks.sent() == []


async def test_a_json_message_has_a_kind_and_data_and_words_for_who_cannot_read_it(
    desks: Desks,
) -> None:
    run = await desks.at_work()

    assert isinstance(await refused(run, type="json"), Invalid)
    await say(run, "A trip to Shanghai", type="json", kind="trip", data={"days": 3})

    (message,) = desks.sent()
    assert message.payload is not None
    assert message.payload["data"] == {"days": 3}
    assert message.payload["fallback_text"] == "A trip to Shanghai"


@pytest.mark.requirement("RUN-94")
async def test_another_person_is_never_written_to_directly_whoever_they_are(desks: Desks) -> None:
    desks.enable()
    run = await desks.at_work()

    errors = [
        await refused(run, to=desks.aid("bob")),
        await refused(run, to=desks.aid("nobody")),
        await refused(run, to=desks.outsider("tina")),
    ]

    assert {each.reason for each in errors} == {"recipient_not_allowed"}
    assert {each.advice for each in errors} == {"do_not_retry"}
    assert (await say(run, "You", to=desks.aid("alice"))).message_id == desks.sent()[0].id


@pytest.mark.requirement("RUN-94")
async def test_an_agent_is_written_to_if_the_release_names_it_and_the_person_enabled_it(
    desks: Desks,
) -> None:
    desks.enable()
    run = await desks.at_work()
    stock = desks.aid("stock")

    unnamed = await refused(run, to=stock)
    run.content = run.content.model_copy(update={"contacts": ("stock",)})
    sent = await say(run, "How many are left?", to=stock)
    key = (desks.tenant_id, desks.delegation("alice").id)
    desks.force(type(desks.delegation("alice")), key, paused_at=desks.delegation().created_at)
    paused = await refused(run, "And now?", to=stock)

    assert unnamed.reason == paused.reason == "recipient_not_allowed"
    (message,) = desks.sent()
    assert (message.id, message.receiver_aid) == (sent.message_id, stock)
    assert message.in_reply_to is None  # it answers nothing of that conversation


@pytest.mark.requirement("RUN-94")
async def test_a_group_is_spoken_in_while_the_agent_and_its_person_are_both_in_it(
    desks: Desks,
) -> None:
    desks.enable("bob")
    both = desks.group("bob", agents=("expenses",))
    without_bob = desks.group(agents=("expenses",))
    run = await desks.at_work(who="bob")

    said = await say(run, f"@{desks.world.acme['alice'].display_name} here it is", to=both)
    elsewhere = await refused(run, to=without_bob)
    desks.put_out(both, "bob")
    afterwards = await refused(run, "Still there?", to=both)

    assert elsewhere.reason == afterwards.reason == "recipient_not_allowed"
    (message,) = desks.sent()
    assert message.id == said.message_id
    assert message.payload is not None
    assert [each["aid"] for each in message.payload["mentions"]] == [desks.aid("alice")]


@pytest.mark.requirement("RUN-37", "RUN-94")
async def test_membership_is_looked_at_again_when_it_is_said(desks: Desks) -> None:
    desks.enable("bob")
    group = desks.group("bob", agents=("expenses",))
    run = await desks.at_work(who="bob")
    speech = await speaking.ready(run, text="Hello", to=group)

    desks.put_out(group, "bob")
    with pytest.raises(AppError) as caught:
        await db.transaction(speaking.say, run.claim, run, speech)

    assert caught.value.reason == "recipient_not_allowed"
    assert desks.sent() == []


@pytest.mark.requirement("RUN-94")
async def test_a_stranger_without_a_link_is_answered_there_and_nobody_else_is(
    desks: Desks,
) -> None:
    tina = desks.outsider("tina")
    run = await desks.at_work(who="tina")
    assert run.principal is None

    error = await refused(run, to=desks.aid("alice"))
    speech = await speaking.ready(run, text="Hello Tina")

    assert error.reason == "recipient_not_allowed"
    assert speech.place.other_aid == tina


async def test_what_leaves_the_house_is_sealed_as_it_came(
    desks: Desks, monkeypatch: pytest.MonkeyPatch
) -> None:
    tina = desks.outsider("tina", linked_to="alice")
    desks.enable()
    run = await desks.at_work(who="tina")
    asked: list[str] = []

    async def sealed(_tenant: str, _sender: str, to: str, *_rest: Any) -> dict[str, Any]:
        asked.append(to)
        return {"type": "e2ee.p2p_encrypted"}

    async def should(*_given: Any) -> bool:
        return True

    monkeypatch.setattr(hosted, "sealed_direct", sealed)
    monkeypatch.setattr(hosted, "should_encrypt", should)
    await say(run, "Hello Tina")

    (message,) = desks.sent()
    assert asked == [tina]
    assert message.envelope is not None
    assert message.sender_device == "hosted"
    assert message.payload is not None
    assert message.payload["text"] == "Hello Tina"


async def test_a_reply_to_another_message_names_one_of_that_place(desks: Desks) -> None:
    desks.enable()
    earlier = desks.say("alice", "expenses", "First")
    run = await desks.takes_up()
    elsewhere = desks.say("alice", "stock", "Elsewhere")

    await say(run, "To the first", reply_to=earlier.id)
    error = await refused(run, "To the other", reply_to=elsewhere.id)

    assert isinstance(error, Invalid)
    assert [each.in_reply_to for each in desks.sent()] == [earlier.message_id]


async def test_plain_text_is_shown_as_it_is(desks: Desks) -> None:
    run = await desks.at_work()

    await say(run, "2 * 3 * 4 = 24", format="plain")

    (message,) = desks.sent()
    assert message.html is None


async def test_a_run_without_a_conversation_speaks_to_its_person(desks: Desks) -> None:
    desks.enable("alice", "expenses", Scope.COMMANDS_READ)
    run = await desks.at_work()
    run.facts = replace(run.facts, conversation_id=None, other_aid=None)
    nobody = replace(run.facts, user_id=None)

    await say(run, "Good morning")
    run.facts = nobody
    error = await refused(run, "And now?")

    assert error.reason == "nowhere_to_speak"
    assert [each.receiver_aid for each in desks.sent()] == [desks.aid("alice")]


@pytest.mark.requirement("RUN-55")
async def test_nothing_waits_for_an_answer_after_a_message(desks: Desks) -> None:
    run = await desks.at_work()

    await say(run, "Would Tuesday do?")

    assert desks.waits() == []
    row = db.read_now(lambda session: session.get_one(Run, (desks.tenant_id, run.claim.run_id)))
    assert row.state == "running"


@pytest.mark.requirement("RUN-46", "F-79", "F-82")
async def test_a_closing_text_is_not_published_where_this_scope_already_spoke(
    desks: Desks,
) -> None:
    run = await desks.at_work()
    run.content = run.content.model_copy(update={"closing_text": "publish"})
    assert await replies.ready(run, Reply("Done.")) is not None

    await say(run, "It is done.")

    assert await replies.ready(run, Reply("Done.")) is None
    assert await replies.ready(run, SILENCE) is None
    run.scope = 2
    assert await replies.ready(run, Reply("Done.")) is not None
    assert len(desks.sent()) == 1


@pytest.mark.requirement("RUN-74")
async def test_a_closing_text_that_may_not_be_said_any_more_undoes_no_end(desks: Desks) -> None:
    desks.enable("bob")
    group = desks.group("bob", agents=("expenses",))
    desks.say_in(group, "bob", "You?", mentions=[{"aid": desks.aid("expenses")}])
    run = await desks.takes_up()
    speech = await speaking.ready(run, text="Done.")

    desks.put_out(group, "bob")
    said = await db.transaction(_publish_and_note, run, speech)

    assert said is None
    assert desks.sent() == []
    assert desks.run(run.claim.run_id).reason == "kept"


def _publish_and_note(work: Work, run: RunSession, speech: Speech) -> Said | None:
    said = speaking.publish(work, run.claim, run, speech)
    work.session.get_one(Run, (run.claim.tenant_id, run.claim.run_id)).reason = "kept"
    return said
