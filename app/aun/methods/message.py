"""`message.*`: one party writes to another.

Sending is done when the message is stored. Nothing here waits for an answer and nobody owes one:
silence is not an error, so these methods have no word for it.
"""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import Field
from sqlmodel import Session

from app.aun import (
    conversations,
    delivery,
    kinds,
    presence,
    queries,
    recalling,
    rendered,
    rows,
    volatile,
)
from app.aun.caller import HOSTED_DEVICE, Caller
from app.aun.delivery import Direct, Stored
from app.aun.e2ee import envelopes, hosted
from app.aun.e2ee.directory import READ_HERE
from app.aun.errors import BadParams, NoSuchParty, NotAParty
from app.aun.events import VolatileAccepted
from app.aun.fleeting import LONGEST_S, SHORTEST_S, Fleeting
from app.aun.method import Cost, Method, read, write
from app.aun.models import ID_LENGTH, IdentityKind, IdentityStatus
from app.aun.names import Aid
from app.aun.queries import HOSTED
from app.aun.wire import (
    ACCEPTED,
    DELIVERED,
    DUPLICATE,
    SENT,
    DeviceId,
    MessageId,
    Params,
    Payload,
    Result,
)
from app.kernel import clock, db, ids, json
from app.kernel.db import Work

AIDS_PER_QUERY = 100  # the protocol's own limit
IDS_PER_RECALL = 100
FANOUT = "fanout"
Kind = Annotated[str, Field(max_length=ID_LENGTH)]


class Send(Params):
    """`message.send`."""

    to: Aid
    payload: Payload
    message_id: MessageId = Field(default_factory=lambda: f"m-{ids.ulid().lower()}")
    type: Kind = ""
    need_render: bool = True
    device_id: DeviceId | None = None
    to_device_id: DeviceId | None = None
    ttl: int | float | None = None  # seconds: it is gone then, and never gets a number
    encrypt: bool | None = None  # for hosted senders: overrules the mirror
    client_signature: dict[str, Any] | None = None  # verified where it is there

    @property
    def ttl_ms(self) -> int:
        """How long it lives; 0 for ever."""
        if not self.ttl or self.ttl <= 0:
            return 0
        return int(min(max(self.ttl, SHORTEST_S), LONGEST_S) * 1000)

    @property
    def target_device(self) -> str | None:
        """The one device it is for."""
        return self.to_device_id or self.device_id or None


@dataclass(frozen=True, slots=True)
class Ready:
    """What `prepare` made of it: what it says to whom reads here, and how it leaves."""

    asked: Send
    words: dict[str, Any] | None = None
    envelope: str | None = None
    unreadable: str | None = None
    html: str | None = None
    is_copied: bool = False


class Sent(Result):
    """What the sender learns: it is stored. Not: it was read, or will be answered."""

    message_id: str
    seq: int  # position in the receiver's inbox; other senders fill the gaps
    timestamp: int  # milliseconds since 1970
    status: str  # delivered, sent or duplicate
    delivery_mode: str  # how the receiver's connections share what it gets
    storage: Literal["persistent"] = "persistent"


class Accepted(Result):
    """What the sender of a message learns that lives for seconds."""

    message_id: str
    timestamp: int
    status: str  # accepted or duplicate
    storage: Literal["volatile"] = "volatile"
    volatile_cursor: str
    created_at: int
    expires_at: int
    delivery_mode: str


class Recall(Params):
    """`message.recall`."""

    message_ids: Annotated[list[MessageId], Field(min_length=1, max_length=IDS_PER_RECALL)]


class QueryOnline(Params):
    """`message.query_online`."""

    aids: Annotated[list[Aid], Field(max_length=AIDS_PER_QUERY)]


class Online(Result):
    """Who is there now. An absence says nothing about an answer to come."""

    online: dict[str, bool]


async def prepare(caller: Caller, params: Send) -> Ready:
    """Check an envelope, read it for a hosted receiver, or make one for a hosted sender.

    Raises:
        BadParams, StaleKeys, NoSuchParty, NoUsableKey: nothing was sent.
    """
    if envelopes.is_envelope(params.payload):
        return await _opened(caller, params)
    envelope = await _sealed(caller, params) if caller.is_hosted else None
    is_shown = caller.is_hosted or await kinds.is_hosted(caller.tenant_id, params.to)
    html = await rendered.html_of(params.payload) if is_shown else None
    return Ready(params, words=params.payload, envelope=envelope, html=html)


