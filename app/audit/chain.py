"""The chain: what an entry's hash is taken of, and how it hangs on the one before (SEC-75)."""

import hashlib
from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from typing import Any

from app.audit.models import AuditEntry
from app.kernel import clock, json

GENESIS = "0" * 64  # `prev_hash` of a tenant's first entry
COLUMNS: tuple[str, ...] = tuple(AuditEntry.model_fields)
HASHED: tuple[str, ...] = tuple(name for name in COLUMNS if name not in {"prev_hash", "hash"})
TIMES = frozenset({"at", "approved_at"})
DOCUMENTS = frozenset({"input_redacted", "changes", "timings"})

_PREFIX = b"assent.audit.v1\n"


def link(previous: str, entry: Mapping[str, Any]) -> str:
    """The hash of one entry, given the hash of the one before it.

    `entry` holds every column of `HASHED`: nulls too, times as RFC 3339 texts, no floats.
    """
    body = _PREFIX + bytes.fromhex(previous) + json.dumps_sorted(entry)
    return hashlib.sha256(body).hexdigest()


def is_unchanged(entry: AuditEntry) -> bool:
    """Whether an entry's hash is that of what it says."""
    says = {name: plain(getattr(entry, name)) for name in HASHED}
    try:
        return link(entry.prev_hash, says) == entry.hash
    except (TypeError, ValueError):  # what was put there has no canonical form
        return False


def plain(value: Any) -> Any:
    """`value` as JSON that both databases give back exactly as it went in, and without floats."""
    if value is None or (type(value) is str and value.isascii() and "\0" not in value):
        return value  # most of them, quickly
    if type(value) is dict:
        return {text(key): plain(item) for key, item in value.items()}
    if type(value) is list:
        return [plain(item) for item in value]
    match value:
        case bool():
            return value
        case Enum():
            return plain(value.value)
        case str():
            return text(value)
        case int():
            return int(value) if abs(value) <= json.MAX_INTEGER else str(value)
        case float():
            return repr(value)
        case datetime():
            return clock.rfc3339(value)
        case Mapping():
            return {text(str(key)): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case set() | frozenset():
            return sorted((plain(item) for item in value), key=str)
    return text(str(value))


def text(value: str) -> str:
    """`value` with what no database or canonical form takes made visible: NUL, half characters."""
    if type(value) is str and value.isascii() and "\0" not in value:
        return value
    return str(value).replace("\x00", "\ufffd").encode("utf-8", "replace").decode()
