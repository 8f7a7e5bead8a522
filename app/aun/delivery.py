"""Sending: a message is stored, and thereby sent. Nothing here waits for anything after that.

One key, (sender, message id), decides whether a message is new, on every process and for ever: the
repeat of a send changes nothing and gets the first answer.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from app.aun import conversations, rows
from app.aun.events import MessageStored
from app.aun.models import ID_LENGTH, Direction
from app.kernel import clock, event_log, ids
from app.kernel.db import Work

STORED = "message.stored"  # the kind in the event log


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """What somebody says.

    Attributes:
        message_id: the sender's own; unique with the sender.
        payload: what hosted parties read, and outside ones where there is no envelope.
        envelope: JSON text, exactly as it came, or as we sealed it for outside readers.
        unreadable: why a hosted receiver cannot read the envelope.
        html: the text as rendered HTML.
        expires_at: when the content goes.
        except_connection: the sender's own, which hears nothing of its message.
        is_ours: somebody takes part whom the server hosts, or may.
    """

    tenant_id: str
    sender_aid: str
    message_id: str
    sender_device: str = ""
    type: str = ""
    payload: dict[str, Any] | None = None
    envelope: str | None = None
    unreadable: str | None = None
    html: str | None = None
    need_render: bool = True
    expires_at: datetime | None = None
    except_connection: str | None = None
    is_ours: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Direct(Sending):
    """A message to one AID, or to one of its devices.

    Attributes:
        is_copied: it enters the sender's own inbox too, for their other devices.
    """

    receiver_aid: str
    to_device: str | None = None
    is_copied: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToGroup(Sending):
    """A message to a group, whose `seq` was taken under the lock of its row."""

    group_id: str
    conversation_id: str
    seq: int
    mention_mode: str


@dataclass(frozen=True, slots=True)
class Stored:
    """A message that is stored: now (`is_new`), or by an earlier send of the same id.

    Attributes:
        id: of the row; `message_id` is the sender's.
        seq: the place in the receiver's inbox, or in the group.
        log_seq: the place in the event log.
        sent_ms: milliseconds since 1970.
    """

    id: str
    message_id: str
    seq: int
    log_seq: int
    sent_ms: int
    conversation_id: str
    is_new: bool


def known(
    connection: Connection, tenant_id: str, sender_aid: str, message_id: str
) -> Stored | None:
    """What an earlier send of this sender with this id stored.

    `store_group` needs a number of the group first: asking here before keeps it from being wasted.
    """
    found = rows.KNOWN.run(
        connection, tenant_id=tenant_id, sender_aid=sender_aid, message_id=message_id
    ).first()
    if found is None:
        return None
    seq = found.group_seq if found.group_seq is not None else found.inbox_seq
    return Stored(
        id=found.id,
        message_id=message_id,
        seq=seq or 0,
        log_seq=found.log_seq,
        sent_ms=found.sent_ms,
        conversation_id=found.conversation_id,
        is_new=False,
    )


def store_direct(work: Work, sending: Direct, place: Any = None) -> Stored:
    """Store a message in the inbox of its receiver; whoever is connected hears after the commit.

    `place` is a row with the pair's `conversation_id` and whether the message is `known`, where
    this transaction has read it already.
    """
    place = place or _place(work, sending)
    if place.known and (before := _before(work, sending)):
        return before
    conversation_id = place.conversation_id or conversations.begin(
        work, sending.tenant_id, sending.sender_aid, sending.receiver_aid
    )
    row = _row(work, sending, conversation_id)
    row["receiver_aid"] = sending.receiver_aid
    row["to_device"] = sending.to_device
    seq = rows.keep_for(work.connection, row, sending.receiver_aid)
    if sending.is_copied and sending.sender_aid != sending.receiver_aid:
        rows.enter(work.connection, row, sending.sender_aid, Direction.OUTBOUND_SYNC.value)
    return _told(work, sending, row, seq)


def store_group(work: Work, sending: ToGroup) -> Stored:
    """Store a message of a group; whoever is connected hears after the commit.

    A repeat is found here as well, but then `sending.seq` stays a hole: ask `known` first.
    """
    if before := _before(work, sending):
        return before
    row = _row(work, sending, sending.conversation_id)
    row |= {
        "group_id": sending.group_id,
        "seq": sending.seq,
        "mention_mode": sending.mention_mode,
    }
    rows.keep(work.connection, row)
    return _told(work, sending, row, sending.seq)


def _place(work: Work, sending: Direct) -> Any:
    first, second = conversations.pair(sending.sender_aid, sending.receiver_aid)
    return rows.PLACE.run(
        work.connection,
        tenant_id=sending.tenant_id,
        first_aid=first,
        second_aid=second,
        sender_aid=sending.sender_aid,
        message_id=sending.message_id,
    ).one()


def _before(work: Work, sending: Sending) -> Stored | None:
    return known(work.connection, sending.tenant_id, sending.sender_aid, sending.message_id)


def _row(work: Work, sending: Sending, conversation_id: str) -> dict[str, Any]:
    """The columns of a new message, which is in the event log already."""
    made, now = ids.ulid(), clock.now()
    log_seq = event_log.append(
        work,
        sending.tenant_id,
        STORED,
        conversation_id,
        {"message": made, "by": sending.sender_aid},
        topic=conversation_id,
    )
    return {
        "tenant_id": sending.tenant_id,
        "id": made,
        "conversation_id": conversation_id,
        "sender_aid": sending.sender_aid,
        "sender_device": sending.sender_device,
        "message_id": sending.message_id,
        "receiver_aid": None,
        "group_id": None,
        "seq": None,
        "log_seq": log_seq,
        "type": sending.type[:ID_LENGTH],
        "payload": sending.payload,
        "envelope": sending.envelope,
        "unreadable": sending.unreadable,
        "html": sending.html,
        "need_render": sending.need_render,
        "mention_mode": None,
        "in_reply_to": _replied(sending.payload),
        "thread_id": _short((sending.payload or {}).get("thread_id")),
        "to_device": None,
        "sent_at": now,
        "sent_ms": int(now.timestamp() * 1000),
        "expires_at": sending.expires_at,
        "recalled_at": None,
        "version": 1,
    }


def _told(work: Work, sending: Sending, row: dict[str, Any], seq: int) -> Stored:
    work.announce(
        MessageStored(
            tenant_id=sending.tenant_id,
            id=row["id"],
            conversation_id=row["conversation_id"],
            sender_aid=sending.sender_aid,
            receiver_aid=row["receiver_aid"],
            group_id=row["group_id"],
            except_connection=sending.except_connection,
            is_ours=sending.is_ours,
        )
    )
    return Stored(
        id=row["id"],
        message_id=sending.message_id,
        seq=seq,
        log_seq=row["log_seq"],
        sent_ms=row["sent_ms"],
        conversation_id=row["conversation_id"],
        is_new=True,
    )


def _replied(payload: dict[str, Any] | None) -> str | None:
    replied = (payload or {}).get("reply_to")
    return _short(replied.get("message_id")) if isinstance(replied, dict) else None


def _short(value: Any) -> str | None:
    """A text of a stranger that fits the column; display only, so what does not is left out."""
    return value if isinstance(value, str) and 0 < len(value) <= ID_LENGTH else None
