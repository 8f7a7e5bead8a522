"""What connections hear of messages between two."""

from collections.abc import Sequence
from typing import Any, cast

import pytest
from fastapi import FastAPI
from sqlmodel import Session, select

from app.aun import delivered, rpc
from app.aun.caller import Caller
from app.aun.events import (
    Acknowledged,
    MessageRecalled,
    MessageStored,
    ReadMoved,
    VolatileAccepted,
)
from app.aun.gateway import registry
from app.aun.models import IdentityKind, InboxPeer
from app.aun.outgoing import Composer, Live, Outgoing
from app.aun.pushes.message import PUSHES, hints
from app.kernel import db, events
from app.kernel.events import Broadcast
from app.kernel.models import LoggedEvent
from tests.aun import parties as people
from tests.aun import serving
from tests.aun.parties import Parties


class Ear:
    """Connections of one process, and what they hear of what is committed."""

    def __init__(self, parties: Parties) -> None:
        self._parties = parties
        self._lives: list[Live] = []
        self._news: list[Broadcast] = []
        self._ends = [events.subscribe(kind, self._news.append) for kind in PUSHES]

    def connect(self, name: str, device: str = "phone", **more: Any) -> Live:
        live = Live(
            id=f"{name}-{device}-default",
            tenant_id=self._parties.id,
            aid=f"{name}.{self._parties.issuer}",
            device_id=device,
            slot_key=more.pop("slot_key", "default"),
            **more,
        )
        db.transact_now(registry.opened, live)
        self._lives.append(live)
        return live

    def heard(self) -> list[tuple[list[str], str, dict[str, Any]]]:
        """Since the last time: the connections, the event, its params."""
        told = [
            ([live.id for live in outgoing.to], outgoing.name, outgoing.params)
            for event in self._news
            for outgoing in db.read_now(self._worded, event)
        ]
        self._news.clear()
        return told

    def _worded(self, session: Session, event: Broadcast) -> list[Outgoing]:
        compose = cast("Composer", PUSHES[type(event)])
        return list(compose(session, event, self._of))

    def _of(self, aid: str) -> Sequence[Live]:
        return [live for live in self._lives if live.aid == aid]

    def stop(self) -> None:
        for end in self._ends:
            end()


@pytest.fixture
def parties(opened: str) -> Parties:
    return people.gather()


@pytest.fixture
def ear(parties: Parties) -> Any:
    made = Ear(parties)
    yield made
    made.stop()


async def say(caller: Caller, to: str, **more: Any) -> dict[str, Any]:
    params = {"to": to, "payload": {"text": "hello"}, **more}
    return await rpc.invoke(caller, "message.send", params)


@pytest.mark.anyio
async def test_every_device_of_the_receiver_hears_the_row_itself(
    parties: Parties, ear: Ear
) -> None:
    for device in ("phone", "tablet"):
        ear.connect("otto", device)
    ear.connect("owen")
    await say(parties.caller("tina"), parties.otto, message_id="m-0")
    ear.heard()

    await say(parties.caller("tina"), parties.otto, message_id="m-1")
    told = ear.heard()

    assert [to for to, _, _ in told] == [["otto-phone-default"], ["otto-tablet-default"]]
    _, name, params = told[0]
    row = params.pop("inline_message")
    assert name == "message.received"
    assert params == {
        "message_id": "m-1",
        "from_aid": parties.tina,
        "from": parties.tina,
        "to": parties.otto,
        "seq": 2,
        "t_server": row["t_server"],
        "sender_device_id": "phone",
        "target_device_id": "phone",
        "prev_peer_seq": 1,
    }
    pulled = await rpc.invoke(
        parties.caller("otto"),
        "message.v2.pull",
        {"cursor_scope": "peer", "sender_aid": parties.tina, "after_seq": 1},
    )
    assert pulled["messages"] == [row]
    assert told[1][2]["target_device_id"] == "tablet"


@pytest.mark.anyio
async def test_a_large_message_is_announced_and_pulled(parties: Parties, ear: Ear) -> None:
    ear.connect("otto")
    await say(parties.caller("tina"), parties.otto, payload={"text": "x" * 70_000})

    [(_, _, params)] = ear.heard()
    assert params["seq"] == 1
    assert "inline_message" not in params


