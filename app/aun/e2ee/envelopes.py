"""Encrypted payloads as the server may see them: their form, their recipients, nothing inside.

An envelope is stored exactly as it came. What is checked is structure, and that it is encrypted to
keys that count now: a sender keeps a directory for an hour, and after a new key its messages of
that hour could never be read (aun.md, 8.2).
"""

import asyncio
import hashlib
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError
from sqlmodel import Session, col, select

from app.aun import queries
from app.aun.caller import Caller
from app.aun.e2ee import crypto, keys
from app.aun.errors import BadParams, StaleKeys
from app.aun.group_models import Member
from app.aun.wire import LONGEST_PAYLOAD, Params
from app.kernel import db, json

DIRECT, GROUP = "e2ee.p2p_encrypted", "e2ee.group_encrypted"
LONGEST = 1_800_000  # bytes inside a frame, of what we seal ourselves: frames stay below 2 MiB
NODE = b"AUN-V2-RCPT-NODE-v1"

# aid, device, role, key source, fingerprint of the key, prekey, nonce and wrapped key
COLUMNS = ("aid", "device_id", "role", "key_source", "fp", "spk_id", "wrap_nonce", "wrapped_key")
Row = Annotated[list[str], Field(min_length=len(COLUMNS), max_length=len(COLUMNS))]


class _Aad(Params):
    sender: str = Field(alias="from")
    to: str | None = None
    group_id: str | None = None
    message_id: str


class _Envelope(Params):
    type: Literal["e2ee.p2p_encrypted", "e2ee.group_encrypted"]
    version: Literal["v2"]
    suite: str
    nonce: str
    ciphertext: str
    tag: str
    sender_signature: str
    sender_cert_fingerprint: str
    sender_session_pk: str
    recipients_digest: str
    recipients: Annotated[list[Row], Field(min_length=1)]
    aad: _Aad


def is_envelope(payload: dict[str, Any]) -> bool:
    """Whether a payload came encrypted, or says it did."""
    return payload.get("type") in (DIRECT, GROUP)  # a type may be anything, unhashable too


async def checked_direct(
    caller: Caller, to: str, message_id: str, payload: dict[str, Any], device_id: str | None = None
) -> None:
    """Return if an envelope is from the caller, for `to`, under this id and to keys of today.

    With `device_id` it must hold a row for that device, or one for the whole AID.

    Raises:
        BadParams: its structure is wrong, or it does not match the request.
        NoSuchParty: `to` cannot be written to.
        StaleKeys: a row is for a key that was replaced; the client encrypts anew.
    """
    envelope = await asyncio.to_thread(_understood, caller, DIRECT, message_id, payload)
    if envelope.aad.to != to:
        raise BadParams("invalid envelope: aad.to is not the receiver")
    devices = {row[1] for row in envelope.recipients if row[0] == to}
    if not devices:
        raise BadParams("invalid envelope: no recipient row of the receiver")
    if device_id and not devices & {device_id, ""}:
        raise BadParams(f"invalid envelope: no recipient row of target device {device_id}")
    await db.read(_current_direct, caller.tenant_id, to, envelope.recipients)


async def checked_group(
    caller: Caller, group_id: str, message_id: str, payload: dict[str, Any]
) -> None:
    """Return if an envelope is from the caller, for this group, its members and keys of today.

    Whether the caller may send there is the sending unit's to say: for someone who is no member
    only the structure is looked at.

    Raises:
        BadParams: its structure is wrong, or it does not match the request.
        StaleKeys: a row is of someone who is no member, or for a key that was replaced.
    """
    envelope = await asyncio.to_thread(_understood, caller, GROUP, message_id, payload)
    if envelope.aad.group_id != group_id:
        raise BadParams("invalid envelope: aad.group_id is not the group")
    await db.read(_current_group, caller, group_id, envelope.recipients)


def wraps(envelope: dict[str, Any]) -> set[tuple[str, str]]:
    """Who can open an envelope: (aid, device) pairs; an empty device stands for all of the AID."""
    return {(row[0], row[1]) for row in envelope.get("recipients", ())}


def has_wrap(envelope: dict[str, Any], aid: str, device_id: str) -> bool:
    """Whether this device can open it."""
    return bool(wraps(envelope) & {(aid, device_id), (aid, "")})