async def _opened(caller: Caller, params: Send) -> Ready:
    if caller.is_hosted:
        raise BadParams("a hosted identity sends plain payloads; the server encrypts them")
    payload, to = params.payload, params.to
    await envelopes.checked_direct(caller, to, params.message_id, payload, params.target_device)
    if not envelopes.fits(payload):
        raise BadParams("payload is too large for a frame")
    opened = await hosted.opened(caller.tenant_id, to, caller.aid, payload)
    return Ready(
        params,
        words=opened.payload,
        envelope=json.dumps(payload).decode(),
        unreadable=opened.reason,
        html=await rendered.html_of(opened.payload),
        is_copied=any(aid == caller.aid for aid, _ in envelopes.wraps(payload)),
    )


async def _sealed(caller: Caller, params: Send) -> str | None:
    """A hosted sender's words leave as the peer's latest came, or as the caller says."""
    if params.encrypt is False:
        return None
    if params.encrypt is None:
        should = await hosted.should_encrypt(caller.tenant_id, caller.aid, params.to)
    else:
        receiver = await db.read(queries.party, caller.tenant_id, params.to)
        should = receiver.kind not in READ_HERE  # else it never leaves the server
    if not should:
        return None
    envelope = await hosted.sealed_direct(
        caller.tenant_id, caller.aid, params.to, params.payload, params.message_id
    )
    return json.dumps(envelope).decode()


def send(work: Work, caller: Caller, ready: Ready) -> Sent | Accepted:
    """Store one message; whoever is connected hears of it once it is committed.

    A repeat of (sender, message id) gets the first answer as `duplicate`; nothing happens twice.

    Raises:
        NoSuchParty: `to` is not known here; -32008 on the wire.
        NotAParty: the sender's user or agent is switched off.
        BadParams: the device it is for is not one of the receiver's.
    """
    asked = ready.asked
    receiver = _receiver(work, caller, asked)
    if receiver.kind == IdentityKind.SYSTEM:
        return _heard(work, caller, ready, receiver)
    if receiver.kind in HOSTED:
        return _for_us(work, caller, ready, receiver)
    if asked.target_device:
        _check_device(work, caller.tenant_id, asked.to, asked.target_device)
    mode = receiver.mode or ""
    if asked.ttl_ms:
        return _fleeting(work, caller, ready, mode)
    sending = _direct(caller, ready, is_ours=caller.is_hosted)
    return _sent(delivery.store_direct(work, sending, receiver), mode)


def recall(work: Work, caller: Caller, params: Recall) -> dict[str, Any]:
    """Take back what the caller sent a short while ago."""
    recalled, errors = recalling.recall(work, caller, params.message_ids)
    return {
        "success": not errors,
        "accepted": len(recalled),
        "recalled": len(recalled),
        "errors": errors or None,
    }


def query_online(session: Session, caller: Caller, params: QueryOnline) -> Online:
    """Tell who of `aids` is there; a stranger looks the same as someone who is away."""
    there = presence.online(session, caller.tenant_id, params.aids)
    return Online(online={aid: aid in there for aid in params.aids})


def _receiver(work: Work, caller: Caller, asked: Send) -> Any:
    """Whom it goes to, once it is sure that the caller may say anything at all.

    With it comes what the pair has said before, and how the receiver's connections share.
    """
    first, second = conversations.pair(caller.aid, asked.to)
    found = rows.ADDRESSED.run(
        work.connection,
        tenant_id=caller.tenant_id,
        sender_aid=caller.aid,
        receiver_aid=asked.to,
        first_aid=first,
        second_aid=second,
        message_id=asked.message_id,
        since=clock.now() - presence.SILENT,
    ).first()
    if found is None or found.sender_status != IdentityStatus.ACTIVE:
        raise NotAParty("sender is not active", retryable=False)
    if found.kind is None or found.kind == IdentityKind.GROUP:
        raise NoSuchParty(f"unknown aid: {asked.to}")
    is_off = found.kind == IdentityKind.USER and found.status == IdentityStatus.INACTIVE
    if is_off or found.status == IdentityStatus.BLOCKED:
        raise NoSuchParty(f"aid is not reachable: {asked.to}")
    return found


def _check_device(work: Work, tenant_id: str, aid: str, device_id: str) -> None:
    """A message for one device never falls back to all of them."""
    known = {"tenant_id": tenant_id, "aid": aid, "device_id": device_id}
    if rows.IS_DEVICE.run_with(work.connection, known).first() is None:
        raise BadParams(f"unknown target device: {device_id}")


