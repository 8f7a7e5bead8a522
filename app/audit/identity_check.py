"""People, agents and delegations have their entries, and the entries have their rows (SEC-78)."""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import exists, select
from sqlmodel import Session, col, func

from app.audit.models import AuditEntry
from app.audit.verify import Problem
from app.identity.models import Agent, Delegation, User, UserStatus
from app.kernel.i18n import N_

TABLES: dict[str, type[User | Agent | Delegation]] = {
    "user": User,
    "agent": Agent,
    "delegation": Delegation,
}


def check(session: Session, tenant_id: str) -> Iterator[Problem]:
    """What of one tenant's identity and its entries does not fit together."""
    for kind, table in TABLES.items():
        yield from _rows_without_entry(session, tenant_id, kind, table)
        yield from _entries_without_row(session, tenant_id, kind, table)
    yield from _other_status(session, tenant_id)


def _rows_without_entry(
    session: Session, tenant_id: str, kind: str, table: type[User | Agent | Delegation]
) -> Iterator[Problem]:
    entry = exists().where(
        col(AuditEntry.tenant_id) == tenant_id,
        col(AuditEntry.target_id) == col(table.id),
        col(AuditEntry.target_type) == kind,
    )
    query = select(col(table.id)).where(col(table.tenant_id) == tenant_id, ~entry)
    for id in session.scalars(query.order_by(col(table.id))):
        says = N_("The %(kind)s %(id)s stands in the database, and no entry tells of it.")
        yield Problem(None, says, {"kind": kind, "id": id})


def _entries_without_row(
    session: Session, tenant_id: str, kind: str, table: type[User | Agent | Delegation]
) -> Iterator[Problem]:
    row = exists().where(
        col(table.tenant_id) == tenant_id, col(table.id) == col(AuditEntry.target_id)
    )
    query = select(col(AuditEntry.seq), col(AuditEntry.target_id)).where(
        col(AuditEntry.tenant_id) == tenant_id,
        col(AuditEntry.command) == f"identity.{kind}.create",
        col(AuditEntry.outcome) == "done",
        col(AuditEntry.target_type) == kind,
        ~row,
    )
    for seq, id in session.execute(query.order_by(col(AuditEntry.seq))):
        says = N_("The entry tells of the %(kind)s %(id)s, which is not in the database.")
        yield Problem(seq, says, {"kind": kind, "id": id})


def _other_status(session: Session, tenant_id: str) -> Iterator[Problem]:
    """Whoever was disabled last is disabled, and nobody else is."""
    last = (
        select(col(AuditEntry.target_id).label("id"), func.max(AuditEntry.seq).label("seq"))
        .where(
            col(AuditEntry.tenant_id) == tenant_id,
            col(AuditEntry.command).in_(
                ["identity.user.create", "identity.user.disable", "identity.user.enable"]
            ),
            col(AuditEntry.outcome) == "done",
        )
        .group_by(col(AuditEntry.target_id))
        .subquery()
    )
    query = (
        select(
            col(User.id),
            col(User.status),
            col(AuditEntry.seq),
            col(AuditEntry.command),
            col(AuditEntry.changes),
        )
        .select_from(User)
        .outerjoin(last, last.c.id == col(User.id))
        .outerjoin(
            AuditEntry,
            (col(AuditEntry.tenant_id) == tenant_id) & (col(AuditEntry.seq) == last.c.seq),
        )
        .where(col(User.tenant_id) == tenant_id)
        .order_by(col(User.id))
    )
    for id, status, seq, command, changes in session.execute(query):
        was_disabled = command == "identity.user.disable" or _made_disabled(changes)
        if was_disabled != (status == UserStatus.DISABLED):
            says = N_("The account %(id)s is %(status)s, and the trail says otherwise.")
            yield Problem(seq, says, {"id": id, "status": status})


def _made_disabled(changes: list[dict[str, Any]] | None) -> bool:
    return any(
        change["field"] == "status" and change["after"] == UserStatus.DISABLED
        for change in changes or []
    )
