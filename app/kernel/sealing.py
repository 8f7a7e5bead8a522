"""Secrets at rest: sealed with AES-256-GCM under the master key, bound to what they are for."""

import base64
import os
import secrets
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from app.kernel import ids
from app.kernel.settings import Settings

KEY_BYTES = 32
NONCE_BYTES = 12
FILE = "master.key"

_cipher: AESGCM | None = None


class MasterKeyProblem(Exception):
    """The master key cannot be used; the message says what to do, and never the key."""


class CannotUnseal(Exception):
    """Sealed under another key, for another purpose, or changed since."""


def open_with(settings: Settings) -> None:
    """Take the master key of this deployment; made on first start (SEC-80).

    Raises:
        MasterKeyProblem: it is malformed, or its file can be read by others.
    """
    global _cipher
    _cipher = AESGCM(_master_key(settings))


def new_key() -> bytes:
    """A fresh 256-bit key."""
    return secrets.token_bytes(KEY_BYTES)


def seal(plain: bytes, purpose: str) -> bytes:
    """`plain` sealed for `purpose` (`signing_key:<kid>`), which is needed to unseal it."""
    nonce = secrets.token_bytes(NONCE_BYTES)
    return nonce + _opened().encrypt(nonce, plain, purpose.encode())


def unseal(sealed: bytes, purpose: str) -> bytes:
    """What was sealed for `purpose`.

    Raises:
        CannotUnseal: it was not, or not under this master key.
    """
    try:
        return _opened().decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], purpose.encode())
    except InvalidTag as fault:
        raise CannotUnseal(purpose) from fault


def _opened() -> AESGCM:
    if _cipher is None:
        raise RuntimeError("the master key is not loaded")
    return _cipher


def _master_key(settings: Settings) -> bytes:
    if settings.master_key is not None:
        return _decoded(settings.master_key.get_secret_value(), "ASSENT_MASTER_KEY")
    path = settings.data_dir / FILE
    if not path.exists():
        _create(path)
    if path.stat().st_mode & 0o077:
        raise MasterKeyProblem(f"{path} can be read by others: chmod 600 it")
    return _decoded(path.read_text("ascii"), str(path))


def _create(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = base64.urlsafe_b64encode(new_key())
    temporary = path.with_suffix(f".{ids.random_token()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(temporary, path)  # the first of two processes wins, whole
    except FileExistsError:
        pass
    finally:
        temporary.unlink()


def _decoded(text: str, where: str) -> bytes:
    try:
        key = base64.urlsafe_b64decode(text.strip())
    except ValueError as fault:
        raise MasterKeyProblem(f"{where} is not base64url") from fault
    if len(key) != KEY_BYTES:
        raise MasterKeyProblem(f"{where} has {len(key)} bytes, {KEY_BYTES} are needed")
    return key
