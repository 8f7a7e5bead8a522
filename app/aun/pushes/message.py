"""What connections hear of messages between two: the row itself, so that most need no pull.

A client takes a row from an event only where the event names its own device, and drops it silently
where it names another (aun.md, 9). Whoever hears nothing loses nothing: the inbox has it.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from sqlmodel import Session

from app.aun import delivered, inbox, presence, rows, volatile
from app.aun.caller import Caller
from app.aun.events import (
    Acknowledged,
    MessageRecalled,
    MessageStored,
    ReadMoved,
    VolatileAccepted,
)
from app.aun.fleeting import row as fleeting_row
from app.aun.models import Direction, ReadPosition
from app.aun.outgoing import Live, Lookup, Outgoing
from app.aun.queries import HOSTED
from app.aun.shapes import RECALLED, Reader, direct, flat
from app.kernel import clock, json

LARGEST_INLINE = 64_000  # bytes of a row inside an event
PLAIN, SEALED = "message.received", "peer.v2.message_received"
P2P = "p2p"


def hints(session: Session, caller: Caller) -> dict[str, Any] | None:
    """What a new connection hears at once where something waits for it: look at your peers."""
    waits = inbox.pending(session, caller) or volatile.senders(session.connection(), caller)
    if not waits:
        return None
    return {"kind": "message.online_unread_hint", "target_device_id": caller.device_id}


def _stored(session: Session, event: MessageStored, live: Lookup) -> Iterator[Outgoing]:
    if event.receiver_aid is None:
        return
    to = _but(live(event.receiver_aid), event.except_connection)
    if to:
        yield from _received(session, event, event.receiver_aid, to)
    others = _but(live(event.sender_aid), event.except_connection)
    if others and event.sender_aid != event.receiver_aid:
        yield from _received(session, event, event.sender_aid, others)


def _received(
    session: Session, event: MessageStored, aid: str, to: Sequence[Live]
) -> Iterator[Outgoing]:
    """A row of an inbox, to the devices of its AID that may have it."""
    found = rows.OF_MESSAGE.run(
        session.connection(), tenant_id=event.tenant_id, id=event.id, aid=aid
    ).first()
    if found is None or found.recalled_at is not None:
        return
    chosen = _chosen(session, to, found.sender_aid, found.seq)
    reached = [each for each in chosen if Reader.at(each).may_have(found)]
    if not reached:
        return
    if found.direction == Direction.INBOUND and found.sender_kind in HOSTED:
        delivered.note(event.tenant_id, aid, found.sender_aid, found.seq)
    by_device: dict[tuple[str, bool], list[Live]] = defaultdict(list)
    for each in reached:
        by_device[each.device_id, each.is_peer_dialect].append(each)
    for (device_id, is_peer_dialect), same in by_device.items():
        reader = Reader(aid, device_id)
        if is_peer_dialect:
            yield _peer_event(same, found, reader)
        else:
            yield Outgoing(same, PLAIN, flat(found, reader))


def _peer_event(to: Sequence[Live], found: Any, reader: Reader) -> Outgoing:
    shown = direct(found, reader)
    params = {
        "message_id": found.message_id,
        "from_aid": found.sender_aid,
        "from": found.sender_aid,
        "to": found.receiver_aid,
        "seq": found.seq,
        "t_server": found.sent_ms,
        "sender_device_id": found.sender_device,
        "target_device_id": reader.device_id,
        "prev_peer_seq": found.prev_peer_seq,
    }
    if len(json.dumps(shown)) <= LARGEST_INLINE:
        params["inline_message"] = shown
    return Outgoing(to, SEALED if found.envelope is not None else PLAIN, params)


def _accepted(session: Session, event: VolatileAccepted, live: Lookup) -> Iterator[Outgoing]:
    to = live(event.receiver_aid)
    if not to:
        return
    found = volatile.one(session.connection(), event.tenant_id, event.receiver_aid, event.cursor)
    if found is None:
        return
    shown = fleeting_row(found)
    name = SEALED if found.envelope is not None else PLAIN
    by_device: dict[str, list[Live]] = defaultdict(list)
    for each in _chosen(session, to, found.sender_aid, found.number):
        if Reader.at(each).may_have(found):
            by_device[each.device_id].append(each)
    for device_id, same in by_device.items():
        params = {**shown, "target_device_id": device_id}
        if len(json.dumps(shown)) <= LARGEST_INLINE:
            params["inline_message"] = shown
        yield Outgoing(same, name, params)


def _recalled(session: Session, event: MessageRecalled, live: Lookup) -> Iterator[Outgoing]:
    if event.receiver_aid is None:
        return
    for aid in dict.fromkeys((event.receiver_aid, event.sender_aid)):
        to = live(aid)
        key = {"tenant_id": event.tenant_id, "id": event.tombstone_id, "aid": aid}
        found = rows.OF_MESSAGE.run_with(session.connection(), key).first() if to else None
        if found is None:
            continue
        said = json.of_column(found.payload)
        params = {
            **said,
            "message_id": found.message_id,
            "from": found.sender_aid,
            "from_aid": found.sender_aid,
            "to": found.receiver_aid,
            "timestamp": said["recalled_at"],
        }
        yield Outgoing(to, RECALLED, params)


def _acknowledged(_session: Session, event: Acknowledged, live: Lookup) -> Iterator[Outgoing]:
    same_slot = [
        each
        for each in _but(live(event.aid), event.except_connection)
        if (each.device_id, each.slot_key) == (event.device_id, event.slot_key)
    ]
    if same_slot:
        params = {
            "cursor_scope": "peer",
            "sender_aid": event.sender_aid,
            "peer_ack_seq": event.ack_seq,
        }
        yield Outgoing(same_slot, "message.ack", params)


def _read(session: Session, event: ReadMoved, live: Lookup) -> Iterator[Outgoing]:
    to = live(event.aid) if event.scope == P2P else ()
    key = (event.tenant_id, event.aid, event.scope, event.topic)
    found = session.get(ReadPosition, key) if to else None
    if found is None:
        return
    params = {
        "owner_aid": event.aid,
        "scope": P2P,
        "topic_key": found.topic,
        "last_read_message_id": found.message_id,
        "last_read_order": found.order,
        "updated_at": int(found.updated_at.timestamp() * 1000),
    }
    yield Outgoing(to, "message.read_changed", params)


def _chosen(session: Session, to: Sequence[Live], sender_aid: str, number: int) -> Sequence[Live]:
    """All of them; or, where they share a queue, the one of all replicas whose turn it is.

    Every process comes to the same answer by itself: by the message's number in turn, or by what
    its sender and a connection hash to, which stays while that connection does.
    """
    queue = [each for each in to if each.is_queue]
    if not queue:
        return to
    everywhere = rows.QUEUE.run(
        session.connection(),
        tenant_id=queue[0].tenant_id,
        aid=queue[0].aid,
        since=clock.now() - presence.SILENT,
    )
    ids = [row.id for row in everywhere]
    if not ids:
        return queue[:1]
    if queue[0].is_affine:
        turn = max(ids, key=lambda each: hashlib.sha256(f"{sender_aid} {each}".encode()).digest())
    else:
        turn = ids[number % len(ids)]
    return [each for each in queue if each.id == turn]


def _but(to: Sequence[Live], connection_id: str | None) -> Sequence[Live]:
    return [each for each in to if each.id != connection_id]


PUSHES = {
    MessageStored: _stored,
    VolatileAccepted: _accepted,
    MessageRecalled: _recalled,
    Acknowledged: _acknowledged,
    ReadMoved: _read,
}
