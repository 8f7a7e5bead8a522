"""What an agent hears: one input row for each message, with what becomes of it."""

import asyncio
from typing import Any

import pytest
from sqlmodel import select

from app.aun.models import Message
from app.kernel import clock as kernel_clock
from app.kernel import db
from app.kernel.models import LoggedEvent
from app.runs import delivery
from app.runs.delivery import Hearer
from app.runs.run_models import HeardUpTo
from app.runs.states import Mode, SenderKind
from tests.runs.agents import Office


@pytest.mark.requirement("RUN-8", "RUN-56")
async def test_each_message_becomes_a_queued_input_of_its_own_at_once(office: Office) -> None:
    first, second = office.say(text="One"), office.say(text="Two")

    assert await office.hear() == 2

    heard = office.inputs()
    assert [each.message_id for each in heard] == [first.id, second.id]
    assert {each.state for each in heard} == {"queued"}
    assert len({each.lane_id for each in heard}) == 1
    assert await office.hear() == 0


@pytest.mark.requirement("RUN-9")
async def test_a_person_steers_an_agent_follows_up_and_a_sender_may_say_otherwise(
    office: Office,
) -> None:
    office.say("alice")
    office.say("expenses")
    office.say("alice", input_mode="follow_up")
    office.say("alice", input_mode="admin")

    await office.hear()

    assert [(each.mode, each.mode_source) for each in office.inputs()] == [
        (Mode.STEERING, "default"),
        (Mode.FOLLOW_UP, "default"),
        (Mode.FOLLOW_UP, "sender"),
        (Mode.STEERING, "default"),
    ]


@pytest.mark.requirement("RUN-10")
async def test_each_person_and_each_discussion_has_a_lane_of_its_own(office: Office) -> None:
    group = office.group("bob")
    office.say_in(group, "alice", **office.mention())
    office.say_in(group, "bob", **office.mention())
    office.say_in(group, "alice", thread_id="about-rent", **office.mention())
    office.say("alice")

    await office.hear()

    assert len({each.lane_id for each in office.inputs()}) == 4
    users = office.world.acme
    assert {(lane.user_id, lane.discussion) for lane in office.lanes()} == {
        (users["alice"].id, ""),
        (users["bob"].id, ""),
        (users["alice"].id, "about-rent"),
    }


@pytest.mark.requirement("RUN-15", "RUN-70", "AUN-16")
async def test_what_a_mention_only_group_keeps_back_is_archived_and_not_read(
    office: Office,
) -> None:
    group = office.group("bob", mention_mode="mention-only")
    office.say_in(group, "alice", "@stock, look")
    office.say_in(group, "bob", "Look", **office.mention())
    office.say_in(group, "bob", "All of you", mentions=[{"scope": "all"}])
    office.say_in(group, "bob", "Not you", mentions=[{"aid": office.aid("expenses")}])

    await office.hear()

    assert office.fates() == [
        ("archived", "not_mentioned"),
        ("queued", None),
        ("queued", None),
        ("archived", "not_mentioned"),
    ]
    assert office.inputs()[0].lane_id is None


@pytest.mark.requirement("RUN-57", "RUN-70")
@pytest.mark.parametrize("type", ["status", "event", "thought", "tool_call", "tool_result"])
async def test_pictures_of_work_are_for_display_alone(office: Office, type: str) -> None:
    office.say("alice", type=type, command="expense.report.submit", call_id="c-1")

    await office.hear()

    assert office.fates() == [("archived", "display_only")]


@pytest.mark.requirement("RUN-70")
async def test_own_words_are_heard_as_display_alone_and_open_nothing(office: Office) -> None:
    office.say("stock", to="alice")

    await office.hear()

    assert office.fates() == [("archived", "display_only")]
    assert office.lanes() == []


@pytest.mark.requirement("RUN-70")
async def test_what_cannot_be_decrypted_is_archived_as_unreadable(office: Office) -> None:
    said = office.say("alice")
    sealed = {"payload": None, "envelope": "{}", "unreadable": "no_key"}
    office.force(Message, (office.tenant_id, said.id), **sealed)

    await office.hear()

    assert office.fates() == [("archived", "unreadable")]


