"""How far an AID has read: forward only, over all devices, apart from what they have."""

from typing import Any

import pytest
from sqlmodel import select

from app.aun import conversations, rpc
from app.aun.errors import BadParams
from app.aun.models import Conversation, Participant
from app.kernel import db
from app.kernel.models import LoggedEvent
from tests.aun import parties as people
from tests.aun.parties import Parties


@pytest.fixture
def parties(opened: str) -> Parties:
    return people.gather()


async def say(parties: Parties, sender: str, to: str, *message_ids: str) -> None:
    for message_id in message_ids:
        params = {"to": to, "payload": {"text": message_id}, "message_id": message_id}
        await rpc.invoke(parties.caller(sender), "message.send", params | {"encrypt": False})


async def read(parties: Parties, name: str, *states: tuple[str, str]) -> dict[str, Any]:
    told = [
        {"scope": "p2p", "topic_key": topic, "last_read_message_id": message_id}
        for topic, message_id in states
    ]
    return await rpc.invoke(parties.caller(name), "message.read", {"states": told})


@pytest.mark.anyio
async def test_a_position_moves_forward_only_in_the_order_of_the_inbox(parties: Parties) -> None:
    await say(parties, "tina", parties.otto, "m-1", "m-2")
    await say(parties, "owen", parties.otto, "m-3")

    first = await read(parties, "otto", ("all", "m-2"), ("tina", "m-1"))
    back = await read(parties, "otto", ("all", "m-1"), ("all", "m-2"), ("all", "m-unknown"))
    on = await read(parties, "otto", ("all", "m-3"))
    told = await rpc.invoke(parties.caller("otto", "tablet"), "message.read_state", {})
    one = await rpc.invoke(parties.caller("otto"), "message.read_state", {"topic_key": "tina"})
    others = await rpc.invoke(parties.caller("tina"), "message.read_state", {})

    assert (first["updated"], first["ignored"]) == (2, 0)
    assert (back["updated"], back["ignored"]) == (0, 3)
    assert on["states"] == [
        {
            "scope": "p2p",
            "topic_key": "all",
            "last_read_message_id": "m-3",
            "changed": True,
        }
    ]
    found = {each["topic_key"]: each for each in told["states"]}
    assert found["all"]["last_read_message_id"] == "m-3"
    assert (found["all"]["last_read_order"], found["all"]["current_device_seq"]) == (3, 3)
    assert found["all"]["mapping_status"] == "resolved"
    assert found["all"]["updated_at"] > 0
    assert [each["topic_key"] for each in one["states"]] == ["tina"]
    assert others["states"] == []


@pytest.mark.anyio
async def test_reading_acknowledges_nothing_and_having_reads_nothing(parties: Parties) -> None:
    await say(parties, "tina", parties.otto, "m-1", "m-2")
    otto = parties.caller("otto")

    await read(parties, "otto", ("all", "m-1"))
    peers = await rpc.invoke(otto, "message.peers", {})
    ask = {"cursor_scope": "peer", "sender_aid": parties.tina, "up_to_seq": 2}
    await rpc.invoke(otto, "message.v2.ack", ask)
    told = await rpc.invoke(otto, "message.read_state", {})

    assert peers["peers"][0]["server_ack_seq"] == 0
    assert told["states"][0]["last_read_message_id"] == "m-1"


@pytest.mark.anyio
async def test_the_participant_of_the_conversation_has_read_that_far(parties: Parties) -> None:
    await say(parties, "alice", parties.otto, "m-1", "m-2")
    await say(parties, "tina", parties.otto, "m-1")

    await read(parties, "otto", ("alice", "m-2"), ("alice", "m-2"))

    rows = {(row.conversation_id, row.aid): row.read_seq for row in _all(Participant)}
    talk = next(each for each in _all(Conversation) if each.started_by == parties.alice)
    assert rows[talk.id, parties.otto] == talk.last_seq
    assert rows[talk.id, parties.alice] == 0
    [logged] = [row for row in _all(LoggedEvent) if row.kind == conversations.READ]
    assert logged.topic == talk.id  # alice may see it
    assert logged.data == {"aid": parties.otto, "seq": talk.last_seq}


@pytest.mark.anyio
async def test_one_item_that_cannot_be_understood_refuses_them_all(parties: Parties) -> None:
    await say(parties, "tina", parties.otto, "m-1")
    good = {"scope": "p2p", "topic_key": "all", "last_read_message_id": "m-1"}
    for states in (
        [],
        [good] * 101,
        [good, good | {"topic_key": ""}],
        [good, good | {"topic_key": "x" * 129}],
        [good, good | {"last_read_message_id": 7}],
        [good, good | {"scope": "group"}],
        [good, "m-1"],
    ):
        with pytest.raises(BadParams):
            await rpc.invoke(parties.caller("otto"), "message.read", {"states": states})

    assert (await rpc.invoke(parties.caller("otto"), "message.read_state", {}))["states"] == []


def _all(model: type[Any]) -> list[Any]:
    return db.read_now(lambda session: list(session.exec(select(model))))
