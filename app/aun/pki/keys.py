"""P-256 keys: made, stored as their scalar, told by their public part, used to sign and verify."""

import base64
import binascii
import hashlib
from typing import TypeAlias

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_der_public_key,
)

PrivateKey: TypeAlias = ec.EllipticCurvePrivateKey
PublicKey: TypeAlias = ec.EllipticCurvePublicKey
ECDSA = ec.ECDSA(hashes.SHA256())
SCALAR_BYTES = 32
SHORT = 16  # hex characters of the short fingerprint, which envelopes carry


def generate() -> PrivateKey:
    """A new key."""
    return ec.generate_private_key(ec.SECP256R1())


def scalar(key: PrivateKey) -> bytes:
    """What a private key is stored as, sealed."""
    return key.private_numbers().private_value.to_bytes(SCALAR_BYTES, "big")


def of_scalar(number: bytes) -> PrivateKey:
    """The private key of a scalar."""
    return ec.derive_private_key(int.from_bytes(number, "big"), ec.SECP256R1())


def spki(key: PublicKey) -> bytes:
    """The DER of the SubjectPublicKeyInfo, which is how AUN writes a public key."""
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def of_spki(der: bytes) -> PublicKey:
    """The P-256 key of a SubjectPublicKeyInfo.

    Raises:
        ValueError: it is none, or not in the one form DER has for it.
    """
    key = load_der_public_key(der)
    if not isinstance(key, PublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise ValueError("not a P-256 key")  # noqa: TRY004 - a parameter, not a bug
    if spki(key) != der:
        raise ValueError("not the DER of an uncompressed key")
    return key


def of_base64(text: str) -> PublicKey:
    """The P-256 key a parameter holds: base64 of its SubjectPublicKeyInfo.

    Raises:
        ValueError: it is none.
    """
    try:
        return of_spki(base64.b64decode(text, validate=True))
    except (binascii.Error, TypeError) as fault:
        raise ValueError("not base64 of a P-256 key") from fault


def short_fingerprint(public_key: bytes) -> str:
    """The first 16 hex digits of the SHA-256 of a SubjectPublicKeyInfo."""
    return hashlib.sha256(public_key).hexdigest()[:SHORT]


def sign(key: PrivateKey, data: str) -> str:
    """ECDSA over UTF-8, DER in base64."""
    return base64.b64encode(key.sign(data.encode(), ECDSA)).decode()


def verifies(key: PublicKey, signature: str, data: str) -> bool:
    """Whether `signature` (DER in base64) over `data` was made with the private part of `key`."""
    try:
        key.verify(base64.b64decode(signature, validate=True), data.encode(), ECDSA)
    except (InvalidSignature, binascii.Error, ValueError):
        return False
    return True


def pem(key: PrivateKey) -> bytes:
    """A private key as PKCS #8, for those who may have it."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
