"""Approvals as people and programs read them: lists, one with all its circumstances, a count."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import ColumnElement, and_, false, func, or_, true
from sqlalchemy import select as sql_select
from sqlmodel import Session, col, select

from app.access import scope
from app.audit.models import AuditEntry
from app.commands import approval_rights, approval_staleness
from app.commands.approval_models import Approval, ApprovalState
from app.commands.approval_staleness import ChangedTarget
from app.commands.definition import Text
from app.commands.models import CommandOutcome, CommandVersion
from app.commands.stored import StoredDefinition
from app.identity import paging
from app.identity.models import Agent, AgentRelease, User
from app.identity.paging import Order, Page
from app.identity.principal import Principal
from app.kernel import clock
from app.kernel.errors import NotFound

Which = Literal["open", "decided", "requested", "all"]
ENDS = ("done", "dispatched", "failed", "unknown")  # outcomes of a call that was made


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to list; what is empty narrows nothing."""

    which: Which = "open"
    agent_id: str = ""
    risk: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One approval in a list, with the names in it."""

    row: Approval
    display_name: Text
    user_name: str
    agent_name: str | None
    decided_by: str | None
    closed_by: str | None
    may_decide: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What came of the call: the last entry of the trail about it, and how to take it back."""

    outcome: str
    seq: int
    at: datetime
    changes: Sequence[Mapping[str, Any]]
    undo: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One approval as a person reads it.

    Attributes:
        earlier_at: when this reader last approved the same command: it is asked each time.
        changed: target records that changed since it was asked for; then it cannot run any more.
        undo_name: what the undo command of the definition is called.
    """

    row: Approval
    definition: StoredDefinition
    user_name: str
    agent_name: str | None
    release_number: int | None
    decided_by: str | None
    closed_by: str | None
    changed_by: str | None
    may_decide: bool
    is_requester: bool
    earlier_at: datetime | None
    changed: Sequence[tuple[ChangedTarget, str | None]]
    ran: Ran | None
    undo_name: Text | None

    @property
    def is_open(self) -> bool:
        """Whether it waits, by the server's clock."""
        return self.row.state == ApprovalState.OPEN and self.row.expires_at > clock.now()


def one_for(session: Session, principal: Principal, approval_id: str) -> Shown:
    """One approval with its circumstances.

    Raises:
        NotFound: there is none, or it is not this reader's to see; the two look alike.
    """
    row = session.get(Approval, (principal.tenant_id, approval_id))
    if row is None or not approval_rights.may_see(session, principal, row):
        raise NotFound
    definition = approval_rights.definition_of(session, row)
    changed = approval_staleness.changed_targets(session, row) if _is_live(row) else []
    names = _names(
        session,
        row.tenant_id,
        (
            row.user_id,
            row.decided_by,
            row.closed_by,
            row.changed_by,
            *(each.by for each in changed),
        ),
    )
    agents = _agents(session, row.tenant_id, (row.agent_id,))
    return Shown(
        row=row,
        definition=definition,
        user_name=names.get(row.user_id, row.user_id),
        agent_name=agents.get(row.agent_id or ""),
        release_number=_release_number(session, row),
        decided_by=names.get(row.decided_by or ""),
        closed_by=names.get(row.closed_by or ""),
        changed_by=names.get(row.changed_by or ""),
        may_decide=approval_rights.may_decide(session, principal, row),
        is_requester=row.user_id == principal.user_id,
        earlier_at=_earlier(session, principal, row),
        changed=[(each, names.get(each.by or "")) for each in changed],
        ran=_ran(session, row),
        undo_name=_undo_name(session, row.tenant_id, definition),
    )


def listed(
    session: Session, principal: Principal, wanted: Wanted, cursor: str | None
) -> Page[Listed]:
    """A page of the approvals of one kind that this reader sees."""
    conditions = [*_which(session, principal, wanted.which), *_narrowed(wanted)]
    query = sql_select(Approval).where(*conditions)
    page = paging.page(session, query, _order(wanted.which), cursor, lambda row: row[0])
    return Page(
        rows=_with_names(session, principal, page.rows),
        previous=page.previous,
        next=page.next,
        total=count(session, principal, wanted),
    )


