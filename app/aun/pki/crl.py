"""The list of revoked certificates of a tenant, signed by its issuer."""

from datetime import timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from sqlmodel import Session

from app.aun.pki import certificates, issuers
from app.kernel import clock

LIVES = timedelta(days=1)  # clients look again after an hour at the latest


def pem(session: Session, tenant_id: str) -> str:
    """The list as it is now."""
    by, now = issuers.signer(session, tenant_id), clock.now()
    draft = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(by.certificate.subject)
        .last_update(now)
        .next_update(now + LIVES)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(by.key.public_key()), critical=False
        )
        .add_extension(x509.CRLNumber(int(now.timestamp() * 1000)), critical=False)
    )
    for row in certificates.revoked(session, tenant_id):
        draft = draft.add_revoked_certificate(
            x509.RevokedCertificateBuilder()
            .serial_number(int(row.serial, 16))
            .revocation_date(row.revoked_at or now)
            .build()
        )
    return draft.sign(by.key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()
