"""Clients before 0.5.21: one cursor over everybody's messages, on the same inbox."""

from typing import Any

import pytest

from app.aun import rpc
from app.aun.errors import BadParams
from tests.aun import parties as people
from tests.aun.parties import Parties


@pytest.fixture
def parties(opened: str) -> Parties:
    return people.gather()


async def say(parties: Parties, sender: str, *message_ids: str) -> None:
    for message_id in message_ids:
        params = {"to": parties.otto, "payload": {"text": message_id}, "message_id": message_id}
        await rpc.invoke(parties.caller(sender), "message.send", params)


@pytest.mark.anyio
async def test_one_cursor_runs_over_everybody(parties: Parties) -> None:
    otto = parties.caller("otto")
    await say(parties, "tina", "m-1")
    await say(parties, "owen", "m-2")
    await say(parties, "tina", "m-3")

    first = await rpc.invoke(otto, "message.pull", {"after_seq": 0, "limit": 2})
    acked = await rpc.invoke(otto, "message.ack", {"seq": 2})
    again = await rpc.invoke(otto, "message.ack", {"seq": 1})
    rest = await rpc.invoke(otto, "message.pull", {})

    assert [row["message_id"] for row in first["messages"]] == ["m-1", "m-2"]
    assert first["messages"][0] == {
        "from": parties.tina,
        "to": parties.otto,
        "seq": 1,
        "message_id": "m-1",
        "type": "",
        "payload": {"text": "m-1"},
        "timestamp": first["messages"][0]["timestamp"],
        "encrypted": False,
        "sender_device_id": "phone",
    }
    assert (first["has_more"], first["latest_seq"], first["server_ack_seq"]) == (True, 3, 0)
    assert first["cursor"] == {"current_seq": 2, "latest_seq": 3}
    assert acked == again == {"success": True, "ack_seq": 2}
    assert [row["seq"] for row in rest["messages"]] == [3]
    assert (rest["server_ack_seq"], rest["has_more"]) == (2, False)


@pytest.mark.anyio
async def test_both_ways_to_read_share_the_inbox_and_no_cursor(parties: Parties) -> None:
    otto = parties.caller("otto")
    await say(parties, "tina", "m-1", "m-2")
    await rpc.invoke(otto, "message.ack", {"seq": 2})
    scope = {"cursor_scope": "peer", "sender_aid": parties.tina}

    peers = await rpc.invoke(otto, "message.peers", {})
    page = await rpc.invoke(otto, "message.pull", scope | {"after_seq": 0, "ack_up_to_seq": 1})
    acked = await rpc.invoke(otto, "message.ack", scope | {"up_to_seq": 2})

    assert peers["peers"][0]["server_ack_seq"] == 0
    assert page["messages"][0]["version"] == "v1"
    assert page["server_ack_seq"] == 1
    assert acked["peer_ack_seq"] == 2


@pytest.mark.anyio
async def test_what_is_ahead_of_the_inbox_is_echoed_and_not_kept(parties: Parties) -> None:
    otto = parties.caller("otto")
    await say(parties, "tina", "m-1")

    ahead = await rpc.invoke(otto, "message.ack", {"seq": 9})
    page = await rpc.invoke(otto, "message.pull", {"after_seq": 9})

    assert ahead["ack_seq"] == 9
    assert (page["server_ack_seq"], page["latest_seq"], page["messages"]) == (1, 9, [])
    assert page["has_more"] is False


@pytest.mark.anyio
async def test_what_is_missing_is_named(parties: Parties) -> None:
    otto = parties.caller("otto")
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("message.ack", {}),
        ("message.ack", {"cursor_scope": "peer"}),
        ("message.pull", {"cursor_scope": "peer"}),
        ("message.pull", {"cursor_scope": "peer", "ack_up_to_seq": 1}),
        ("message.pull", {"cursor_scope": "device"}),
    ]
    for method, params in wrong:
        with pytest.raises(BadParams):
            await rpc.invoke(otto, method, params)
