"""What the stages of one call share: the call, its command, its record, and what came of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from app.access.acting import Acting
from app.commands import expressions, numbers
from app.commands.approved import Consent
from app.commands.call import Call
from app.commands.changes import RowChange
from app.commands.definition import Operation
from app.commands.governed import GovernedRecord
from app.commands.outcome import Done, Preview, Undo
from app.commands.published import Published
from app.commands.records import Records, Snapshot
from app.commands.stored import StoredDefinition
from app.kernel import clock
from app.kernel.db import Work

R = TypeVar("R", bound=GovernedRecord)


def _nothing_follows(_call: Call, _outer: "Context") -> None:
    raise RuntimeError("only the pipeline runs what follows")


@dataclass(slots=True)
class Context:
    """One call on its way through the stages; a stage adds what the later ones need.

    Attributes:
        published: the version that runs, to the end of this call (`load`).
        acting: the user behind the call as the database knows them now (`authorize`).
        record: the target row, None before there is one; `before` are its columns as found.
        input: the typed input: the pack's model, or a plain mapping where there is none.
        values: the input by Python names without the target fields, for rules.
        replay: the first answer to a repeated call; it ends here.
        consent: the approval this call consumed, with what its person saw.
        outside: what will leave the house: kind, name, data.
        remarks: what the entry should say besides.
    """

    call: Call
    work: Work
    records: Records
    now: datetime = field(default_factory=clock.now)
    is_rehearsal: bool = False
    since: Snapshot | None = None
    _published: Published | None = None
    _command: StoredDefinition | None = None
    acting: Acting | None = None
    record: Any = None
    before: Mapping[str, Any] | None = None
    input: Any = None
    values: Mapping[str, Any] = field(default_factory=dict)
    replay: Done | None = None
    consent: Consent | None = None
    key_digest: str | None = None
    input_digest: str | None = None
    result: dict[str, Any] = field(default_factory=dict)
    changes: list[RowChange] = field(default_factory=list)
    outside: list[dict[str, Any]] = field(default_factory=list)
    is_complete: bool = True
    remarks: list[str] = field(default_factory=list)
    audit_seq: int = 0
    undo: Undo | None = None
    timings: dict[str, float] = field(default_factory=dict)
    follow: Callable[[Call, "Context"], None] = _nothing_follows
    _scope: expressions.Scope | None = None

    @property
    def published(self) -> Published:
        """The version that runs; there is one from `load` on."""
        if self._published is None:
            raise RuntimeError("no stage may ask for the command before it is loaded")
        return self._published

    @published.setter
    def published(self, version: Published) -> None:
        self._published, self._command = version, version.definition

    @property
    def is_loaded(self) -> bool:
        """Whether the command is known: a refusal before that has no version to name."""
        return self._published is not None

    @property
    def command(self) -> StoredDefinition:
        """The definition of the version that runs."""
        return self._command or self.published.definition

    @property
    def target_id(self) -> str | None:
        """The id of the record the call names."""
        named = self.call.input.get("targetRecordId")
        return named if isinstance(named, str) else None

    @property
    def user(self) -> Acting:
        """The user behind the call; there is one from `authorize` on."""
        if self.acting is None:
            raise RuntimeError("no stage may ask who acts before it is known")
        return self.acting

    def target(self, model: type[R]) -> R:
        """The target record, as the pack's own type."""
        if not isinstance(self.record, model):
            raise TypeError(f"the target of {self.call.code} is no {model.__name__}")
        return self.record

    def related(self, name: str) -> list[Any]:
        """The rows of a list that the record's type declares, as they stand in this transaction."""
        return expressions.related_rows(self, name)

    def number(self, name: str) -> str:
        """The next number of a sequence, as people read it: `EXP-2041`."""
        return numbers.take(self.work, self.call.principal.tenant_id, name)

    @property
    def is_dispatched(self) -> bool:
        """Whether the effect is outside, and still to come (CMD-27)."""
        return self.command.operation is Operation.EXTERNAL

    @property
    def scope(self) -> expressions.Scope:
        """What expressions may read: record, before, input, user, agent, tenant, now, related."""
        if self._scope is None:
            self._scope = expressions.Scope(self)
        return self._scope

    def took(self, stage: str, began: float) -> None:
        """Write down how long a stage took, in milliseconds; `began` is of the monotonic clock."""
        took = (clock.monotonic_s() - began) * 1_000
        self.timings[stage] = round(self.timings.get(stage, 0.0) + took, 3)

    def done(self, outcome: str = "done") -> Done:
        """What the caller is told."""
        return Done(
            call_id=self.call.call_id,
            code=self.command.code,
            version=self.published.version,
            outcome=outcome,
            result=self.result,
            record=record_facts(self.record),
            audit_seq=self.audit_seq,
            undo=self.undo,
            timings=self.timings,
        )

    def preview(self, digest: str) -> Preview:
        """What a rehearsal shows."""
        return Preview(
            code=self.command.code,
            version=self.published.version,
            changes=self.changes,
            outside=self.outside,
            result=self.result,
            is_complete=self.is_complete,
            digest=digest,
            timings=self.timings,
        )


def record_facts(record: GovernedRecord | None) -> dict[str, Any] | None:
    """Id, version and state of a record, for an answer."""
    if record is None:
        return None
    return {
        "id": record.id,
        "type": record.RECORD,
        "version": record.version,
        "state": record.state,
    }
