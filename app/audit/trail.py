"""The trail: one chained entry for each fact, in the commit of what it tells (CMD-17, SEC-75)."""

from dataclasses import dataclass, field, fields
from datetime import datetime
from operator import attrgetter
from typing import Any

from app.audit import chain
from app.kernel import clock
from app.kernel.db import Work
from app.kernel.events import Event
from app.kernel.prepared import AtOnce, Locking, Prepared

_HEAD = Locking("SELECT seq, hash FROM audit_head WHERE tenant_id = :tenant_id")
_OPEN = Prepared(
    f"INSERT INTO audit_head (tenant_id, seq, hash) VALUES (:tenant_id, 0, '{chain.GENESIS}') "  # noqa: S608 - a constant
    "ON CONFLICT (tenant_id) DO NOTHING"
)
_INSERT = AtOnce(
    f"INSERT INTO audit_entry ({', '.join(chain.COLUMNS)}) "  # noqa: S608 - names of our columns
    f"VALUES ({', '.join(':' + name for name in chain.COLUMNS)})",
    "UPDATE audit_head SET seq = :seq, hash = :hash WHERE tenant_id = :tenant_id",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEntry:
    """What an entry will say: the columns of `AuditEntry` that the chain does not fill in.

    Attributes:
        is_plain: its documents are as `chain.plain` makes them, so that nobody has to look again.
    """

    tenant_id: str
    call_id: str
    command: str
    outcome: str
    channel: str
    at: datetime = field(default_factory=clock.now)
    parent_call_id: str | None = None
    version: int | None = None
    risk: str | None = None
    idempotent: bool | None = None
    reversible: bool | None = None
    stage: str | None = None
    reason: str | None = None
    user_id: str | None = None
    org_id: str | None = None
    agent_id: str | None = None
    agent_release: str | None = None
    model: str | None = None
    model_version: str | None = None
    session_id: str | None = None
    conversation_id: str | None = None
    run_id: str | None = None
    turn: int | None = None
    prompt_digest: str | None = None
    prompt_ref: str | None = None
    approval_id: str | None = None
    approved_by: str | None = None
    approved_at: datetime | None = None
    brief: str | None = None
    idempotency_key_digest: str | None = None
    input_digest: str | None = None
    input_redacted: dict[str, Any] | None = None
    target_type: str | None = None
    target_id: str | None = None
    changes: list[dict[str, Any]] | None = None
    timings: dict[str, Any] | None = None
    trace_id: str | None = None
    is_plain: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended(Event):
    """An entry stands in the trail."""

    seq: int
    command: str
    outcome: str
    target_type: str | None
    target_id: str | None


_FIELDS = tuple(each.name for each in fields(NewEntry) if each.name != "is_plain")
_VALUES = attrgetter(*_FIELDS)


def append(work: Work, entry: NewEntry) -> int:
    """Write one entry in this transaction; returns its number.

    Other writers of the tenant's trail wait until this unit is over: numbers have no gap and stand
    in the order of commits.
    """
    seq, previous = _take(work, entry.tenant_id)
    as_they_are = chain.DOCUMENTS if entry.is_plain else frozenset[str]()
    row: dict[str, Any] = {
        name: value if value is None or name in as_they_are else chain.plain(value)
        for name, value in zip(_FIELDS, _VALUES(entry), strict=True)
    }
    row["seq"] = seq
    made = chain.link(previous, row)
    _INSERT.run_with(
        work.connection,
        {
            **row,
            "at": entry.at,
            "approved_at": entry.approved_at,
            "prev_hash": previous,
            "hash": made,
        },
    )
    work.announce(
        Appended(
            tenant_id=entry.tenant_id,
            seq=seq,
            command=entry.command,
            outcome=entry.outcome,
            target_type=entry.target_type,
            target_id=entry.target_id,
        )
    )
    return seq


def open_chain(work: Work, tenant_id: str) -> None:
    """Give a tenant its empty chain; harmless when it has one, or gets one elsewhere just now."""
    work.session.flush()  # the tenant may be as new as its trail
    _OPEN.run(work.connection, tenant_id=tenant_id)


def _take(work: Work, tenant_id: str) -> tuple[int, str]:
    head = _HEAD.run(work.connection, tenant_id=tenant_id).first()
    if head is None:
        open_chain(work, tenant_id)
        head = _HEAD.run(work.connection, tenant_id=tenant_id).one()
    return head.seq + 1, head.hash
