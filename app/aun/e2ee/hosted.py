"""Mail of hosted AIDs: the server is their client, opens what they get and seals what they send.

What cannot be opened is stored as unreadable with a reason, never lost and never an error. What is
to be encrypted is encrypted, or the caller hears why not; nothing falls back to plain text.
"""

import asyncio
import json as loose_json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any

import structlog
from sqlmodel import Session, col, select

from app.aun import identities, queries
from app.aun.caller import HOSTED_DEVICE
from app.aun.e2ee import crypto, directory, envelopes, keys, states
from app.aun.e2ee.crypto import Sealer, Target
from app.aun.e2ee.directory import READ_HERE
from app.aun.e2ee.states import Standing
from app.aun.errors import AunError, BadParams
from app.aun.group_models import Member
from app.aun.models import Direction, Identity, InboxEntry, Message
from app.kernel import clock, db, json
from app.kernel.i18n import N_
from app.kernel.sealing import CannotUnseal

log = structlog.get_logger(__name__)

TRIES = 4  # members whose row is tried before a group message counts as unreadable
LARGEST = 1 << 21  # bytes of JSON inside an envelope


class Unreadable(StrEnum):
    """Why a hosted AID cannot read a message that was encrypted to it."""

    UNKNOWN_KEY = "unknown_sender_key"
    BAD_SIGNATURE = "bad_signature"
    TAMPERED = "recipients_changed"
    NO_ROW = "not_a_recipient"
    BROKEN = "cannot_decrypt"
    NO_KEY = "key_unusable"  # ours
    BAD_PAYLOAD = "bad_payload"  # it opens, and holds what we would not take from anybody


@dataclass(frozen=True, slots=True)
class Opened:
    """What a hosted party reads in an envelope; neither where nobody here is to read it."""

    payload: dict[str, Any] | None = None
    reason: str | None = None


class NoUsableKey(AunError):
    """There is no key to encrypt to; nothing was sent."""

    code = -33054
    reason = "no_usable_key"
    status = 409
    says = N_("The receiver has no key that a message could be encrypted to. Nothing was sent.")


@dataclass(frozen=True, slots=True)
class _Reader:
    aid: str
    scalar: bytes | None  # None where we cannot get at our own key

    def __repr__(self) -> str:
        return f"_Reader({self.aid!r})"


async def opened(
    tenant_id: str, receiver_aid: str, sender_aid: str, envelope: dict[str, Any]
) -> Opened:
    """What a checked envelope between two says, if its receiver is hosted."""
    readers, signer = await db.read(_reader, tenant_id, receiver_aid, sender_aid, envelope)
    return await asyncio.to_thread(_opened, readers, signer, envelope)


async def opened_group(
    tenant_id: str, group_id: str, sender_aid: str, envelope: dict[str, Any]
) -> Opened:
    """What a checked envelope of a group says, if it has hosted members.

    It is opened once, by one of them who has a row, and read by all of them: a hosted member a
    sender left out is still a member, and the server has no way to forget for one what it knows
    for another.
    """
    readers, signer = await db.read(_readers, tenant_id, group_id, sender_aid, envelope)
    return await asyncio.to_thread(_opened, readers, signer, envelope)


async def should_encrypt(tenant_id: str, sender_aid: str, receiver_aid: str) -> bool:
    """Whether a hosted sender encrypts: as the peer's latest message was, and to begin with yes.

    Between hosted AIDs nothing is encrypted, for it never leaves the server.
    """
    return await db.read(_should_encrypt, tenant_id, sender_aid, receiver_aid)


async def leaves_server(tenant_id: str, receiver_aid: str) -> bool:
    """Whether mail to an AID is read elsewhere, so that encrypting it means anything."""
    return await db.read(_leaves_server, tenant_id, receiver_aid)


async def should_encrypt_group(tenant_id: str, group_id: str) -> bool:
    """Whether a hosted member encrypts: with anybody in it whose mail leaves the server."""
    return await db.read(_has_outsider, tenant_id, group_id)