def row_for(session: Session, principal: Principal, approval_id: str) -> Listed | None:
    """One approval as a list has it; None where it is not this reader's to see."""
    row = session.get(Approval, (principal.tenant_id, approval_id))
    if row is None or not approval_rights.may_see(session, principal, row):
        return None
    return _with_names(session, principal, [row])[0]


def rows_for(
    session: Session, principal: Principal, approval_ids: Collection[str]
) -> dict[str, Listed]:
    """Several approvals as a list has them, by id; those this reader may not see are left out."""
    if not approval_ids:
        return {}
    query = select(Approval).where(
        Approval.tenant_id == principal.tenant_id, col(Approval.id).in_(sorted(approval_ids))
    )
    found = session.exec(query).all()
    rows = [row for row in found if approval_rights.may_see(session, principal, row)]
    return {each.row.id: each for each in _with_names(session, principal, rows)}


def count(session: Session, principal: Principal, wanted: Wanted) -> int:
    """How many there are; the badge of the inbox is this for `open` (UI-64)."""
    conditions = [*_which(session, principal, wanted.which), *_narrowed(wanted)]
    query = sql_select(func.count()).select_from(Approval).where(*conditions)
    return int(session.execute(query).scalar_one())


def agents_in(session: Session, principal: Principal) -> list[tuple[str, str]]:
    """Ids and names of the agents whose requests this reader may see, for a filter."""
    query = (
        sql_select(col(Agent.id), col(Agent.name))
        .where(
            col(Agent.tenant_id) == principal.tenant_id,
            col(Agent.id).in_(
                sql_select(col(Approval.agent_id)).where(*_which(session, principal, "all"))
            ),
        )
        .order_by(col(Agent.name), col(Agent.id))
    )
    return [(id, name) for id, name in session.execute(query)]


def _which(session: Session, principal: Principal, which: Which) -> list[ColumnElement[bool]]:
    state = col(Approval.state)
    by_state = {
        "open": and_(state == ApprovalState.OPEN, col(Approval.expires_at) > clock.now()),
        "decided": or_(state != ApprovalState.OPEN, col(Approval.expires_at) <= clock.now()),
    }.get(which, true())
    return [
        col(Approval.tenant_id) == principal.tenant_id,
        by_state,
        _whose(session, principal, which),
    ]


def _whose(session: Session, principal: Principal, which: Which) -> ColumnElement[bool]:
    mine = approval_rights.requested(principal)
    if not principal.is_person:
        own = col(Approval.user_id) == principal.user_id
        return and_(own, col(Approval.agent_id) == principal.agent_id)
    if which == "requested":
        return mine
    is_open = col(Approval.state) == ApprovalState.OPEN
    decidable = approval_rights.decidable(
        session, principal, *([is_open] if which == "open" else [])
    )
    if which == "open":
        return decidable
    decided = col(Approval.decided_by) == principal.user_id
    if which == "decided":
        return or_(decidable, decided)
    audits = scope.tenant_wide(session, principal, approval_rights.AUDIT_READ)
    return or_(mine, decided, decidable, true() if audits else false())


def _narrowed(wanted: Wanted) -> list[ColumnElement[bool]]:
    narrowed: list[ColumnElement[bool]] = []
    if wanted.agent_id:
        narrowed.append(col(Approval.agent_id) == wanted.agent_id)
    if wanted.risk:
        narrowed.append(col(Approval.risk) == wanted.risk)
    return narrowed


def _order(which: Which) -> Order:
    if which == "open":
        return Order(Approval.expires_at, Approval.id)
    return Order(Approval.opened_at, Approval.id, is_descending=True)