@pytest.mark.anyio
async def test_a_message_for_one_device_is_heard_there_alone_and_ones_own_elsewhere(
    parties: Parties, ear: Ear
) -> None:
    ear.connect("otto", "phone")
    ear.connect("otto", "tablet")
    ear.connect("tina", "phone")
    ear.connect("tina", "tablet")

    await say(parties.caller("tina"), parties.otto, to_device_id="tablet")
    directed = ear.heard()
    await say(parties.caller("tina"), parties.tina)
    own = ear.heard()

    assert [to for to, _, _ in directed] == [["otto-tablet-default"]]
    assert [to for to, _, _ in own] == [["tina-tablet-default"]]


@pytest.mark.anyio
async def test_older_clients_hear_everything_side_by_side(parties: Parties, ear: Ear) -> None:
    ear.connect("otto", is_peer_dialect=False)
    sent = await say(parties.caller("tina"), parties.otto, message_id="m-1")

    [(_, name, params)] = ear.heard()
    assert name == "message.received"
    assert params == {
        "from": parties.tina,
        "to": parties.otto,
        "seq": 1,
        "message_id": "m-1",
        "type": "",
        "payload": {"text": "hello"},
        "timestamp": sent["timestamp"],
        "encrypted": False,
        "sender_device_id": "phone",
    }


@pytest.mark.anyio
async def test_a_queue_gives_each_message_to_one_connection(parties: Parties, ear: Ear) -> None:
    ear.connect("otto", "one", is_queue=True)
    ear.connect("otto", "two", is_queue=True)
    for number in range(4):
        await say(parties.caller("tina"), parties.otto, message_id=f"m-{number}")
    turns = [to for to, _, _ in ear.heard()]

    assert sorted(turns) == [
        ["otto-one-default"],
        ["otto-one-default"],
        ["otto-two-default"],
        ["otto-two-default"],
    ]

    ear.connect("owen", "one", is_queue=True, is_affine=True)
    ear.connect("owen", "two", is_queue=True, is_affine=True)
    for number in range(4):
        await say(parties.caller("tina"), parties.owen, message_id=f"a-{number}")
    assert len({tuple(to) for to, _, _ in ear.heard()}) == 1

    db.transact_now(
        registry.opened,
        Live(
            id="elsewhere",
            tenant_id=parties.id,
            aid=parties.otto,
            device_id="three",
            slot_key="default",
            is_queue=True,
        ),
    )
    for number in range(6):
        await say(parties.caller("tina"), parties.otto, message_id=f"b-{number}")
    here = [to for to, _, _ in ear.heard()]
    assert len(here) == 4  # the other two are for a connection of another process
    assert all(len(to) == 1 for to in here)


@pytest.mark.anyio
async def test_a_volatile_message_goes_out_without_a_number(parties: Parties, ear: Ear) -> None:
    ear.connect("otto")
    sent = await say(parties.caller("tina"), parties.otto, message_id="m-1", ttl=60)

    [(_, name, params)] = ear.heard()
    assert name == "message.received"
    assert params["volatile_cursor"] == sent["volatile_cursor"]
    assert params["storage"] == params["inline_message"]["storage"] == "volatile"
    assert params["inline_message"]["payload"] == {"text": "hello"}
    assert not {"seq"} & (params.keys() | params["inline_message"].keys())


@pytest.mark.anyio
async def test_a_recall_is_told_once_to_who_received_it(parties: Parties, ear: Ear) -> None:
    ear.connect("otto")
    ear.connect("tina")
    for message_id in ("m-1", "m-2"):
        await say(parties.caller("tina"), parties.otto, message_id=message_id)
    ear.heard()

    await rpc.invoke(parties.caller("tina"), "message.recall", {"message_ids": ["m-1", "m-2"]})
    told = ear.heard()

    assert [(to, name) for to, name, _ in told] == [
        (["otto-phone-default"], "message.recalled")
    ] * 2
    params = told[0][2]
    assert params["message_ids"] == ["m-1"]
    assert (params["message_id"], params["from"], params["to"]) == (
        "m-1",
        parties.tina,
        parties.otto,
    )
    assert params["timestamp"] > 0


@pytest.mark.anyio
async def test_a_message_taken_back_before_anybody_was_told_is_not_told(
    parties: Parties, ear: Ear
) -> None:
    ear.connect("otto")
    await say(parties.caller("tina"), parties.otto, message_id="m-1")
    await rpc.invoke(parties.caller("tina"), "message.recall", {"message_ids": ["m-1"]})

    assert [name for _, name, _ in ear.heard()] == ["message.recalled"]


