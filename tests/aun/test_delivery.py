"""Storing: once, in order, for the right inbox."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlmodel import Session, select

from app.aun import conversations, delivery
from app.aun.delivery import Direct, Stored, ToGroup
from app.aun.events import MessageStored
from app.aun.models import Conversation, InboxEntry, InboxPeer, Message
from app.kernel import db, event_log, events
from app.kernel.db import Work
from app.kernel.models import LoggedEvent
from app.kernel.prepared import Prepared
from tests.aun import parties as people
from tests.aun.parties import Parties


@pytest.fixture
def parties(opened: str) -> Parties:
    return people.gather()


def say(parties: Parties, sender: str, receiver: str, message_id: str, **more: Any) -> Stored:
    sending = Direct(
        tenant_id=parties.id,
        sender_aid=sender,
        receiver_aid=receiver,
        message_id=message_id,
        payload=more.pop("payload", {"type": "text", "text": message_id}),
        **more,
    )
    return db.transact_now(delivery.store_direct, sending)


def test_an_inbox_numbers_the_messages_of_all_its_senders(parties: Parties) -> None:
    first = say(parties, parties.tina, parties.alice, "m-1")
    second = say(parties, parties.otto, parties.alice, "m-2")
    third = say(parties, parties.tina, parties.alice, "m-3")
    elsewhere = say(parties, parties.tina, parties.otto, "m-4")

    assert [first.seq, second.seq, third.seq, elsewhere.seq] == [1, 2, 3, 1]
    assert first.conversation_id == third.conversation_id != second.conversation_id
    before = {row.seq: row.prev_peer_seq for row in _all(InboxEntry) if row.aid == parties.alice}
    assert before == {1: 0, 2: 0, 3: 1}
    peer = next(row for row in _all(InboxPeer) if row.sender_aid == parties.tina)
    assert (peer.head_seq, peer.prev_seq) == (3, 1)


def test_both_directions_are_one_conversation_with_two_participants(parties: Parties) -> None:
    there = say(parties, parties.tina, parties.alice, "m-1")
    back = say(parties, parties.alice, parties.tina, "m-1")  # ids are unique with their sender

    assert back.is_new
    assert there.conversation_id == back.conversation_id
    took_part = db.read_now(conversations.participants, parties.id, there.conversation_id)
    assert [each.aid for each in took_part] == sorted([parties.alice, parties.tina])
    [talk] = _all(Conversation)
    assert (talk.started_by, talk.last_message_id) == (parties.tina, back.id)
    assert talk.last_seq == back.log_seq


def test_a_note_to_oneself_is_a_conversation_of_one(parties: Parties) -> None:
    stored = say(parties, parties.tina, parties.tina, "m-1", is_copied=True)

    took_part = db.read_now(conversations.participants, parties.id, stored.conversation_id)
    assert [each.aid for each in took_part] == [parties.tina]
    assert [row.seq for row in _all(InboxEntry)] == [1]


def test_a_repeat_gets_the_first_answer_and_changes_nothing(parties: Parties) -> None:
    told: list[MessageStored] = []
    end = events.subscribe(MessageStored, told.append)
    first = say(parties, parties.tina, parties.alice, "m-1", payload={"text": "first"})
    say(parties, parties.otto, parties.alice, "m-1")

    again = say(parties, parties.tina, parties.alice, "m-1", payload={"text": "second"})
    end()

    assert not again.is_new
    assert (again.id, again.seq, again.sent_ms) == (first.id, first.seq, first.sent_ms)
    assert (again.log_seq, again.conversation_id) == (first.log_seq, first.conversation_id)
    assert len(told) == 2
    row = next(row for row in _all(Message) if row.id == first.id)
    assert row.payload == {"text": "first"}


def test_the_same_id_sent_at_once_is_stored_once(parties: Parties) -> None:
    ready = threading.Barrier(6)

    def send(number: int) -> Stored:
        ready.wait()
        return say(parties, parties.tina, parties.alice, "m-1", payload={"number": number})

    with ThreadPoolExecutor(6) as pool:
        stored = list(pool.map(send, range(6)))

    assert [each.is_new for each in stored].count(True) == 1
    assert {each.seq for each in stored} == {1}
    assert len(_all(Message)) == len(_all(InboxEntry)) == 1
    assert len([row for row in _all(LoggedEvent) if row.kind == delivery.STORED]) == 1


def test_numbers_appear_in_their_order_under_concurrent_senders(parties: Parties) -> None:
    senders = [parties.tina, parties.otto, parties.owen, parties.bobby]
    seen: list[list[int]] = []

    def send(sender: str) -> None:
        for number in range(8):
            say(parties, sender, parties.alice, f"m-{number}")
            seen.append(db.read_now(_numbers, parties.alice))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(send, senders))

    assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in seen)  # never a hole
    assert db.read_now(_numbers, parties.alice) == list(range(1, 33))


def test_a_message_is_in_the_event_log_of_its_conversation(parties: Parties) -> None:
    stored = say(parties, parties.tina, parties.alice, "m-1")

    logged = next(row for row in _all(LoggedEvent) if row.kind == delivery.STORED)
    assert logged.seq == stored.log_seq
    assert logged.topic == logged.subject == stored.conversation_id
    assert logged.data == {"message": stored.id, "by": parties.tina}
    head = db.read_now(event_log.newest, parties.id)
    assert head.seq == stored.log_seq


def test_what_it_replies_to_and_its_thread_are_kept_when_they_are_texts(parties: Parties) -> None:
    say(
        parties,
        parties.tina,
        parties.alice,
        "m-1",
        payload={"reply_to": {"message_id": "m-0"}, "thread_id": "t-1"},
    )
    odd = [
        {"reply_to": "m-0", "thread_id": 7},
        {"reply_to": {"message_id": 5}, "thread_id": ["t"]},
        {"reply_to": {"message_id": "x" * 129}, "thread_id": "x" * 129},
        {"reply_to": None, "thread_id": ""},
    ]
    for number, payload in enumerate(odd):
        say(parties, parties.otto, parties.alice, f"m-{number}", payload=payload)

    kept = {(row.in_reply_to, row.thread_id) for row in _all(Message)}
    assert kept == {("m-0", "t-1"), (None, None)}


def test_a_copy_enters_the_inbox_of_the_sender_as_their_own(parties: Parties) -> None:
    say(parties, parties.otto, parties.tina, "m-1")
    stored = say(parties, parties.tina, parties.alice, "m-2", is_copied=True)

    copies = [row for row in _all(InboxEntry) if row.message == stored.id]
    assert {(row.aid, row.seq, row.sender_aid, row.direction) for row in copies} == {
        (parties.alice, 1, parties.tina, "inbound"),
        (parties.tina, 2, parties.tina, "outbound_sync"),
    }
    again = say(parties, parties.tina, parties.alice, "m-2", is_copied=True)
    assert (again.seq, again.is_new) == (1, False)


def test_a_group_message_has_the_number_of_its_group_and_no_inbox(parties: Parties) -> None:
    group = "team.acme.example"
    talk = db.transact_now(conversations.of_group, parties.id, group, parties.tina)
    assert db.transact_now(conversations.of_group, parties.id, group, parties.otto) == talk
    assert db.read_now(conversations.id_of_group, parties.id, group) == talk
    told: list[MessageStored] = []
    end = events.subscribe(MessageStored, told.append)

    def send(work: Work, seq: int) -> Stored:
        sending = ToGroup(
            tenant_id=parties.id,
            sender_aid=parties.tina,
            message_id="m-1",
            payload={"text": "hello"},
            group_id=group,
            conversation_id=talk,
            seq=seq,
            mention_mode="mention-only",
        )
        return delivery.store_group(work, sending)

    first = db.transact_now(send, 1)
    again = db.transact_now(send, 2)
    end()

    assert (first.seq, first.is_new, again.seq, again.is_new) == (1, True, 1, False)
    assert [each.group_id for each in told] == [group]
    [row] = _all(Message)
    assert (row.group_id, row.seq, row.mention_mode) == (group, 1, "mention-only")
    assert _all(InboxEntry) == []


def test_who_joins_sees_what_is_to_come_and_who_left_is_gone(parties: Parties) -> None:
    stored = say(parties, parties.tina, parties.alice, "m-1")
    talk = stored.conversation_id

    db.transact_now(conversations.join, parties.id, talk, parties.otto)
    joined = db.read_now(conversations.participants, parties.id, talk)
    assert {each.aid: each.from_seq for each in joined} == {
        parties.tina: 0,
        parties.alice: 0,
        parties.otto: stored.log_seq,
    }

    db.transact_now(conversations.leave, parties.id, talk, parties.otto)
    left = db.read_now(conversations.participants, parties.id, talk)
    assert parties.otto not in {each.aid for each in left}

    later = say(parties, parties.tina, parties.alice, "m-2")
    db.transact_now(conversations.join, parties.id, talk, parties.otto)
    back = db.read_now(conversations.participants, parties.id, talk)
    assert next(each for each in back if each.aid == parties.otto).from_seq == later.log_seq


def test_a_message_takes_few_statements(parties: Parties, monkeypatch: pytest.MonkeyPatch) -> None:
    say(parties, parties.tina, parties.alice, "m-1")
    ran: list[Prepared] = []
    run_with = Prepared.run_with

    def counted(prepared: Prepared, connection: Any, values: Any) -> Any:
        ran.append(prepared)
        return run_with(prepared, connection, values)

    monkeypatch.setattr(Prepared, "run_with", counted)
    say(parties, parties.tina, parties.alice, "m-2")

    told = 1  # to the other processes, all of it at once
    assert len(ran) <= (8 if db.is_sqlite() else 4 + told)


def _all(model: type[Any]) -> list[Any]:
    return db.read_now(lambda session: list(session.exec(select(model))))


def _numbers(session: Session, aid: str) -> list[int]:
    query = select(InboxEntry.seq).where(InboxEntry.aid == aid).order_by(InboxEntry.seq)  # type: ignore[arg-type]
    return list(session.exec(query))
