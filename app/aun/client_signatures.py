"""`client_signature`: the caller's own word for one call, checked wherever it is given (4.3)."""

import base64
import binascii
import hashlib
import json
from collections import OrderedDict
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from sqlmodel import Session, select

from app.aun.caller import Caller
from app.aun.errors import BadSignature
from app.aun.pki_models import Certificate, CertificateState
from app.kernel import clock, db

FIELD = "client_signature"
KEPT, KEPT_S = 2_000, 5.0  # keys, and how long one counts without another look
ECDSA = ec.ECDSA(hashes.SHA256())

_keys: "OrderedDict[tuple[str, str, str], tuple[float, ec.EllipticCurvePublicKey | None]]"
_keys = OrderedDict()


async def check(caller: Caller, method: str, params: dict[str, Any]) -> None:
    """Return if the signature in `params` is the caller's, of this method and these parameters.

    Raises:
        BadSignature: it is not.
    """
    given = params[FIELD]
    if not isinstance(given, dict):
        raise BadSignature("client_signature is an object")
    words = {
        name: given.get(name)
        for name in ("aid", "cert_fingerprint", "timestamp", "params_hash", "signature")
    }
    if any(not isinstance(value, str) for value in words.values()):
        raise BadSignature("client_signature is incomplete")
    if words["aid"] != caller.aid:
        raise BadSignature("client_signature is of another aid")
    if words["params_hash"] != params_hash(params):
        raise BadSignature("client_signature is of other parameters")
    fingerprint = str(words["cert_fingerprint"]).removeprefix("sha256:")
    key = await _key(caller, fingerprint)
    if key is None:
        raise BadSignature("client_signature names no certificate of this aid")
    said = f"{method}|{caller.aid}|{words['timestamp']}|{words['params_hash']}"
    try:
        signature = base64.b64decode(str(words["signature"]), validate=True)
        key.verify(signature, said.encode(), ECDSA)
    except (InvalidSignature, binascii.Error, ValueError):
        raise BadSignature("client_signature does not verify") from None


def params_hash(params: dict[str, Any]) -> str:
    """What a client signs of its parameters: all but the signature and names with `_` in front."""
    signed = {
        name: value for name, value in params.items() if name != FIELD and not name.startswith("_")
    }
    text = json.dumps(signed, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


async def _key(caller: Caller, fingerprint: str) -> ec.EllipticCurvePublicKey | None:
    at = (caller.tenant_id, caller.aid, fingerprint)
    kept = _keys.get(at)
    if kept is None or clock.monotonic_s() - kept[0] > KEPT_S:
        found = await db.read(_standing, *at)
        kept = _keys[at] = (clock.monotonic_s(), found)
        if len(_keys) > KEPT:
            _keys.popitem(last=False)
    return kept[1]


def _standing(
    session: Session, tenant_id: str, aid: str, fingerprint: str
) -> ec.EllipticCurvePublicKey | None:
    query = select(Certificate.der).where(
        Certificate.tenant_id == tenant_id,
        Certificate.fingerprint == fingerprint,
        Certificate.aid == aid,
        Certificate.state != CertificateState.REVOKED,
    )
    der = session.exec(query).first()
    if der is None:
        return None
    key = x509.load_der_x509_certificate(der).public_key()
    return key if isinstance(key, ec.EllipticCurvePublicKey) else None