async def sealed_direct(
    tenant_id: str, sender_aid: str, receiver_aid: str, payload: dict[str, Any], message_id: str
) -> dict[str, Any]:
    """An envelope from a hosted AID to every device of another AID.

    Raises:
        NoUsableKey: there is nothing to encrypt to.
        BadParams: it would be larger than a frame.
    """
    sender, targets = await db.read(_direct_targets, tenant_id, sender_aid, receiver_aid)
    at_ms = int(clock.now().timestamp() * 1000)
    sealed = partial(crypto.sealed_direct, sender, targets, payload, message_id, at_ms)
    return _fitting(await asyncio.to_thread(sealed))


async def sealed_group(
    tenant_id: str, sender_aid: str, group_id: str, payload: dict[str, Any], message_id: str
) -> dict[str, Any]:
    """An envelope from a hosted member to every device in a group but its own.

    Raises:
        NoUsableKey, BadParams: as for one receiver.
    """
    sender, targets, state = await db.read(_group_targets, tenant_id, sender_aid, group_id)
    sealed = partial(
        crypto.sealed_group,
        sender,
        group_id,
        targets,
        payload,
        epoch=state.state_version,
        state=state.commitment(),
        message_id=message_id,
        at_ms=int(clock.now().timestamp() * 1000),
    )
    return _fitting(await asyncio.to_thread(sealed))


def _reader(
    session: Session, tenant_id: str, receiver_aid: str, sender_aid: str, envelope: dict[str, Any]
) -> tuple[list[_Reader], bytes | None]:
    receiver = queries.identity(session, tenant_id, receiver_aid)
    hosted = [receiver] if receiver is not None and receiver.kind in READ_HERE else []
    return _of(session, hosted), _signer(session, tenant_id, sender_aid, envelope)


def _readers(
    session: Session, tenant_id: str, group_id: str, sender_aid: str, envelope: dict[str, Any]
) -> tuple[list[_Reader], bytes | None]:
    query = (
        select(Identity)
        .join(
            Member,
            (col(Member.tenant_id) == Identity.tenant_id) & (col(Member.aid) == Identity.aid),
        )
        .where(
            Identity.tenant_id == tenant_id,
            Member.group_id == group_id,
            col(Identity.kind).in_(READ_HERE),
        )
        .order_by(Identity.aid)
    )
    hosted = session.exec(query).all()
    named = {aid for aid, _ in envelopes.wraps(envelope)}
    first = sorted(hosted, key=lambda identity: identity.aid not in named)[:TRIES]
    return _of(session, first), _signer(session, tenant_id, sender_aid, envelope)


def _of(session: Session, hosted: Sequence[Identity]) -> list[_Reader]:
    made = []
    for found in hosted:
        try:
            scalar = identities.key_of(session, found.tenant_id, found.aid)
        except (LookupError, CannotUnseal):
            log.exception("hosted_key_unusable", aid=found.aid)
            scalar = None
        made.append(_Reader(found.aid, scalar))
    return made


def _signer(
    session: Session, tenant_id: str, sender_aid: str, envelope: dict[str, Any]
) -> bytes | None:
    name = str(envelope.get("sender_cert_fingerprint", ""))
    return keys.of_signer(session, tenant_id, sender_aid, name)


def _opened(readers: list[_Reader], signer: bytes | None, envelope: dict[str, Any]) -> Opened:
    if not readers:
        return Opened()
    if signer is None:
        return Opened(reason=Unreadable.UNKNOWN_KEY)
    reason = Unreadable.NO_ROW
    for reader in readers:
        if reader.scalar is None:
            reason = Unreadable.NO_KEY
            continue
        if not envelopes.has_wrap(envelope, reader.aid, HOSTED_DEVICE):
            continue
        try:
            return _safe(crypto.opened(envelope, reader.aid, reader.scalar, signer))
        except Exception as fault:  # noqa: BLE001 - whatever is wrong with it, it is stored unread
            reason = _why(fault)
    log.info("envelope_unreadable", reason=reason.value)
    return Opened(reason=reason)


