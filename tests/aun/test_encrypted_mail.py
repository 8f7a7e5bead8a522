"""Encrypted messages from door to row: stored as they came, read here only where we are a party."""

import json
from typing import Any

import pytest
from sqlalchemy import inspect, text
from sqlmodel import Session, select

from app.aun import identities, rpc
from app.aun.caller import Caller
from app.aun.errors import BadParams, StaleKeys
from app.aun.events import MessageStored
from app.aun.models import Message
from app.aun.pki import keys
from app.kernel import db, events
from tests.aun import outsiders
from tests.aun.outsiders import Outsider, outsider
from tests.people import World

CANARY = "canary-5f1d-never-to-be-seen"


async def send(
    party: Outsider | Caller, to: str, message_id: str, payload: Any, **more: Any
) -> dict[str, Any]:
    caller = party.caller() if isinstance(party, Outsider) else party
    params = {"to": to, "message_id": message_id, "payload": payload, **more}
    return await rpc.invoke(caller, "message.send", params)


async def sealed(party: Outsider, to: str, message_id: str, words: str = CANARY) -> dict[str, Any]:
    rows = await rpc.invoke(party.caller(), "message.v2.bootstrap", {"peer_aid": to})
    return party.sealed(rows, outsiders.text(words), message_id)


async def put(party: Outsider) -> None:
    params = {"peer_aid": party.aid, **party.prekey()}
    await rpc.invoke(party.caller(), "message.v2.put_peer_pk", params)


def row(message_id: str) -> Message:
    found = db.read_now(_row, message_id)
    assert found is not None
    return found


def spki_of(world: World, aid: str) -> bytes:
    scalar = db.read_now(identities.key_of, world.acme.id, aid)
    return keys.spki(keys.of_scalar(scalar).public_key())


async def test_between_outside_parties_the_server_keeps_what_it_cannot_read(world: World) -> None:
    acme = world.acme.tenant
    tina, otto = outsider(acme, "tina"), outsider(acme, "otto")
    await put(tina)
    await put(otto)
    envelope = await sealed(tina, otto.aid, "m-1")

    await send(tina, otto.aid, "m-1", envelope)
    team = await rpc.invoke(
        tina.caller(), "group.create", {"name": "Team", "join_mode": "invite_only"}
    )
    group_id = team["group"]["group_id"]
    them = {"group_id": group_id, "aid": otto.aid}
    await rpc.invoke(tina.caller(), "group.add_member", them)
    rows = await rpc.invoke(tina.caller(), "group.v2.bootstrap", {"group_id": group_id})
    to_group = tina.sealed_to_group(rows, outsiders.text(CANARY), "m-2")
    params = {"group_id": group_id, "message_id": "m-2", "payload": to_group}
    await rpc.invoke(tina.caller(), "group.send", params)

    for message_id, came in (("m-1", envelope), ("m-2", to_group)):
        kept = row(message_id)
        assert (kept.payload, kept.unreadable) == (None, None)
        assert json.loads(kept.envelope or "") == came
        assert otto.opened(json.loads(kept.envelope or ""), tina.spki) == outsiders.text(CANARY)
    assert CANARY not in db.read_now(_everything)


@pytest.mark.requirement("AUN-5")
async def test_mail_to_somebody_here_is_stored_readable_or_with_the_reason_why_not(
    world: World,
) -> None:
    tina = outsider(world.acme.tenant, "tina")
    stock = str(world.acme.agents["stock"].aid)
    good = await sealed(tina, stock, "m-1")
    broken = {**await sealed(tina, stock, "m-2"), "nonce": good["nonce"]}
    heard: list[MessageStored] = []
    end = events.subscribe(MessageStored, heard.append)
    try:
        for message_id, envelope in (("m-1", good), ("m-2", broken)):
            sent = await send(tina, stock, message_id, envelope)
            assert (sent["status"], sent["seq"]) == ("delivered", len(heard))
    finally:
        end()

    read, unread = row("m-1"), row("m-2")
    assert (read.payload, read.unreadable) == (outsiders.text(CANARY), None)
    assert json.loads(read.envelope or "") == good
    assert (unread.payload, unread.unreadable) == (None, "cannot_decrypt")
    assert json.loads(unread.envelope or "") == broken
    assert [event.id for event in heard] == [read.id, unread.id], "runs hear of both"


async def test_a_send_refused_as_stale_leaves_no_trace_and_its_id_is_free(world: World) -> None:
    acme = world.acme.tenant
    tina, otto = outsider(acme, "tina"), outsider(acme, "otto")
    stale = await sealed(tina, otto.aid, "m-1")
    otto.new_key()
    heard: list[MessageStored] = []
    end = events.subscribe(MessageStored, heard.append)
    try:
        with pytest.raises(StaleKeys):
            await send(tina, otto.aid, "m-1", stale)
        with pytest.raises(BadParams):
            await send(tina, otto.aid, "m-2", stale)
        assert db.read_now(_row, "m-1") is None
        assert heard == []

        fresh = await sealed(tina, otto.aid, "m-1")
        sent = await send(tina, otto.aid, "m-1", fresh)
    finally:
        end()

    assert sent["seq"] == 1
    assert len(heard) == 1
    kept = json.loads(row("m-1").envelope or "")
    assert otto.opened(kept, tina.spki) == outsiders.text(CANARY)


async def test_people_here_answer_as_they_were_written_to(world: World) -> None:
    tina = outsider(world.acme.tenant, "tina")
    await put(tina)
    alice = db.read_now(identities.caller_of_user, world.person(world.acme["alice"]))
    stock = str(world.acme.agents["stock"].aid)
    words = outsiders.text("an answer")

    await send(alice, tina.aid, "m-1", words)
    await send(alice, stock, "m-2", words)
    await send(tina, alice.aid, "m-3", outsiders.text("plain"))
    await send(alice, tina.aid, "m-4", words)
    await send(tina, alice.aid, "m-5", await sealed(tina, alice.aid, "m-5"))
    await send(alice, tina.aid, "m-6", words)

    for message_id, is_sealed in (("m-1", True), ("m-2", False), ("m-4", False), ("m-6", True)):
        kept = row(message_id)
        assert kept.payload == words, "those here read their own"
        assert bool(kept.envelope) is is_sealed, message_id
    kept = row("m-6")
    envelope = json.loads(kept.envelope or "")
    assert tina.opened(envelope, spki_of(world, alice.aid)) == words
    assert envelope["aad"]["from_device"] == kept.sender_device == "hosted"


def _row(session: Session, message_id: str) -> Message | None:
    return session.exec(select(Message).where(Message.message_id == message_id)).first()


def _everything(session: Session) -> str:
    """Every row of every table, as text."""
    connection = session.connection()
    names = inspect(connection).get_table_names()
    assert "message" in names
    return "\n".join(
        repr(tuple(found))
        for name in names
        for found in connection.execute(text(f'SELECT * FROM "{name}"'))  # noqa: S608 - ours
    )
