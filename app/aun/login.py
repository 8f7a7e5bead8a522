"""How an outside AID proves that it has its key: a nonce from us, a signature from it.

A nonce counts once, for a minute, for the AID and the certificate it was made for.
"""

from datetime import timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from sqlalchemy import delete
from sqlmodel import Session, col

from app.aun import queries
from app.aun.errors import LoginFailed, NotAdmitted
from app.aun.models import IdentityKind, IdentityStatus
from app.aun.pki import certificates, keys
from app.aun.pki_models import Certificate, CertificateState, LoginChallenge
from app.identity.models import Tenant, TenantStatus
from app.kernel import clock, ids
from app.kernel.db import Work

LIVES = timedelta(seconds=60)
FIRST, SECOND = "aid_login1_failed", "aid_login2_failed"


def begin(work: Work, tenant_id: str, aid: str, pem: str) -> LoginChallenge:
    """What the holder of a certificate of ours has to sign.

    Raises:
        LoginFailed: it is none that this issuer gave this AID, or it is revoked.
        NotAdmitted: the AID is shut out.
    """
    check_admitted(work.session, tenant_id, aid)
    shown = _shown(work.session, tenant_id, aid, pem)
    now = clock.now()
    work.session.execute(delete(LoginChallenge).where(col(LoginChallenge.expires_at) < now))
    made = LoginChallenge(
        tenant_id=tenant_id,
        id=ids.ulid(),
        aid=aid,
        serial=shown.serial,
        nonce=ids.random_token(),
        expires_at=now + LIVES,
    )
    work.session.add(made)
    return made


def finish(
    work: Work, tenant_id: str, aid: str, request_id: str, nonce: str, signed: str, signature: str
) -> Certificate:
    """The certificate that was proved by a signature over `signed`, which contains the nonce.

    Raises:
        LoginFailed: the nonce is not of this request and AID, used or too old, or the signature
            is not by the key of the certificate.
        NotAdmitted: the AID was shut out meanwhile.
    """
    check_admitted(work.session, tenant_id, aid)
    found = work.session.get(LoginChallenge, (tenant_id, request_id))
    is_fitting = found is not None and (found.aid, found.nonce) == (aid, nonce)
    if found is None or not is_fitting or found.expires_at < clock.now() or not _take(work, found):
        raise LoginFailed(f"{SECOND}: unknown or expired nonce")
    row = certificates.by_serial(work.session, tenant_id, found.serial)
    if row is None or row.state == CertificateState.REVOKED:
        raise LoginFailed(f"{SECOND}: certificate is revoked")
    if not keys.verifies(certificates.public_key(row), signature, signed):
        raise LoginFailed(f"{SECOND}: bad signature")
    return row


def check_admitted(session: Session, tenant_id: str, aid: str) -> None:
    """Go on only for an outside AID that may log in.

    Raises:
        LoginFailed: it is none, or its tenant is not active.
        NotAdmitted: it is shut out.
    """
    found = queries.identity(session, tenant_id, aid)
    tenant = session.get(Tenant, tenant_id)
    is_active = tenant is not None and tenant.status == TenantStatus.ACTIVE
    if found is None or found.kind != IdentityKind.OUTSIDE or not is_active:
        raise LoginFailed(f"{FIRST}: unknown aid")
    if found.status != IdentityStatus.ACTIVE:
        raise NotAdmitted("aid is blocked", retryable=False)


def _shown(session: Session, tenant_id: str, aid: str, pem: str) -> Certificate:
    try:
        shown = x509.load_pem_x509_certificate(pem.encode())
    except ValueError as fault:
        raise LoginFailed(f"{FIRST}: not a certificate") from fault
    fingerprint = shown.fingerprint(hashes.SHA256()).hex()
    row = certificates.by_fingerprint(session, tenant_id, aid, fingerprint)
    if row is None:
        raise LoginFailed(f"{FIRST}: certificate is not of this issuer and aid")
    if row.state == CertificateState.REVOKED:
        raise LoginFailed(f"{FIRST}: certificate is revoked")
    return row


def _take(work: Work, found: LoginChallenge) -> bool:
    taken = work.session.execute(
        delete(LoginChallenge).where(
            col(LoginChallenge.tenant_id) == found.tenant_id, col(LoginChallenge.id) == found.id
        )
    )
    return bool(taken.rowcount == 1)  # type: ignore[attr-defined]