def _why(fault: Exception) -> Unreadable:
    match str(fault).partition(" ")[0]:
        case "sender_signature":
            return Unreadable.BAD_SIGNATURE
        case "recipients_digest":
            return Unreadable.TAMPERED
        case _:
            return Unreadable.BROKEN


def _safe(found: Any) -> Opened:
    """What came out, as strict as a frame: one unsafe number inside would disable its readers."""
    try:
        payload = json.loads(
            loose_json.dumps(found).encode(), max_bytes=LARGEST, max_nodes=json.MAX_NODES_AUN
        )
    except (json.BadJSON, ValueError, RecursionError):
        return Opened(reason=Unreadable.BAD_PAYLOAD)
    if not isinstance(payload, dict):
        return Opened(reason=Unreadable.BAD_PAYLOAD)
    return Opened(payload)


def _leaves_server(session: Session, tenant_id: str, receiver_aid: str) -> bool:
    receiver = queries.identity(session, tenant_id, receiver_aid)
    return receiver is not None and receiver.kind not in READ_HERE


def _should_encrypt(session: Session, tenant_id: str, sender_aid: str, receiver_aid: str) -> bool:
    if not _leaves_server(session, tenant_id, receiver_aid):
        return False
    query = (
        select(Message.envelope)
        .join(
            InboxEntry,
            (col(InboxEntry.tenant_id) == Message.tenant_id)
            & (col(InboxEntry.message) == Message.id),
        )
        .where(
            InboxEntry.tenant_id == tenant_id,
            InboxEntry.aid == sender_aid,
            InboxEntry.sender_aid == receiver_aid,
            InboxEntry.direction == Direction.INBOUND,
            col(Message.recalled_at).is_(None),  # of these nothing is left to tell how it came
            col(Message.expires_at).is_(None) | (col(Message.expires_at) > clock.now()),
        )
        .order_by(col(InboxEntry.seq).desc())
        .limit(1)
    )
    latest = session.exec(query).all()
    return not latest or latest[0] is not None


def _has_outsider(session: Session, tenant_id: str, group_id: str) -> bool:
    query = (
        select(Member.aid)
        .join(
            Identity,
            (col(Identity.tenant_id) == Member.tenant_id) & (col(Identity.aid) == Member.aid),
        )
        .where(
            Member.tenant_id == tenant_id,
            Member.group_id == group_id,
            col(Identity.kind).not_in(READ_HERE),
        )
        .limit(1)
    )
    return session.exec(query).first() is not None


def _direct_targets(
    session: Session, tenant_id: str, sender_aid: str, receiver_aid: str
) -> tuple[Sealer, list[Target]]:
    queries.party(session, tenant_id, receiver_aid)
    rows = directory.devices(session, tenant_id, {receiver_aid})
    if not rows:
        raise NoUsableKey("no usable key of the receiver")
    sender = Sealer(sender_aid, identities.key_of(session, tenant_id, sender_aid))
    return sender, [row.target("peer") for row in rows]


def _group_targets(
    session: Session, tenant_id: str, sender_aid: str, group_id: str
) -> tuple[Sealer, list[Target], Standing]:
    rows = directory.of_group(session, tenant_id, group_id)
    others = [row.target("member") for row in rows if row.aid != sender_aid]
    if not others:
        raise NoUsableKey("no usable key of any member")
    sender = Sealer(sender_aid, identities.key_of(session, tenant_id, sender_aid))
    return sender, others, states.standing(session, tenant_id, group_id)


def _fitting(envelope: dict[str, Any]) -> dict[str, Any]:
    if not envelopes.fits(envelope):
        raise BadParams("payload is too large to be encrypted")
    return envelope
