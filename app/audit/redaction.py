"""What must not be read again is replaced before an entry exists (SEC-77, SEC-53, CMD-20)."""

import hashlib
import hmac
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from app.audit import chain
from app.kernel import json, keyring
from app.kernel.db import Work

LIMIT = 64 * 1024  # bytes of input that an entry keeps
HEAD = 4 * 1024  # bytes it keeps of more


@dataclass(frozen=True, slots=True)
class Kept:
    """An input as an entry keeps it, and the digest by which another can be compared."""

    digest: str
    stored: dict[str, Any]


def redact(
    work: Work, tenant_id: str, value: Mapping[str, Any], secrets: Collection[str] = ()
) -> Kept:
    """`value` as the trail of a tenant may keep it.

    `secrets` are the names of secret fields, nested ones joined by `/`; in a list, `*` stands for
    any place. Not a character of theirs is kept, only an HMAC under the tenant's redaction key.
    """
    stored: Any = chain.plain(value)
    if secrets:
        key = keyring.held(work, f"redaction:{tenant_id}")[0]
        for pointer in secrets:
            stored = _without(stored, pointer.strip("/").split("/"), key)
    return _cut(stored)


def mark(key: bytes, value: Any) -> dict[str, Any]:
    """What stands in the place of a secret: it can be compared, not read."""
    raw = value.encode() if isinstance(value, str) else json.dumps_sorted(chain.plain(value))
    return {
        "redacted": True,
        "hmac_sha256": hmac.new(key, raw, hashlib.sha256).hexdigest(),
        "length": len(value) if isinstance(value, str) else len(raw),
    }


def _without(value: Any, path: list[str], key: bytes) -> Any:
    if not path:
        return mark(key, value)
    name, *rest = path
    if isinstance(value, list):
        chosen = range(len(value)) if name == "*" else [int(name)] if name.isdigit() else []
        return [
            _without(item, rest, key) if place in chosen else item
            for place, item in enumerate(value)
        ]
    if isinstance(value, dict) and name in value:
        return {**value, name: _without(value[name], rest, key)}
    return value


def _cut(value: dict[str, Any]) -> Kept:
    raw = json.dumps_sorted(value)
    digest = hashlib.sha256(raw).hexdigest()
    if len(raw) <= LIMIT:
        return Kept(digest, value)
    head = raw[:HEAD].decode("utf-8", "ignore")
    return Kept(digest, {"cut": True, "sha256": digest, "size": len(raw), "head": head})