def _with_names(session: Session, principal: Principal, rows: Sequence[Approval]) -> list[Listed]:
    tenant_id = principal.tenant_id
    people = {each for row in rows for each in (row.user_id, row.decided_by, row.closed_by)}
    names = _names(session, tenant_id, people)
    agents = _agents(session, tenant_id, {row.agent_id for row in rows})
    titles = _titles(session, tenant_id, {(row.command, row.version) for row in rows})
    return [
        Listed(
            row=row,
            display_name=titles[row.command, row.version],
            user_name=names.get(row.user_id, row.user_id),
            agent_name=agents.get(row.agent_id or ""),
            decided_by=names.get(row.decided_by or ""),
            closed_by=names.get(row.closed_by or ""),
            may_decide=approval_rights.may_decide(session, principal, row),
        )
        for row in rows
    ]


def _titles(
    session: Session, tenant_id: str, wanted: set[tuple[str, int]]
) -> dict[tuple[str, int], Text]:
    query = select(CommandVersion.code, CommandVersion.version, CommandVersion.definition).where(
        CommandVersion.tenant_id == tenant_id,
        col(CommandVersion.code).in_({code for code, _ in wanted}),
    )
    return {
        (code, version): Text.model_validate(definition["display_name"])
        for code, version, definition in session.exec(query)
    }


def _names(session: Session, tenant_id: str, user_ids: Iterable[str | None]) -> dict[str, str]:
    wanted = {each for each in user_ids if each}
    query = select(User.id, User.display_name).where(
        User.tenant_id == tenant_id, col(User.id).in_(wanted)
    )
    return dict(session.exec(query).all()) if wanted else {}


def _agents(session: Session, tenant_id: str, agent_ids: Iterable[str | None]) -> dict[str, str]:
    wanted = {each for each in agent_ids if each}
    query = select(Agent.id, Agent.name).where(
        Agent.tenant_id == tenant_id, col(Agent.id).in_(wanted)
    )
    return dict(session.exec(query).all()) if wanted else {}


def _release_number(session: Session, row: Approval) -> int | None:
    if row.agent_release_id is None:
        return None
    release = session.get(AgentRelease, (row.tenant_id, row.agent_release_id))
    return release.number if release else None


def _earlier(session: Session, principal: Principal, row: Approval) -> datetime | None:
    query = select(func.max(Approval.decided_at)).where(
        Approval.tenant_id == row.tenant_id,
        Approval.decided_by == principal.user_id,
        Approval.command == row.command,
        Approval.id != row.id,
        col(Approval.state).in_((ApprovalState.APPROVED, ApprovalState.CONSUMED)),
    )
    return session.exec(query).one()


def _ran(session: Session, row: Approval) -> Ran | None:
    if row.state != ApprovalState.CONSUMED:
        return None
    query = (
        select(AuditEntry)
        .where(
            AuditEntry.tenant_id == row.tenant_id,
            AuditEntry.call_id == row.consumed_by_call,
            col(AuditEntry.outcome).in_(ENDS),
        )
        .order_by(col(AuditEntry.seq).desc())
    )
    entry = session.exec(query).first()
    if entry is None:
        return None
    kept = session.exec(
        select(CommandOutcome.outcome).where(
            CommandOutcome.tenant_id == row.tenant_id,
            CommandOutcome.call_id == row.consumed_by_call,
        )
    ).first()
    return Ran(
        outcome=entry.outcome,
        seq=entry.seq,
        at=entry.at,
        changes=entry.changes or [],
        undo=(kept or {}).get("undo"),
    )


def _undo_name(session: Session, tenant_id: str, definition: StoredDefinition) -> Text | None:
    if definition.undo is None:
        return None
    query = (
        select(CommandVersion.definition)
        .where(CommandVersion.tenant_id == tenant_id, CommandVersion.code == definition.undo)
        .order_by(col(CommandVersion.version).desc())
    )
    found = session.exec(query).first()
    return Text.model_validate(found["display_name"]) if found else None


def _is_live(row: Approval) -> bool:
    return row.state in {ApprovalState.OPEN, ApprovalState.APPROVED}
