"""Messages that live for seconds: in no inbox, in no history, and gone."""

from typing import Any

import pytest
from sqlalchemy import text
from sqlmodel import select

from app.aun import retention, rpc
from app.aun.caller import Caller
from app.aun.errors import BadParams, Throttled
from app.aun.events import VolatileAccepted
from app.aun.models import InboxCounter, Message, Volatile
from app.kernel import db, events
from tests.aun import parties as people
from tests.aun.parties import Parties
from tests.clock import Clock


@pytest.fixture
def parties(clock: Clock, opened: str) -> Parties:
    return people.gather()


async def say(caller: Caller, to: str, **more: Any) -> dict[str, Any]:
    params = {"to": to, "payload": {"text": "soon gone"}, "ttl": 60, **more}
    return await rpc.invoke(caller, "message.send", params)


async def pull(caller: Caller, sender: str, **more: Any) -> dict[str, Any]:
    asked = {"cursor_scope": "peer", "sender_aid": sender, "after_seq": 0, **more}
    return await rpc.invoke(caller, "message.v2.pull", asked)


async def ack(caller: Caller, sender: str, **more: Any) -> dict[str, Any]:
    asked = {"cursor_scope": "peer", "sender_aid": sender, **more}
    return await rpc.invoke(caller, "message.v2.ack", asked)


@pytest.mark.anyio
async def test_it_is_accepted_and_waits_beside_the_inbox(parties: Parties, clock: Clock) -> None:
    heard: list[VolatileAccepted] = []
    end = events.subscribe(VolatileAccepted, heard.append)
    otto, now_ms = parties.caller("otto"), int(clock.now.timestamp() * 1000)

    sent = await say(parties.caller("tina"), otto.aid, message_id="m-1")
    again = await say(parties.caller("tina"), otto.aid, message_id="m-1", payload={"text": "no"})
    peers = await rpc.invoke(otto, "message.peers", {})
    page = await pull(otto, parties.tina)
    end()

    cursor = sent["volatile_cursor"]
    assert sent == {
        "message_id": "m-1",
        "timestamp": now_ms,
        "status": "accepted",
        "storage": "volatile",
        "volatile_cursor": cursor,
        "created_at": now_ms,
        "expires_at": now_ms + 60_000,
        "delivery_mode": "fanout",
    }
    assert again == sent | {"status": "duplicate"}
    assert [event.cursor for event in heard] == [cursor]
    [peer] = peers["peers"]
    assert (peer["sender_aid"], peer["head_seq"], peer["volatile_has_more"]) == (
        parties.tina,
        0,
        True,
    )
    [row] = page["messages"]
    assert row == {
        "storage": "volatile",
        "volatile_cursor": cursor,
        "created_at": now_ms,
        "expires_at": now_ms + 60_000,
        "message_id": "m-1",
        "from_aid": parties.tina,
        "from": parties.tina,
        "to": otto.aid,
        "sender_device_id": "phone",
        "t_server": now_ms,
        "timestamp": now_ms,
        "type": "",
        "need_render": True,
        "payload": {"text": "soon gone"},
        "encrypted": False,
    }
    assert (page["head_seq"], page["covered_through_seq"]) == (0, 0)
    assert (page["latest_volatile_cursor"], page["has_more"]) == (cursor, False)
    assert _all(Message) == _all(InboxCounter) == []


@pytest.mark.anyio
async def test_pages_go_on_after_a_cursor_and_what_a_slot_has_does_not_come_again(
    parties: Parties,
) -> None:
    otto, tablet = parties.caller("otto"), parties.caller("otto", "tablet")
    for number in range(3):
        await say(parties.caller("tina"), otto.aid, message_id=f"m-{number}")
    await say(parties.caller("owen"), otto.aid, message_id="m-0")
    await say(parties.caller("tina"), otto.aid, message_id="kept", ttl=0)

    first = await pull(otto, parties.tina, limit=2)
    second = await pull(
        otto, parties.tina, after_seq=1, limit=2, after_volatile_cursor=_cursors(first)[-1]
    )
    done = await ack(
        otto,
        parties.tina,
        volatile_cursors=[_cursors(first)[0]],
        volatile_ids=["m-1", "m-9"],
        up_to_seq=1,
    )
    left = await pull(otto, parties.tina, after_seq=1)

    assert [row["message_id"] for row in first["messages"]] == ["kept", "m-0"]
    assert (first["volatile_has_more"], first["persistent_has_more"]) == (True, False)
    assert [row["message_id"] for row in second["messages"]] == ["m-1", "m-2"]
    assert second["has_more"] is False
    assert done["volatile_ack"] == {
        "accepted": [_cursors(first)[0], "m-1"],
        "expired": ["m-9"],
    }
    assert (done["peer_ack_seq"], done["cursor_scope"]) == (1, "peer")
    assert [row["message_id"] for row in left["messages"]] == ["m-2"]
    elsewhere = await pull(tablet, parties.tina, after_seq=1)
    assert [row["message_id"] for row in elsewhere["messages"]] == ["m-0", "m-1", "m-2"]
    tail = await pull(otto, parties.tina, window_mode="tail")
    assert [row["message_id"] for row in tail["messages"]] == ["kept"]


