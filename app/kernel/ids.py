"""The one maker of ids, secrets and their digests."""

import hashlib
import os
import secrets
import threading

from app.kernel import clock

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = tuple(first + second for first in _CROCKFORD for second in _CROCKFORD)
_RANDOM_BITS = 80
_DRAWN = 4_000  # random bytes at once: to ask the system lets go of the interpreter each time
_lock = threading.Lock()
_last = 0
_random = b""


def ulid() -> str:
    """A new ULID: 26 characters, sortable by time, growing inside this process even in one ms."""
    global _last, _random
    moment = int(clock.now().timestamp() * 1000) << _RANDOM_BITS
    with _lock:
        if not _random:
            _random = secrets.token_bytes(_DRAWN)
        drawn, _random = _random[:10], _random[10:]
        made = moment | int.from_bytes(drawn)
        _last = made = max(made, _last + 1) if _same_moment(made, _last) else made
    return _encode(made)


def _forget_drawn() -> None:
    global _random
    _random = b""  # or a forked process would draw the same


os.register_at_fork(after_in_child=_forget_drawn)


def is_ulid(text: str) -> bool:
    """Whether `text` has the form of an id made here."""
    return len(text) == 26 and text[0] in "01234567" and all(c in _CROCKFORD for c in text)


def random_token() -> str:
    """256 random bits, base64url, 43 characters."""
    return secrets.token_urlsafe(32)


def secret(tenant_id: str) -> str:
    """A bearer secret that names its tenant: `<tenant id>.<256 random bits>` (SEC-5)."""
    return f"{tenant_id}.{random_token()}"


def tenant_of(secret: str) -> str | None:
    """The tenant a secret claims to be of, or None where it has not the form of `secret`."""
    tenant_id, dot, rest = secret.partition(".")
    return tenant_id if dot and len(rest) == 43 and is_ulid(tenant_id) else None


def sha256(text: str) -> str:
    """Hex SHA-256 of `text`: how a secret is stored and looked up."""
    return hashlib.sha256(text.encode()).hexdigest()


def _same_moment(left: int, right: int) -> bool:
    return left >> _RANDOM_BITS == right >> _RANDOM_BITS


def _encode(number: int) -> str:
    return "".join([_PAIRS[number >> bits & 1023] for bits in range(120, -1, -10)])
