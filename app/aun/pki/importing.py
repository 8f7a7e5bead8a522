"""Another authority for a tenant: an operator's own root, with or without its key.

Whoever has a certificate keeps their key and gets another certificate; those of the authority
before stay readable by fingerprint.
"""

from dataclasses import dataclass

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import Encoding
from sqlmodel import col, select

from app.aun.models import Identity, IdentityStatus
from app.aun.pki import building, certificates, issuers, keys
from app.aun.pki.building import Signer
from app.aun.pki_models import Certificate, CertificateState, RootAuthority
from app.identity import facts
from app.kernel import clock, ids, sealing
from app.kernel.db import Work
from app.kernel.errors import FieldError, Invalid
from app.kernel.i18n import N_


@dataclass(frozen=True, slots=True)
class Authority:
    """What an operator brings: a root, and either its key or an issuer that it signed."""

    root: x509.Certificate
    root_key: keys.PrivateKey | None = None
    issuer: Signer | None = None


def take(work: Work, tenant_id: str, given: Authority) -> int:
    """Let a tenant's names be signed by it from now on; returns how many were signed anew.

    Raises:
        Invalid: it does not fit together, or cannot sign.
    """
    found = issuers.one(work.session, tenant_id)
    _check_root(given)
    root_id = _root(work, given)
    if given.issuer is not None:
        _check_issuer(given.root, given.issuer, found.domain)
        by = given.issuer
    elif given.root_key is not None:
        key = keys.generate()
        signer = Signer(given.root, given.root_key)
        by = Signer(building.issuer(signer, key.public_key(), found.domain), key)
    else:
        raise _refused("issuer", N_("Bring the key of the root, or an issuer that it signed."))
    issuers.put(work, found, root_id, by)
    facts.record(
        work,
        "identity.issuer.import",
        None,
        tenant_id=tenant_id,
        target=("issuer", found.domain),
        details={
            "root": building.fingerprint(given.root),
            "issuer": building.fingerprint(by.certificate),
        },
    )
    return _sign_anew(work, tenant_id)


def let_root_key_go(work: Work, tenant_id: str) -> bytes:
    """The key of a tenant's root as PEM; it is not kept here any longer.

    Raises:
        Invalid: it left before.
    """
    found = work.session.get(RootAuthority, issuers.one(work.session, tenant_id).root_id)
    if found is None or found.key_sealed is None:
        raise _refused("root", N_("The key of the root is not here any more."))
    key = keys.of_scalar(sealing.unseal(found.key_sealed, issuers.root_label(found.id)))
    found.key_sealed = None
    work.session.add(found)
    facts.record(
        work,
        "identity.issuer.export",
        None,
        tenant_id=tenant_id,
        target=("root", building.fingerprint(building.parsed(found.certificate))),
    )
    return keys.pem(key)


def _sign_anew(work: Work, tenant_id: str) -> int:
    query = (
        select(Certificate)
        .join(
            Identity,
            (col(Identity.tenant_id) == Certificate.tenant_id)
            & (col(Identity.aid) == Certificate.aid),
        )
        .where(
            Certificate.tenant_id == tenant_id,
            Certificate.state == CertificateState.ACTIVE,
            Identity.status != IdentityStatus.BLOCKED,
        )
    )
    rows = work.session.exec(query).all()
    for row in rows:
        certificates.issue(work, tenant_id, row.aid, certificates.public_key(row))
    return len(rows)


def _root(work: Work, given: Authority) -> str:
    der = given.root.public_bytes(Encoding.DER)
    query = select(RootAuthority).where(RootAuthority.certificate == der)
    row = work.session.exec(query).first() or RootAuthority(
        id=ids.ulid(), certificate=der, created_at=clock.now()
    )
    if given.root_key is not None:
        row.key_sealed = sealing.seal(keys.scalar(given.root_key), issuers.root_label(row.id))
    work.session.add(row)
    work.session.flush()
    return row.id


def _check_root(given: Authority) -> None:
    is_ours = given.root_key is None or given.root_key.public_key() == given.root.public_key()
    if not _is_authority(given.root) or not _is_signed_by(given.root, given.root) or not is_ours:
        raise _refused("root", N_("The root is not a self-signed P-256 authority with this key."))


def _check_issuer(root: x509.Certificate, issuer: Signer, domain: str) -> None:
    certificate = issuer.certificate
    fits = _is_authority(certificate) and _is_signed_by(certificate, root)
    if not fits or issuer.key.public_key() != certificate.public_key():
        says = N_("The issuer is not a P-256 authority with this key that the root signed.")
        raise _refused("issuer", says, domain=domain)


def _is_authority(certificate: x509.Certificate) -> bool:
    try:
        extensions = certificate.extensions
        limits = extensions.get_extension_for_class(x509.BasicConstraints).value
        usage = extensions.get_extension_for_class(x509.KeyUsage).value
        extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
        extensions.get_extension_for_class(x509.AuthorityKeyIdentifier)
        keys.of_spki(keys.spki(_key(certificate)))
    except (x509.ExtensionNotFound, ValueError):
        return False
    now = clock.now()
    is_valid = certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc
    return limits.ca and usage.key_cert_sign and usage.crl_sign and is_valid


def _key(certificate: x509.Certificate) -> keys.PublicKey:
    key = certificate.public_key()
    if not isinstance(key, keys.PublicKey):
        raise ValueError("not a P-256 key")  # noqa: TRY004 - what an operator brought
    return key


def _is_signed_by(certificate: x509.Certificate, by: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(by)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _refused(field: str, says: str, **more: str) -> Invalid:
    return Invalid(FieldError(field, says, more))