class Split:
    """A group envelope taken apart for single devices, each with the proof that its row belongs."""

    def __init__(self, envelope: dict[str, Any]) -> None:
        self._common = {name: part for name, part in envelope.items() if name != "recipients"}
        self._rows: list[list[str]] = envelope["recipients"]
        self._places = {(row[0], row[1]): at for at, row in reversed([*enumerate(self._rows)])}
        self._layers = _layers([crypto.leaf(row) for row in self._rows])

    def for_device(self, aid: str, device_id: str) -> dict[str, Any] | None:
        """The envelope with this device's row alone; None where it has none."""
        place = self._places.get((aid, device_id), self._places.get((aid, "")))
        if place is None:
            return None
        row = self._rows[place]
        made = {
            **self._common,
            "recipient": dict(zip(COLUMNS, row, strict=True)),
            "merkle_proof": self._proof(place),
        }
        if not row[1]:
            made["delivery_device_id"] = device_id  # a row for the whole AID names no device
        return made

    def _proof(self, place: int) -> list[dict[str, str]]:
        proof = []
        for layer in self._layers:
            beside = place ^ 1
            sibling = layer[beside] if beside < len(layer) else layer[place]
            proof.append({"sibling": sibling.hex(), "position": "R" if beside > place else "L"})
            place //= 2
        return proof


def projection(envelope: dict[str, Any], aid: str, device_id: str) -> dict[str, Any] | None:
    """The envelope for one device, which takes it from an event without a pull (8.3)."""
    return Split(envelope).for_device(aid, device_id)


def fits(envelope: dict[str, Any]) -> bool:
    """Whether an envelope, quoted once more inside a frame, leaves the frame below 2 MiB."""
    text = json.dumps(envelope)
    return len(text) + text.count(b'"') + text.count(b"\\") <= LONGEST


def _understood(caller: Caller, kind: str, message_id: str, payload: dict[str, Any]) -> _Envelope:
    if caller.is_hosted:
        raise BadParams("a hosted identity sends plain payloads; the server encrypts them")
    if len(json.dumps(payload)) > LONGEST_PAYLOAD:
        raise BadParams("payload is larger than 1 MiB")
    try:
        envelope = _Envelope.model_validate(payload)
    except ValidationError as fault:
        first = fault.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise BadParams(f"invalid envelope: {where}: {first['msg']}") from None
    if envelope.type != kind:
        raise BadParams(f"invalid envelope: type is not {kind}")
    if envelope.aad.sender != caller.aid:
        raise BadParams("invalid envelope: aad.from is not the caller")
    if envelope.aad.message_id != message_id:
        raise BadParams("invalid envelope: aad.message_id is not the message_id")
    places = [row[:3] for row in envelope.recipients]
    if places != sorted(places):
        raise BadParams("invalid envelope: recipients are not sorted")
    return envelope


def _current_direct(session: Session, tenant_id: str, to: str, rows: list[list[str]]) -> None:
    queries.party(session, tenant_id, to)
    ours = queries.known(session, tenant_id, {row[0] for row in rows})
    _refuse_stale(session, tenant_id, [row for row in rows if row[0] in ours])


def _current_group(session: Session, caller: Caller, group_id: str, rows: list[list[str]]) -> None:
    query = select(Member.aid).where(
        Member.tenant_id == caller.tenant_id,
        Member.group_id == group_id,
        col(Member.aid).in_({row[0] for row in rows} | {caller.aid}),
    )
    members = set(session.exec(query))
    if caller.aid not in members:
        return
    if strangers := {row[0] for row in rows} - members:
        raise StaleKeys("recipient is not a member", stale_aids=sorted(strangers))
    _refuse_stale(session, caller.tenant_id, rows)


def _refuse_stale(session: Session, tenant_id: str, rows: list[list[str]]) -> None:
    today = keys.fingerprints(session, tenant_id, {row[0] for row in rows})
    if stale := {row[0] for row in rows if today.get(row[0]) != row[4]}:
        raise StaleKeys("recipient key is not current", stale_aids=sorted(stale))


def _layers(leaves: list[bytes]) -> list[list[bytes]]:
    """Each layer of the tree below its root; an odd last node is its own sibling."""
    layers = []
    while len(leaves) > 1:
        layers.append(leaves)
        pairs = zip(leaves[::2], [*leaves[1::2], leaves[-1]], strict=False)
        leaves = [hashlib.sha256(NODE + left + right).digest() for left, right in pairs]
    return layers
