"""Whose key counts now: the keys of certificates, by AID and by fingerprint."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from sqlmodel import Session, col, or_, select

from app.aun.pki_models import Certificate, CertificateState

KEPT = 4_096  # certificates whose keys are read already
PREFIX = "sha256:"


@dataclass(frozen=True, slots=True)
class Key:
    """The key an AID stands for now."""

    spki: bytes
    fingerprint: str  # the first 16 hex
    certificate: bytes  # DER
    certificate_fingerprint: str


def current(session: Session, tenant_id: str, aids: Collection[str]) -> dict[str, Key]:
    """The key of each AID that has one: of its newest active certificate."""
    query = (
        select(Certificate)
        .where(
            Certificate.tenant_id == tenant_id,
            col(Certificate.aid).in_(sorted(set(aids))),
            Certificate.state == CertificateState.ACTIVE,
        )
        .order_by(col(Certificate.created_at), col(Certificate.serial))
    )
    return {
        found.aid: Key(spki(found.der), found.key_fingerprint, found.der, found.fingerprint)
        for found in session.exec(query)
    }


def fingerprints(session: Session, tenant_id: str, aids: Collection[str]) -> dict[str, str]:
    """The short fingerprint of each AID's key, as rows of recipients name it."""
    query = (
        select(Certificate.aid, Certificate.key_fingerprint)
        .where(
            Certificate.tenant_id == tenant_id,
            col(Certificate.aid).in_(sorted(set(aids))),
            Certificate.state == CertificateState.ACTIVE,
        )
        .order_by(col(Certificate.created_at), col(Certificate.serial))
    )
    return {aid: PREFIX + key for aid, key in session.exec(query)}


def of_signer(session: Session, tenant_id: str, aid: str, fingerprint: str) -> bytes | None:
    """The key an envelope is signed with, by either fingerprint; those of before count too."""
    name = fingerprint.removeprefix(PREFIX).lower()
    query = (
        select(Certificate.der)
        .where(
            Certificate.tenant_id == tenant_id,
            Certificate.aid == aid,
            or_(
                col(Certificate.key_fingerprint) == name,  # what clients write, of 16 digits
                col(Certificate.fingerprint) == name,
            ),
        )
        .order_by(col(Certificate.created_at).desc())
    )
    der = session.exec(query).first()
    return spki(der) if der else None


@lru_cache(KEPT)
def spki(certificate: bytes) -> bytes:
    """The public key of a certificate, DER in and DER out."""
    return (
        x509.load_der_x509_certificate(certificate)
        .public_key()
        .public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