@pytest.mark.anyio
async def test_an_acknowledgement_is_heard_by_the_same_slot_alone(
    parties: Parties, ear: Ear
) -> None:
    ear.connect("otto")
    ear.connect("otto", "tablet")
    await say(parties.caller("tina"), parties.otto)
    ear.heard()

    other = Caller(parties.id, parties.otto, IdentityKind.OUTSIDE, "phone", connection_id="another")
    asked = {"cursor_scope": "peer", "sender_aid": parties.tina, "up_to_seq": 1}
    await rpc.invoke(other, "message.v2.ack", asked)

    assert ear.heard() == [
        (
            ["otto-phone-default"],
            "message.ack",
            {"cursor_scope": "peer", "sender_aid": parties.tina, "peer_ack_seq": 1},
        )
    ]


@pytest.mark.anyio
async def test_a_new_connection_hears_that_something_waits_and_nothing_of_it(
    parties: Parties,
) -> None:
    otto = parties.caller("otto")
    assert db.read_now(hints, otto) is None

    await say(parties.caller("tina"), parties.otto, ttl=60)
    assert db.read_now(hints, otto) == {
        "kind": "message.online_unread_hint",
        "target_device_id": "phone",
    }
    await say(parties.caller("owen"), parties.otto)
    assert db.read_now(hints, otto) is not None
    peers = await rpc.invoke(otto, "message.peers", {})
    assert [peer["server_ack_seq"] for peer in peers["peers"]] == [0, 0]


@pytest.mark.anyio
async def test_a_hosted_sender_learns_once_what_reached_a_device(
    parties: Parties, ear: Ear
) -> None:
    for number in range(3):
        await say(parties.caller("alice"), parties.otto, message_id=f"m-{number}", encrypt=False)
    await say(parties.caller("tina"), parties.otto)
    ear.heard()
    otto = parties.caller("otto")

    await pull(otto, parties.alice, limit=1)
    delivered.write()
    first = _reached(parties.alice)
    await pull(otto, parties.alice, limit=1)
    delivered.write()
    ack = {"cursor_scope": "peer", "sender_aid": parties.alice, "up_to_seq": 3}
    await rpc.invoke(otto, "message.v2.ack", ack)
    await pull(otto, parties.tina)
    delivered.write()
    ear.connect("otto")
    await say(parties.caller("alice"), parties.otto, message_id="m-9", encrypt=False)
    before_push = _reached(parties.alice)
    ear.heard()
    delivered.write()

    assert (first, before_push, _reached(parties.alice)) == (1, 3, 5)
    assert _reached(parties.tina) == 0  # nobody here would see it
    logged = [row for row in _all(LoggedEvent) if row.kind == delivered.KIND]
    assert [row.data for row in logged] == [
        {"aid": parties.otto, "seq": 1},
        {"aid": parties.otto, "seq": 3},
        {"aid": parties.otto, "seq": 5},
    ]
    assert len({row.topic for row in logged}) == 1


@pytest.mark.anyio
async def test_on_a_real_socket_a_message_is_heard_and_a_hint_comes_after_the_hello(
    world: Any,
) -> None:
    app: FastAPI = world.app
    with serving.served(app) as port:
        tina = serving.party(port, world.acme.id, "tina")
        otto = serving.party(port, world.acme.id, "otto")
        async with tina.connected() as sender, otto.connected() as receiver:
            sent = await sender.call(
                "message.send", to=otto.aid, message_id="m-1", payload=serving.text("hello")
            )
            heard = await receiver.event("message.received", message_id="m-1")
        async with otto.connected() as again:
            hint = await again.event("message.received", kind="message.online_unread_hint")

    assert sent["status"] == "delivered"
    assert heard["inline_message"]["legacy_v1"]["payload"] == serving.text("hello")
    assert "inline_message" not in hint


async def pull(caller: Caller, sender: str, **more: Any) -> dict[str, Any]:
    asked = {"cursor_scope": "peer", "sender_aid": sender, "after_seq": 0, **more}
    return await rpc.invoke(caller, "message.v2.pull", asked)


def _reached(sender: str) -> int:
    found = [row.delivered_seq for row in _all(InboxPeer) if row.sender_aid == sender]
    return int(found[0])


def _all(model: type[Any]) -> list[Any]:
    return db.read_now(lambda session: list(session.exec(select(model))))


def test_the_family_words_every_event_of_messages_between_two() -> None:
    assert set(PUSHES) == {
        MessageStored,
        VolatileAccepted,
        MessageRecalled,
        Acknowledged,
        ReadMoved,
    }