@pytest.mark.requirement("RUN-56")
async def test_what_was_recalled_or_over_before_it_was_heard_is_dropped(office: Office) -> None:
    recalled, expired = office.say("alice"), office.say("alice")
    now = kernel_clock.now()
    office.force(Message, (office.tenant_id, recalled.id), recalled_at=now)
    office.force(Message, (office.tenant_id, expired.id), payload=None)

    await office.hear()

    assert office.fates() == [("dropped", "deleted"), ("dropped", "deleted")]


@pytest.mark.requirement("F-15")
async def test_two_processes_that_hear_the_same_make_one_input(office: Office) -> None:
    said = office.say("alice")
    hearer = Hearer(office.tenant_id, office.agent().id, office.aid("stock"), said.conversation_id)

    heard = await asyncio.gather(*(db.transaction(delivery.deliver, hearer) for _ in range(4)))

    assert sorted(heard) == [0, 0, 0, 1]
    assert len(office.inputs()) == 1


@pytest.mark.requirement("F-15", "RUN-1")
async def test_a_cursor_that_was_lost_makes_no_second_input(office: Office) -> None:
    said = office.say("alice", text="First")
    await office.hear()
    key = (office.tenant_id, office.agent().id, said.conversation_id)
    office.force(HeardUpTo, key, log_seq=0)

    assert await office.hear() == 1

    assert len(office.inputs()) == 1


@pytest.mark.requirement("RUN-56", "K-1")
async def test_a_thousand_messages_are_a_thousand_inputs_none_twice(office: Office) -> None:
    office.say_often(1_000)

    assert await office.hear() == 1_000

    heard = office.inputs()
    assert len({each.message_id for each in heard}) == len(heard) == 1_000


async def test_a_conversation_that_forgot_its_newest_message_is_heard_to_its_end(
    office: Office,
) -> None:
    office.say("alice")
    last = office.say("alice")
    office.forget(last)

    assert await office.hear() == 1

    assert db.read_now(delivery._behind) == []


@pytest.mark.requirement("RUN-1")
async def test_an_agent_hears_what_was_said_since_it_came(office: Office) -> None:
    group = office.group("bob", agents=())
    office.say_in(group, "bob", "Before")
    office.let_in(group, "stock")
    office.say_in(group, "bob", "After")

    await office.hear()

    assert len(office.inputs()) == 1


@pytest.mark.requirement("RUN-16")
async def test_another_agents_words_in_a_group_are_judged_before_they_are_heard(
    office: Office,
) -> None:
    group = office.group(agents=("stock", "expenses"))
    office.say_in(group, "expenses", "To nobody")
    office.say_in(group, "expenses", "To you", **office.mention())

    await office.hear()

    assert office.fates() == [("archived", "not_for_me"), ("queued", None)]


@pytest.mark.requirement("F-13")
async def test_who_wrote_is_what_the_server_knows_not_what_a_payload_says(office: Office) -> None:
    office.outsider("tina")
    office.outsider("tom", linked_to="alice")
    claimed = {"user": office.world.acme["olga"].id, "origin": "olga", "sender_kind": "person"}
    office.say("tina", **claimed)
    office.say("tom")
    office.say("expenses", **claimed)

    await office.hear()

    kinds = [each.sender_kind for each in office.inputs()]
    assert kinds == [SenderKind.PEER, SenderKind.PERSON, SenderKind.AGENT]
    assert [lane.user_id for lane in office.lanes()] == [None, office.world.acme["alice"].id, None]


@pytest.mark.requirement("RUN-22")
async def test_the_sender_hears_what_became_of_the_message(office: Office) -> None:
    office.say("alice")

    await office.hear()

    told = db.read_now(_told, office.tenant_id)
    assert [(each.user_id, each.data["state"]) for each in told] == [
        (office.world.acme["alice"].id, "queued")
    ]


def _told(session: Any, tenant_id: str) -> list[LoggedEvent]:
    query = select(LoggedEvent).where(
        LoggedEvent.tenant_id == tenant_id, LoggedEvent.kind == "input.state"
    )
    return list(session.exec(query))
