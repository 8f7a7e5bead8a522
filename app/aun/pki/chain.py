"""What a client verifies a certificate with: the issuer's certificate, then the root's."""

import hashlib

from sqlmodel import Session

from app.aun.pki import certificates, issuers
from app.aun.pki_models import RootAuthority


def pem(session: Session, tenant_id: str) -> str:
    """Both, the issuer's first, as clients expect them."""
    issuer = issuers.one(session, tenant_id)
    return certificates.pem(issuer.certificate) + root_pem(session, tenant_id)


def root_pem(session: Session, tenant_id: str) -> str:
    """The root, for people who set up a client."""
    return certificates.pem(root(session, tenant_id).certificate)


def root(session: Session, tenant_id: str) -> RootAuthority:
    """The root that a tenant's issuer was signed by."""
    found = session.get(RootAuthority, issuers.one(session, tenant_id).root_id)
    if found is None:  # pragma: no cover - a foreign key
        raise LookupError("an issuer has a root")
    return found


def root_fingerprint(session: Session, tenant_id: str) -> str:
    """The SHA-256 of the root, in hex pairs as people compare them."""
    return _pairs(root(session, tenant_id).certificate)


def issuer_fingerprint(session: Session, tenant_id: str) -> str:
    """The same of the issuer's certificate."""
    return _pairs(issuers.one(session, tenant_id).certificate)


def _pairs(der: bytes) -> str:
    return hashlib.sha256(der).digest().hex(":").upper()
