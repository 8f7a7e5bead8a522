"""Who may decide an approval, and who may see one (CMD-12): as a question, and as a filter.

Without an approvers rule the requester decides. With one it is somebody else who holds the
permission, reaches the record through it, changed nothing in the request, and does not stand in a
hard conflict of duties with the command.
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, exists, false, literal, or_
from sqlalchemy import select as sql_select
from sqlmodel import Session, col, select

from app.access import scope
from app.audit import witness
from app.audit.models import AuditEntry
from app.commands import publishing, registry
from app.commands.approval_models import Approval
from app.commands.definition import SodRule
from app.commands.models import CommandVersion
from app.commands.stored import StoredDefinition
from app.identity.principal import Principal

AUDIT_READ = "audit.read"


@dataclass(frozen=True, slots=True)
class _Kind:
    """Requests that the same question answers: one command, one rule."""

    command: str
    version: int
    permission: str
    target_type: str | None


def may_decide(session: Session, person: Principal, row: Approval) -> bool:
    """Whether this person's click would count, whatever state it is in."""
    if not person.is_person or row.tenant_id != person.tenant_id:
        return False
    if row.approver_permission is None:
        return row.user_id == person.user_id
    if is_requester(person, row):
        return False
    return _reaches(session, person, row) and not _conflicts(session, person, row)


def may_see(session: Session, principal: Principal, row: Approval) -> bool:
    """Whether it exists for this reader: requester, who may decide or did, auditors."""
    if row.tenant_id != principal.tenant_id:
        return False
    if not principal.is_person:
        return row.user_id == principal.user_id and row.agent_id == principal.agent_id
    return (
        is_requester(principal, row)
        or row.decided_by == principal.user_id
        or may_decide(session, principal, row)
        or scope.tenant_wide(session, principal, AUDIT_READ)
    )


def is_requester(person: Principal, row: Approval) -> bool:
    """Whether they asked for it, by themselves or by an agent, or changed what is asked for."""
    return f" {person.user_id} " in row.requesters


def reaches(session: Session, person: Principal, row: Approval, target_id: str) -> bool:
    """Whether who may decide `row` reaches another record as well, and may ask about it instead."""
    if row.approver_permission is None:
        return True  # the requester, whose own call it is
    model = registry.record_types().get(row.target_type or "")
    permission = row.approver_permission
    return model is not None and scope.reached(session, person, permission, model, target_id)


def requested(person: Principal) -> ColumnElement[bool]:
    """The same as a filter."""
    return col(Approval.requesters).contains(f" {person.user_id} ", autoescape=True)


def decidable(
    session: Session, person: Principal, *among: ColumnElement[bool]
) -> ColumnElement[bool]:
    """True for approvals of which `may_decide` is true; `among` narrows what is looked at."""
    own = and_(col(Approval.approver_permission).is_(None), col(Approval.user_id) == person.user_id)
    return or_(own, *(_of_kind(session, person, kind) for kind in _kinds(session, person, among)))


def definition_of(session: Session, row: Approval) -> StoredDefinition:
    """The definition that the approval was opened under."""
    return _definition(session, row.tenant_id, row.command, row.version)


def _definition(session: Session, tenant_id: str, code: str, version: int) -> StoredDefinition:
    of_version = (
        CommandVersion.tenant_id == tenant_id,
        CommandVersion.code == code,
        CommandVersion.version == version,
    )
    content_hash = session.exec(select(CommandVersion.content_hash).where(*of_version)).one()
    content = select(CommandVersion.definition).where(*of_version)
    return publishing.parsed(content_hash, lambda: dict(session.exec(content).one()))


def _kinds(
    session: Session, person: Principal, among: tuple[ColumnElement[bool], ...]
) -> list[_Kind]:
    query = (
        sql_select(
            col(Approval.command),
            col(Approval.version),
            col(Approval.approver_permission),
            col(Approval.target_type),
        )
        .where(
            col(Approval.tenant_id) == person.tenant_id,
            col(Approval.approver_permission).is_not(None),
            *among,
        )
        .distinct()
    )
    return [_Kind(*row) for row in session.execute(query)]


def _of_kind(session: Session, person: Principal, kind: _Kind) -> ColumnElement[bool]:
    held = and_(
        col(Approval.command) == kind.command,
        col(Approval.version) == kind.version,
        col(Approval.approver_permission) == kind.permission,
        col(Approval.target_type) == kind.target_type
        if kind.target_type
        else col(Approval.target_type).is_(None),
        ~requested(person),
        _reached(person, kind),
    )
    rules = _hard_rules(_definition(session, person.tenant_id, kind.command, kind.version))
    return and_(held, *(~_did_the_other(person, kind, rule) for rule in rules))


def _reached(person: Principal, kind: _Kind) -> ColumnElement[bool]:
    if kind.target_type is None:
        return scope.reaches(
            person, kind.permission, owner=col(Approval.user_id), org=col(Approval.org_id)
        )
    model = registry.record_types().get(kind.target_type)
    if model is None:
        return false()
    return col(Approval.target_id).in_(
        sql_select(col(model.id)).where(scope.within(person, kind.permission, model))
    )


def _did_the_other(person: Principal, kind: _Kind, rule: SodRule) -> ColumnElement[bool]:
    on_it: tuple[Any, ...] = (
        (col(AuditEntry.target_id) == col(Approval.target_id),)
        if rule.scope == "same_record"
        else ()
    )
    return exists(
        sql_select(literal(1))
        .select_from(AuditEntry)
        .where(
            col(AuditEntry.tenant_id) == person.tenant_id,
            col(AuditEntry.user_id) == person.user_id,
            col(AuditEntry.command) == rule.conflicts_with,
            col(AuditEntry.outcome).in_(("done", "dispatched")),
            col(AuditEntry.target_type) == kind.target_type,
            *on_it,
        )
        .correlate(Approval)
    )


def _reaches(session: Session, person: Principal, row: Approval) -> bool:
    permission = row.approver_permission or ""
    if row.target_type is None or row.target_id is None:
        condition = scope.reaches(
            person,
            permission,
            owner=literal(row.user_id),
            org=literal(row.org_id),
            tenant=literal(row.tenant_id),
        )
        return bool(session.execute(sql_select(condition)).scalar_one())
    model = registry.record_types().get(row.target_type)
    return model is not None and scope.reached(session, person, permission, model, row.target_id)


def _conflicts(session: Session, person: Principal, row: Approval) -> bool:
    if row.target_type is None:
        return False
    return any(
        witness.has_done(
            session.connection(),
            tenant_id=person.tenant_id,
            user_id=person.user_id,
            command=rule.conflicts_with,
            target_type=row.target_type,
            target_id=row.target_id if rule.scope == "same_record" else None,
        )
        for rule in _hard_rules(definition_of(session, row))
    )


def _hard_rules(definition: StoredDefinition) -> list[SodRule]:
    return [rule for rule in definition.sod if rule.mode == "hard"]