@pytest.mark.anyio
async def test_time_takes_it_away_and_its_id_may_come_again(parties: Parties, clock: Clock) -> None:
    otto = parties.caller("otto")
    await say(parties.caller("tina"), otto.aid, message_id="m-1", ttl=0.2)
    await say(parties.caller("tina"), otto.aid, message_id="m-2", ttl=10**9)

    clock.move(seconds=1)
    left = await pull(otto, parties.tina)
    again = await say(parties.caller("tina"), otto.aid, message_id="m-1")
    clock.move(hours=1)
    retention.expire()

    assert [row["message_id"] for row in left["messages"]] == ["m-2"]
    assert again["status"] == "accepted"
    assert (await pull(otto, parties.tina))["messages"] == []
    assert (await rpc.invoke(otto, "message.peers", {}))["peers"] == []


@pytest.mark.anyio
async def test_a_cursor_of_another_life_is_told_in_words_that_clients_know(
    parties: Parties,
) -> None:
    otto = parties.caller("otto")
    await say(parties.caller("tina"), otto.aid)

    for cursor in ("v1:01ARZ3NDEKTSV4RRFFQ69G5FAV:1", "v1::1", "v2:x:1", "v1:x:one", "nonsense"):
        with pytest.raises(BadParams, match="volatile cursor epoch mismatch"):
            await pull(otto, parties.tina, after_volatile_cursor=cursor)


@pytest.mark.anyio
async def test_for_whoever_is_hosted_it_is_stored_until_its_time(
    parties: Parties, clock: Clock
) -> None:
    sent = await say(parties.caller("tina"), parties.clerk, message_id="m-1")
    again = await say(parties.caller("tina"), parties.clerk, message_id="m-1")
    [kept] = _all(Message)
    clock.move(seconds=60)
    retention.expire()
    [gone] = _all(Message)

    assert (sent["status"], sent["storage"], again["status"]) == (
        "accepted",
        "volatile",
        "duplicate",
    )
    assert again["volatile_cursor"] == sent["volatile_cursor"].strip()
    assert "seq" not in sent
    assert kept.payload == {"text": "soon gone"}
    assert (gone.payload, gone.envelope, gone.id) == (None, None, kept.id)
    page = await pull(parties.caller("clerk"), parties.tina)
    assert page["messages"][0]["legacy_v1"]["payload"] == {}


@pytest.mark.anyio
async def test_nobody_can_fill_the_memory_of_a_receiver(parties: Parties) -> None:
    big = {"text": "x" * 900_000}
    for _ in range(18):
        await say(parties.caller("tina"), parties.otto, payload=big)
    with pytest.raises(Throttled):
        await say(parties.caller("tina"), parties.otto, payload=big)

    page = await pull(parties.caller("otto"), parties.tina)
    assert len(page["messages"]) == 1  # a frame stays below 2 MiB
    assert page["volatile_has_more"] is True


@pytest.mark.anyio
async def test_letting_go_of_an_old_one_leaves_the_newer_of_its_id(
    parties: Parties, clock: Clock
) -> None:
    await say(parties.caller("tina"), parties.otto, message_id="m-1", ttl=1)
    clock.move(seconds=2)
    newer = await say(parties.caller("tina"), parties.otto, message_id="m-1")
    retention.expire()

    again = await say(parties.caller("tina"), parties.otto, message_id="m-1")

    assert again == newer | {"status": "duplicate"}
    page = await pull(parties.caller("otto"), parties.tina)
    assert _cursors(page) == [newer["volatile_cursor"]]


@pytest.mark.anyio
async def test_it_is_never_written_where_it_would_last(parties: Parties) -> None:
    await say(parties.caller("tina"), parties.otto)
    if db.is_sqlite():
        assert _all(Volatile) == []  # the process holds it
        return
    query = text("SELECT relname FROM pg_class WHERE relpersistence = 'u' AND relkind = 'r'")
    tables = db.read_now(lambda session: set(session.connection().execute(query).scalars()))
    assert {"aun_volatile", "aun_volatile_head"} <= tables


def _cursors(page: dict[str, Any]) -> list[str]:
    return [row["volatile_cursor"] for row in page["messages"] if "volatile_cursor" in row]


def _all(model: type[Any]) -> list[Any]:
    return db.read_now(lambda session: list(session.exec(select(model))))
