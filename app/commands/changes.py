"""What a call changes: rows, field by field, and the digest by which two such sets are compared."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import rfc8785

from app.audit import chain


@dataclass(frozen=True, slots=True)
class RowChange:
    """One governed row before and after.

    Attributes:
        fields: column -> (before, after); of a new or deleted row all that say something.
        automatic: columns whose value differs each time (times, ids, numbers).
        rolled_up: columns that are sums; what counts is how much they change.
    """

    record: str
    id: str
    label: str
    operation: Literal["create", "update", "delete"]
    version: int
    fields: Mapping[str, tuple[Any, Any]]
    automatic: frozenset[str] = frozenset()
    rolled_up: frozenset[str] = frozenset()

    def data(self) -> dict[str, Any]:
        """As the trail, an approval and the wire hold it."""
        return {
            "record": self.record,
            "id": self.id,
            "label": chain.plain(self.label),
            "operation": self.operation,
            "version": self.version,
            "fields": {
                name: [chain.plain(before), chain.plain(after)]
                for name, (before, after) in self.fields.items()
            },
            **({"automatic": sorted(self.automatic)} if self.automatic else {}),
            **({"rolledUp": sorted(self.rolled_up)} if self.rolled_up else {}),
        }


def digest(changes: Sequence[RowChange], outside: Sequence[Mapping[str, Any]]) -> str:
    """SHA-256 of what a call changes and what it would send outside (CMD-16).

    Automatic values are left aside, ids of rows made here are replaced by their place, and a sum
    counts by its change: so the same effect has the same digest whenever it is computed.
    """
    made = {
        change.id: f"new:{change.record}:{place}"
        for place, change in enumerate(each for each in changes if each.operation == "create")
    }
    body = {
        "changes": sorted(
            (_normal(change, made) for change in changes),
            key=lambda each: (each["record"], each["id"], each["operation"]),
        ),
        "outside": [_renamed(chain.plain(dict(each)), made) for each in outside],
    }
    return hashlib.sha256(b"assent.preview.v1\n" + rfc8785.dumps(body)).hexdigest()


def _normal(change: RowChange, made: Mapping[str, str]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, (before, after) in change.fields.items():
        if name in change.automatic:
            continue
        if name in change.rolled_up:
            fields[name] = {"by": (after or 0) - (before or 0)}
        else:
            fields[name] = _renamed([chain.plain(before), chain.plain(after)], made)
    return {
        "record": change.record,
        "id": made.get(change.id, change.id),
        "operation": change.operation,
        "fields": fields,
    }


def _renamed(value: Any, made: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return made.get(value, value)
    if isinstance(value, list):
        return [_renamed(each, made) for each in value]
    if isinstance(value, dict):
        return {name: _renamed(each, made) for name, each in value.items()}
    return value
