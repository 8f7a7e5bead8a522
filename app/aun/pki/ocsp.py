"""Whether one certificate still counts, signed for each request: nothing here is ever cached.

Clients refuse an answer older than 30 seconds, and a CertID that is not SHA-256 (aun.md, 12).
"""

import hashlib
from datetime import datetime, timedelta

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.ocsp import OCSPCertStatus, OCSPResponderEncoding, OCSPResponseBuilder
from sqlmodel import Session

from app.aun.pki import building, certificates, issuers
from app.aun.pki.building import Signer
from app.aun.pki_models import CertificateState
from app.kernel import clock

GOOD, REVOKED, UNKNOWN = "good", "revoked", "unknown"
LIVES = timedelta(minutes=5)
STATUS = {
    GOOD: OCSPCertStatus.GOOD,
    REVOKED: OCSPCertStatus.REVOKED,
    UNKNOWN: OCSPCertStatus.UNKNOWN,
}


def answer(session: Session, tenant_id: str, serial: str) -> tuple[str, bytes]:
    """The status of a serial number of this issuer (hex), and the signed answer (DER)."""
    status, revoked_at = _status(session, tenant_id, serial)
    by = issuers.signer(session, tenant_id)
    return status, _signed(by, int(serial, 16), status, revoked_at)


def _status(session: Session, tenant_id: str, serial: str) -> tuple[str, datetime | None]:
    row = certificates.by_serial(session, tenant_id, serial)
    if row is not None:
        is_revoked = row.state == CertificateState.REVOKED
        return (REVOKED, row.revoked_at) if is_revoked else (GOOD, None)
    auth = building.parsed(issuers.one(session, tenant_id).auth_certificate)
    return (GOOD if building.serial(auth) == serial else UNKNOWN), None


def _signed(by: Signer, serial: int, status: str, revoked_at: datetime | None) -> bytes:
    now = clock.now()
    draft = OCSPResponseBuilder().add_response_by_hash(
        hashlib.sha256(by.certificate.subject.public_bytes()).digest(),
        hashlib.sha256(_key_bits(by)).digest(),
        serial,
        hashes.SHA256(),
        STATUS[status],
        now,
        now + LIVES,
        revoked_at,
        None,
    )
    named = draft.responder_id(OCSPResponderEncoding.NAME, by.certificate)
    return named.sign(by.key, hashes.SHA256()).public_bytes(Encoding.DER)


def _key_bits(by: Signer) -> bytes:
    return by.key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
