"""The ways a turn, a call and a run can end: types, taken apart with `match`."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

from app.kernel import clock, json
from app.kernel.db import Work
from app.runs.states import CallState, WaitKind

SILENT = "[[silent]]"  # a closing text that is exactly this
WAITING_FOR = "waiting_for"  # in the result of a call that waits, or ends the round
RESULT_LIMIT = 16_000  # characters of one result the model gets to see; the record keeps all


@dataclass(frozen=True, slots=True)
class Reply:
    """The model's closing text, None for silence: finished, and nothing to say (RUN-45)."""

    text: str | None


SILENCE = Reply(None)


def reply_of(text: str) -> Reply:
    """What a closing text says; nothing, or the one word for it, is silence."""
    said = text.strip()
    return SILENCE if said in ("", SILENT) else Reply(said)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedCall:
    """A call of a stored response: `id` is ours, `arguments` the raw text of the model."""

    id: str
    provider_id: str
    tool: str
    arguments: str
    ordinal: int
    turn: int


@dataclass(frozen=True, slots=True)
class Tools:
    """A batch of calls, in the model's order."""

    calls: tuple[ProposedCall, ...]


@dataclass(frozen=True, slots=True)
class Complete:
    """The run is over; `reply` goes out with its final state, in one transaction."""

    reply: Reply
    reason: str | None = None  # `last_step`


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspended:
    """The run waits.

    Attributes:
        call_id: of the tool call that waits, None for a pause.
        ref: approval, child run or pipeline call.
        is_open: the batch stays open: that very call is finished later (RUN-92).
        result: of a closed wait: what its call answers at once.
    """

    kind: WaitKind
    call_id: str | None = None
    ref: str | None = None
    due_at: datetime | None = None
    expects: Mapping[str, Any] | None = None
    is_open: bool = False
    result: Mapping[str, Any] | None = None

    state = CallState.WAITING

    def waiting(self) -> dict[str, Any]:
        """What the call of a closed wait answers at once, and by which it is found again."""
        told = {
            "outcome": "done",
            **(self.result or {}),
            WAITING_FOR: self.kind.value,
            "ref": self.ref,
            "due_at": clock.rfc3339(self.due_at) if self.due_at else None,
            "expects": dict(self.expects) if self.expects else None,
        }
        return {name: value for name, value in told.items() if value is not None}

    def for_model(self, limit: int = RESULT_LIMIT) -> str | None:
        """What the model reads at once; None while the batch is open."""
        return None if self.is_open else shortened(self.waiting(), limit)


class Told(ABC):
    """One result of one call: what the record keeps whole, and the model sees shortened."""

    __slots__ = ()
    state: ClassVar[CallState]

    @abstractmethod
    def data(self) -> dict[str, Any]:
        """The result as JSON, with its `outcome` (RUN-87)."""

    def for_model(self, limit: int = RESULT_LIMIT) -> str:
        """The same as text, its middle cut out where it is too long."""
        return shortened(self.data(), limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Done(Told):
    """It ran: `{"outcome": "done", "result", "record", "undo"}`.

    Attributes:
        facts: what else the record keeps: `audit_seq`, `timings`, `version`.
    """

    result: Any = None
    record: Mapping[str, Any] | None = None
    undo: Mapping[str, Any] | None = None
    more: Mapping[str, Any] = field(
        default_factory=dict
    )  # beside them, for the model: `changed_by`
    facts: Mapping[str, Any] = field(default_factory=dict)
    state = CallState.DONE

    def data(self) -> dict[str, Any]:
        """As the model and the record have it."""
        told: dict[str, Any] = {"outcome": "done", "result": self.result}
        if self.record is not None:
            told["record"] = dict(self.record)
        if self.undo is not None:
            told["undo"] = dict(self.undo)
        return told | dict(self.more)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused(Told):
    """A stage or a tool said no; the batch goes on (RUN-39)."""

    reason: str
    stage: str | None = None
    advice: str | None = None
    detail: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    diagnostic: str = ""  # the hidden cause, for the private record alone
    state = CallState.FAILED

    def data(self) -> dict[str, Any]:
        """As the model and the record have it."""
        told = {
            "outcome": "refused",
            "stage": self.stage,
            "reason": self.reason,
            "advice": self.advice,
            "detail": self.detail,
        }
        return {name: value for name, value in told.items() if value} | dict(self.facts)


@dataclass(frozen=True, slots=True)
class Denied(Told):
    """A person said no, word for word."""

    by: str
    reason: str
    state = CallState.DENIED

    def data(self) -> dict[str, Any]:
        """As the model and the record have it."""
        return {"outcome": "denied", "by": self.by, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class Expired(Told):
    """Nobody decided in time."""

    state = CallState.EXPIRED

    def data(self) -> dict[str, Any]:
        """As the model and the record have it."""
        return {"outcome": "expired"}


@dataclass(frozen=True, slots=True)
class NotStarted(Told):
    """A flaw, a stop, a withdrawal, the breaker or a budget came first."""

    reason: str
    state = CallState.NOT_STARTED

    def data(self) -> dict[str, Any]:
        """As the model and the record have it."""
        return {"outcome": "not_started", "reason": self.reason}


@dataclass(frozen=True, slots=True)
class Interrupted(Told):
    """Cut off, and it is proven that nothing happened."""

    state = CallState.INTERRUPTED

    def data(self) -> dict[str, Any]:
        """As the model and the record have it."""
        return {"outcome": "interrupted", "took_effect": False}


@dataclass(frozen=True, slots=True)
class Unknown(Told):
    """Cut off, and nobody knows whether it happened; the run ends."""

    state = CallState.UNKNOWN
    diagnostic: str = ""

    def data(self) -> dict[str, Any]:
        """As the model and the record have it."""
        return {"outcome": "unknown"}


Result = Done | Refused | Denied | Expired | NotStarted | Interrupted | Unknown


@dataclass(frozen=True, slots=True)
class InCommit:
    """A local effect that is made in the commit of the call's record (RUN-95).

    `unit` may raise an `AppError`: then the call is refused, and nothing of it stays.
    """

    unit: Callable[[Work], "Result | Suspended"]


def digest(data: Mapping[str, Any]) -> str:
    """SHA-256 of a result, hex: the same for what a database gives back of it."""
    stored = json.of_column(json.dumps(data).decode())
    return hashlib.sha256(json.dumps_sorted(stored)).hexdigest()


def shortened(data: Mapping[str, Any], limit: int) -> str:
    """A result as JSON text of at most `limit` characters: head and tail, the cut marked."""
    text = json.dumps(data).decode()
    if len(text) <= limit:
        return text
    half = limit // 2
    cut = len(text) - 2 * half
    outcome = data.get("outcome")
    shown = {"outcome": outcome, "cut": cut, "head": text[:half], "tail": text[-half:]}
    return json.dumps(shown).decode()