def _direct(caller: Caller, ready: Ready, *, is_ours: bool = True) -> Direct:
    asked = ready.asked
    is_sealed = caller.is_hosted and ready.envelope is not None  # which says so of its device
    return Direct(
        tenant_id=caller.tenant_id,
        sender_aid=caller.aid,
        sender_device=HOSTED_DEVICE if is_sealed else caller.device_id,
        receiver_aid=asked.to,
        message_id=asked.message_id,
        type=asked.type,
        payload=ready.words,
        envelope=ready.envelope,
        unreadable=ready.unreadable,
        html=ready.html,
        need_render=asked.need_render,
        to_device=asked.target_device,
        is_copied=ready.is_copied,
        except_connection=caller.connection_id,
        is_ours=is_ours,
    )


def _for_us(work: Work, caller: Caller, ready: Ready, receiver: Any) -> Sent | Accepted:
    """Whoever is hosted here takes part in its own history, so even what is short is stored."""
    ttl_ms = ready.asked.ttl_ms
    if not ttl_ms:
        return _sent(delivery.store_direct(work, _direct(caller, ready), receiver), FANOUT)
    expires_at = clock.now() + timedelta(milliseconds=ttl_ms)
    sending = replace(_direct(caller, ready), expires_at=expires_at)
    stored = delivery.store_direct(work, sending, receiver)
    return Accepted(
        message_id=stored.message_id,
        timestamp=stored.sent_ms,
        status=ACCEPTED if stored.is_new else DUPLICATE,
        volatile_cursor=f"v1:{stored.conversation_id}:{stored.log_seq}",
        created_at=stored.sent_ms,
        expires_at=stored.sent_ms + ttl_ms,
        delivery_mode=FANOUT,
    )


def _fleeting(work: Work, caller: Caller, ready: Ready, mode: str) -> Sent | Accepted:
    asked = ready.asked
    key = (caller.tenant_id, caller.aid, asked.message_id)
    if before := delivery.known(work.connection, *key):
        return _sent(before, mode)
    now_ms = int(clock.now().timestamp() * 1000)
    made = Fleeting(
        tenant_id=caller.tenant_id,
        sender_aid=caller.aid,
        receiver_aid=asked.to,
        message_id=asked.message_id,
        sender_device=HOSTED_DEVICE if caller.is_hosted and ready.envelope else caller.device_id,
        sent_ms=now_ms,
        expires_ms=now_ms + asked.ttl_ms,
        type=asked.type,
        payload=None if ready.envelope else asked.payload,
        envelope=ready.envelope,
        need_render=asked.need_render,
        to_device=asked.target_device,
    )
    kept, is_new = volatile.keep(work.connection, made)
    if is_new:
        work.announce(
            VolatileAccepted(
                tenant_id=caller.tenant_id, receiver_aid=kept.receiver_aid, cursor=kept.cursor
            )
        )
        work.after_commit(kept.tell)
    return Accepted(
        message_id=kept.message_id,
        timestamp=kept.sent_ms,
        status=ACCEPTED if is_new else DUPLICATE,
        volatile_cursor=kept.cursor,
        created_at=kept.sent_ms,
        expires_at=kept.expires_ms,
        delivery_mode=mode or FANOUT,
    )


def _sent(stored: Stored, mode: str) -> Sent:
    status = DELIVERED if mode else SENT
    return Sent(
        message_id=stored.message_id,
        seq=stored.seq,
        timestamp=stored.sent_ms,
        status=status if stored.is_new else DUPLICATE,
        delivery_mode=mode or FANOUT,
    )


def _heard(work: Work, caller: Caller, ready: Ready, receiver: Any) -> Sent:
    """What the system's own AID is told is its sender's secret: it listens and keeps nothing."""
    from app.aun import linking  # noqa: PLC0415

    kept = Ready(ready.asked, words={})
    stored = delivery.store_direct(work, _direct(caller, kept), receiver)
    if stored.is_new:
        is_signed = ready.asked.client_signature is not None
        linking.listen(work, caller, ready.words or {}, is_signed)
    return _sent(stored, FANOUT)


WRITES: dict[str, Method] = {
    "message.send": write(send, cost=Cost.SEND, prepare=prepare),
    "message.recall": write(recall),
}
READS: dict[str, Method] = {"message.query_online": read(query_online)}
