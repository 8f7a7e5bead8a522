"""Governed rows have their entries, and the entries have their rows (SEC-78, CMD-19).

The trail is read once, in order: every version of a row was told by some entry. Then each table is
held against what the trail last said, and outbox rows and approvals against the calls they name.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import exists, select
from sqlmodel import Session, col

from app.audit.models import AuditEntry
from app.audit.verify import Problem
from app.commands import registry
from app.commands.approval_models import Approval, ApprovalState
from app.commands.outbox_models import OutboxEvent
from app.kernel.i18n import N_

AT_ONCE = 2_000  # entries in memory
WROTE = ("done", "dispatched")


@dataclass(slots=True)
class _Told:
    """What the trail says of governed rows: the last version of each, and at which entry."""

    versions: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    gone: dict[tuple[str, str], int] = field(default_factory=dict)


def check(session: Session, tenant_id: str) -> Iterator[Problem]:
    """What of one tenant's business rows and its entries does not fit together."""
    told = _Told()
    yield from _read_trail(session, tenant_id, told)
    for name in registry.record_types():
        yield from _held_against(session, tenant_id, name, told)
    yield from _untold_outbox(session, tenant_id)
    yield from _unspent_approvals(session, tenant_id)


def _read_trail(session: Session, tenant_id: str, told: _Told) -> Iterator[Problem]:
    query = (
        select(col(AuditEntry.seq), col(AuditEntry.changes))
        .where(
            col(AuditEntry.tenant_id) == tenant_id,
            col(AuditEntry.outcome).in_(WROTE),
            ~col(AuditEntry.command).startswith("identity."),
            col(AuditEntry.changes).is_not(None),
        )
        .order_by(col(AuditEntry.seq))
        .execution_options(yield_per=AT_ONCE)
    )
    for seq, changes in session.execute(query):
        for change in changes or ():
            if "record" in change:
                yield from _follow(told, seq, change)


def _follow(told: _Told, seq: int, change: dict[str, Any]) -> Iterator[Problem]:
    key, version = (change["record"], change["id"]), int(change["version"])
    before = told.versions.get(key, (0, 0))[0]
    if change["operation"] == "delete":
        told.versions.pop(key, None)
        told.gone[key] = seq
        return
    if version > before + 1:
        says = N_("Version %(version)s of %(record)s %(id)s has no entry.")
        facts = {"version": version - 1, "record": key[0], "id": key[1]}
        yield Problem(seq, says, facts)
    told.versions[key] = (max(version, before), seq)


def _held_against(session: Session, tenant_id: str, name: str, told: _Told) -> Iterator[Problem]:
    model = registry.record_type(name)
    seen: set[str] = set()
    query = (
        select(col(model.id), col(model.version))
        .where(col(model.tenant_id) == tenant_id)
        .execution_options(yield_per=AT_ONCE)
    )
    for id, version in session.execute(query):
        seen.add(id)
        known, seq = told.versions.get((name, id), (0, told.gone.get((name, id), 0)))
        if known != version:
            says = N_("%(record)s %(id)s stands at version %(version)s; the trail says %(known)s.")
            facts = {"record": name, "id": id, "version": version, "known": known}
            yield Problem(seq or None, says, facts)
    for (record, id), (_, seq) in told.versions.items():
        if record == name and id not in seen:
            says = N_("The entry tells of %(record)s %(id)s, which is not in the database.")
            yield Problem(seq, says, {"record": name, "id": id})


def _untold_outbox(session: Session, tenant_id: str) -> Iterator[Problem]:
    entry = exists().where(
        col(AuditEntry.tenant_id) == tenant_id,
        col(AuditEntry.seq) == col(OutboxEvent.seq),
        col(AuditEntry.call_id) == col(OutboxEvent.call_id),
        col(AuditEntry.outcome).in_(WROTE),
    )
    query = select(col(OutboxEvent.id), col(OutboxEvent.seq)).where(
        col(OutboxEvent.tenant_id) == tenant_id, ~entry
    )
    for id, seq in session.execute(query):
        says = N_("The event %(id)s waits to be told, and no call of the trail has it.")
        yield Problem(seq, says, {"id": id})


def _unspent_approvals(session: Session, tenant_id: str) -> Iterator[Problem]:
    entry = exists().where(
        col(AuditEntry.tenant_id) == tenant_id,
        col(AuditEntry.approval_id) == col(Approval.id),
        col(AuditEntry.call_id) == col(Approval.consumed_by_call),
        col(AuditEntry.outcome).in_(WROTE),
    )
    query = select(col(Approval.id)).where(
        col(Approval.tenant_id) == tenant_id,
        col(Approval.state) == ApprovalState.CONSUMED,
        ~entry,
    )
    for id in session.scalars(query):
        says = N_("The approval %(id)s is used up, and no call of the trail used it.")
        yield Problem(None, says, {"id": id})
