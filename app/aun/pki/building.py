"""What certificates of AUN look like: P-256, key identifiers in each, valid from five minutes ago.

Python ≥ 3.13 refuses a chain without key identifiers (aun.md, 4.1), so none is built without.
"""

import warnings
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import NameOID

from app.aun.pki.keys import PrivateKey, PublicKey
from app.kernel import clock

BACK = timedelta(minutes=5)  # clocks differ
ROOT_LIVES, ISSUER_LIVES = timedelta(days=20 * 365), timedelta(days=10 * 365)
LEAF_LIVES = timedelta(days=365)
USUAL_NAME = 64  # characters

# what cryptography says of longer names, here and in every parser of such a certificate
warnings.filterwarnings("ignore", message="Attribute's length must be")


@dataclass(frozen=True, slots=True)
class Signer:
    """A certificate authority: what it is called, and the key it signs with."""

    certificate: x509.Certificate
    key: PrivateKey


def root(key: PrivateKey, name: str) -> x509.Certificate:
    """A root, signed by itself."""
    draft = _draft(name, key.public_key(), ROOT_LIVES).issuer_name(_named(name))
    return _of_authority(draft, key.public_key(), None).sign(key, hashes.SHA256())


def issuer(by: Signer, public_key: PublicKey, domain: str) -> x509.Certificate:
    """The authority of one issuer domain; it signs leaves, and nothing else that signs."""
    draft = _signed_by(by, _draft(domain, public_key, ISSUER_LIVES, by))
    return _of_authority(draft, by.key.public_key(), 0).sign(by.key, hashes.SHA256())


def leaf(by: Signer, public_key: PublicKey, name: str) -> x509.Certificate:
    """The certificate of an AID, or of a gateway; its only common name is `name`."""
    draft = _signed_by(by, _draft(name, public_key, LEAF_LIVES, by))
    return (
        draft.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(_authority(by.key.public_key()), critical=False)
        .sign(by.key, hashes.SHA256())
    )


@lru_cache(maxsize=4_096)
def parsed(der: bytes) -> x509.Certificate:
    """The certificate of a row's DER."""
    return x509.load_der_x509_certificate(der)


def fingerprint(certificate: x509.Certificate) -> str:
    """The SHA-256 of its DER, in hex."""
    return certificate.fingerprint(hashes.SHA256()).hex()


def serial(certificate: x509.Certificate) -> str:
    """Its serial number as AUN writes it: hex, lower case, no zero in front."""
    return format(certificate.serial_number, "x")


def _of_authority(
    draft: x509.CertificateBuilder, by: PublicKey, path_length: int | None
) -> x509.CertificateBuilder:
    return (
        draft.add_extension(x509.BasicConstraints(ca=True, path_length=path_length), critical=True)
        .add_extension(_usage(certifies=True, signs=True), critical=True)  # OCSP answers, too
        .add_extension(_authority(by), critical=False)
    )


def _draft(
    name: str, public_key: PublicKey, lives: timedelta, by: Signer | None = None
) -> x509.CertificateBuilder:
    now = clock.now()
    return (
        x509.CertificateBuilder()
        .subject_name(_named(name))
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACK)
        .not_valid_after(_end(now + lives, by))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
    )


def _end(wanted: datetime, by: Signer | None) -> datetime:
    return min(wanted, by.certificate.not_valid_after_utc) if by else wanted


def _signed_by(by: Signer, draft: x509.CertificateBuilder) -> x509.CertificateBuilder:
    return draft.issuer_name(by.certificate.subject)


def _authority(public_key: PublicKey) -> x509.AuthorityKeyIdentifier:
    return x509.AuthorityKeyIdentifier.from_issuer_public_key(public_key)


def _named(name: str) -> x509.Name:
    # X.520 ends a common name at 64 characters, an AID may have more: it stands there whole
    is_usual = len(name) <= USUAL_NAME
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name, _validate=is_usual)])


def _usage(*, certifies: bool = False, signs: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=signs,
        key_cert_sign=certifies,
        crl_sign=certifies,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
