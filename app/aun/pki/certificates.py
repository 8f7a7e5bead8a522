"""The certificates of AIDs: issued, replaced, revoked; every one stays readable by fingerprint."""

import re

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from sqlmodel import Session, col, select

from app.aun import queries
from app.aun.models import IdentityKind
from app.aun.pki import building, issuers, keys
from app.aun.pki.keys import PublicKey
from app.aun.pki_models import Certificate, CertificateState
from app.kernel import clock
from app.kernel.db import Work

FINGERPRINT = re.compile(r"(?:sha256:)?([0-9a-f]{64})|sha256:([0-9a-f]{16})")


def issue(work: Work, tenant_id: str, aid: str, public_key: PublicKey) -> Certificate:
    """A certificate for an AID whose identity is in the database; those before it retire."""
    made = building.leaf(issuers.signer(work.session, tenant_id), public_key, aid)
    now = clock.now()
    for old in queries.certificates(work.session, tenant_id, aid):
        if old.state == CertificateState.ACTIVE:
            old.state = CertificateState.RETIRED
            work.session.add(old)
    row = Certificate(
        tenant_id=tenant_id,
        serial=building.serial(made),
        aid=aid,
        der=made.public_bytes(Encoding.DER),
        fingerprint=made.fingerprint(hashes.SHA256()).hex(),
        key_fingerprint=keys.short_fingerprint(keys.spki(public_key)),
        created_at=now,
        not_after=made.not_valid_after_utc,
    )
    work.session.add(row)
    _forget_card(work, tenant_id, aid)
    work.session.flush()
    return row


def _forget_card(work: Work, tenant_id: str, aid: str) -> None:
    """A card that was signed here is signed anew when somebody asks next."""
    found = queries.identity(work.session, tenant_id, aid)
    if found is not None and found.key_sealed is not None and found.kind != IdentityKind.GROUP:
        found.card = found.card_etag = found.card_at = None
        work.session.add(found)


def revoke(work: Work, tenant_id: str, aid: str, *, but: PublicKey | None = None) -> None:
    """Revoke every certificate of an AID, except those of the key that replaces the others."""
    kept = keys.short_fingerprint(keys.spki(but)) if but else None
    for row in queries.certificates(work.session, tenant_id, aid):
        if row.state != CertificateState.REVOKED and row.key_fingerprint != kept:
            row.state, row.revoked_at = CertificateState.REVOKED, clock.now()
            work.session.add(row)
    work.session.flush()


def by_fingerprint(session: Session, tenant_id: str, aid: str, text: str) -> Certificate | None:
    """The certificate of an AID by `sha256:<64 hex>`, the same bare, or `sha256:<16 hex of key>`.

    Of several with one key it is the newest; whatever its state.
    """
    found = FINGERPRINT.fullmatch(text)
    if found is None:
        return None
    whole, short = found.groups()
    for row in queries.certificates(session, tenant_id, aid):
        if row.fingerprint == whole or (short and row.key_fingerprint == short):
            return row
    return None


def by_serial(session: Session, tenant_id: str, serial: str) -> Certificate | None:
    """The certificate with this serial number, in hex."""
    return session.get(Certificate, (tenant_id, serial))


def revoked(session: Session, tenant_id: str) -> list[Certificate]:
    """The revoked certificates that have not run out anyway, the first revoked first."""
    query = (
        select(Certificate)
        .where(
            Certificate.tenant_id == tenant_id,
            Certificate.state == CertificateState.REVOKED,
            Certificate.not_after > clock.now(),
        )
        .order_by(col(Certificate.revoked_at), col(Certificate.serial))
    )
    return list(session.exec(query))


def pem(der: bytes) -> str:
    """The same as text."""
    return building.parsed(der).public_bytes(Encoding.PEM).decode()


def public_key(row: Certificate) -> PublicKey:
    """The key a certificate is for."""
    key = building.parsed(row.der).public_key()
    if not isinstance(key, PublicKey):  # pragma: no cover - none else is issued
        raise TypeError("not a P-256 certificate")
    return key
