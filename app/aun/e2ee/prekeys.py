"""Prekeys that clients put into the directory: nobody's but their own, signed, one a device.

A false key in it would silence whoever it is for, so each is verified before it is kept.
"""

import asyncio
import base64
from typing import Annotated

from pydantic import Field
from sqlmodel import Session

from app.aun.caller import Caller
from app.aun.e2ee import crypto, keys, rows
from app.aun.errors import BadParams, BadSignature
from app.aun.pki import keys as curve
from app.aun.wire import Params
from app.kernel import clock, db
from app.kernel.db import Work

DEVICES = 50  # of an AID, between two and in each group; the oldest goes

Text = Annotated[str, Field(max_length=500)]


class Prekey(Params):
    """A prekey as a client puts it."""

    key_source: Text
    spk_id: Annotated[str, Field(max_length=80)]
    spk_pk: Text
    spk_signature: Text
    spk_timestamp: Annotated[int, Field(ge=0)]


async def verified(caller: Caller, prekey: Prekey) -> None:
    """Return if a prekey is well made and signed by the caller's AID.

    Raises:
        BadParams, BadSignature: it is not.
    """
    ik = await db.read(_ik, caller)
    await asyncio.to_thread(_verify, ik, prekey)


def put(work: Work, caller: Caller, prekey: Prekey, group_id: str = "") -> None:
    """Keep a prekey as the one of the caller's device.

    Raises:
        BadParams, BadSignature: it is not signed by the key of now, which may be newer than before.
    """
    _verify(_ik(work.session, caller), prekey)
    whose = {
        "tenant_id": caller.tenant_id,
        "aid": caller.aid,
        "device_id": caller.device_id,
        "group_id": group_id,
    }
    values = {**whose, **prekey.model_dump(include=set(Prekey.model_fields))}
    values["updated_at"] = clock.now()
    if rows.UPDATE.run_with(work.connection, values).rowcount:
        return
    rows.INSERT.run_with(work.connection, values)
    rows.TRIM.run_with(work.connection, {**whose, "others": DEVICES - 1})


def _ik(session: Session, caller: Caller) -> bytes:
    if caller.is_hosted:
        raise BadParams("a hosted identity has no device keys")
    if not caller.device_id:
        raise BadParams("a connection without a device has no key")
    found = keys.current(session, caller.tenant_id, {caller.aid}).get(caller.aid)
    if found is None:
        raise BadSignature("this aid has no valid certificate")
    return found.spki


def _verify(ik: bytes, prekey: Prekey) -> None:
    try:
        spk = base64.b64decode(prekey.spk_pk, validate=True)
        signature = base64.b64decode(prekey.spk_signature, validate=True)
        curve.of_spki(spk)
    except ValueError:
        raise BadParams(
            "spk_pk and spk_signature are base64, of a P-256 key and of 64 bytes"
        ) from None
    if prekey.spk_id != keys.PREFIX + crypto.fingerprint(spk):
        raise BadParams("spk_id is not of spk_pk")
    if not crypto.verifies(ik, signature, signed_words(spk, prekey.spk_id, prekey.spk_timestamp)):
        raise BadSignature("spk_signature does not verify")


def signed_words(spk: bytes, spk_id: str, timestamp: int) -> bytes:
    """What the signature of a prekey is over."""
    return spk + spk_id.encode() + str(timestamp).encode()
