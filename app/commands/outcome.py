"""The ways a call can end well, and what a rehearsal shows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.commands.changes import RowChange


@dataclass(frozen=True, slots=True, kw_only=True)
class Undo:
    """The command that takes a call back, with its input filled in."""

    code: str
    input: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """It was done: committed, with its entry.

    Attributes:
        outcome: `done`; `replayed` for the repeat of a keyed call; `dispatched` where the effect is
            outside and still to come (CMD-27).
        record: id, version and state of the target afterwards, None where there is none.
        timings: milliseconds of every stage, by its name.
    """

    call_id: str
    code: str
    version: int
    outcome: str
    result: Mapping[str, Any]
    record: Mapping[str, Any] | None
    audit_seq: int
    undo: Undo | None
    timings: Mapping[str, float] = field(default_factory=dict)

    def data(self) -> dict[str, Any]:
        """The answer on the wire (commands.md, 4)."""
        return {
            "callId": self.call_id,
            "cmdCode": self.code,
            "version": self.version,
            "outcome": self.outcome,
            "result": dict(self.result),
            "record": dict(self.record) if self.record else None,
            "auditSeq": self.audit_seq,
            "undo": {"cmdCode": self.undo.code, "input": dict(self.undo.input)}
            if self.undo
            else None,
            "timings": dict(self.timings),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a call would do; nothing of it stays (CMD-16).

    Attributes:
        outside: what would be sent out of the house: kind, name and data.
        is_complete: False where a handler could not be run for a rehearsal.
        digest: SHA-256 by which what runs later is compared.
    """

    code: str
    version: int
    changes: Sequence[RowChange]
    outside: Sequence[Mapping[str, Any]]
    result: Mapping[str, Any]
    is_complete: bool
    digest: str
    timings: Mapping[str, float] = field(default_factory=dict)

    def data(self) -> dict[str, Any]:
        """The answer on the wire."""
        return {
            "cmdCode": self.code,
            "version": self.version,
            "outcome": "preview",
            "changes": [change.data() for change in self.changes],
            "outside": [dict(each) for each in self.outside],
            "result": dict(self.result),
            "complete": self.is_complete,
            "digest": self.digest,
            "timings": dict(self.timings),
        }
