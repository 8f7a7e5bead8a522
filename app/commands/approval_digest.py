"""What a person assents to, in 64 hex digits (DESIGN, 7)."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.audit import redaction
from app.kernel import json


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """What a digest is taken of: an approval holds for this and nothing else.

    Attributes:
        agent_release_id: None for a person's own call.
        arguments: by the names of the wire, secrets as marks.
        targets: record id -> version.
    """

    tenant_id: str
    user_id: str
    agent_release_id: str | None
    code: str
    version: int
    arguments: Mapping[str, Any]
    targets: Mapping[str, int]

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical form: the order of keys is irrelevant, all else is not."""
        body = json.canonical(
            {
                "tenant": self.tenant_id,
                "user": self.user_id,
                "agentRelease": self.agent_release_id,
                "cmdCode": self.code,
                "version": self.version,
                "arguments": dict(self.arguments),
                "targets": dict(self.targets),
            }
        )
        return hashlib.sha256(b"assent.approval.v1\n" + body).hexdigest()


def ask_key(digest: str, *where: str | int | None) -> str:
    """What is asked for, and from where: asked twice, it is one question while it is open."""
    return hashlib.sha256(json.dumps([digest, *where])).hexdigest()


def masked(value: Any, secrets: Collection[str], key: bytes) -> Any:
    """`value` with a mark in the place of each secret field (`*` is any place of a list)."""
    for pointer in secrets:
        value = _masked(value, pointer.split("/"), key)
    return value


def same(left: Any, right: Any) -> bool:
    """Whether two values have the same canonical form: `100` and `1e2` do, `"100"` does not."""
    try:
        return json.canonical(left) == json.canonical(right)
    except ValueError:  # a part of one has no canonical form: then it is no other's equal
        return False


def _masked(value: Any, path: Sequence[str], key: bytes) -> Any:
    if not path:
        return None if value is None else redaction.mark(key, value)
    name, *rest = path
    if isinstance(value, list) and name == "*":
        return [_masked(each, rest, key) for each in value]
    if isinstance(value, dict) and name in value:
        return {**value, name: _masked(value[name], rest, key)}
    return value
