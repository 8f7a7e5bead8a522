"""How approvals end without running: by time, by their requester, by what ended around them.

Each close is an entry of the trail, in the transaction that makes it (CMD-17). What is over stays
over: every close is one conditional UPDATE. Who closes several holds them all before the first
entry: rows come before the heads of trail and log, or two would wait for each other.
"""

from collections.abc import Callable, Sequence

from sqlalchemy import ColumnElement, and_
from sqlmodel import Session, col, select

from app.access import acting
from app.audit import trail
from app.audit.trail import NewEntry
from app.commands import approval_events
from app.commands.approval_errors import ApprovalClosed
from app.commands.approval_models import Approval, ApprovalState
from app.identity.facts import AccessChanged
from app.identity.principal import Channel, Principal
from app.kernel import clock, events, ids
from app.kernel.db import Work
from app.kernel.due import Due
from app.kernel.errors import NotFound
from app.kernel.prepared import Prepared

LIVE = (ApprovalState.OPEN, ApprovalState.APPROVED)
AT_ONCE = 200  # expired ones in one transaction

_DUE = Due("approval_expiry")

_CLOSE = Prepared(
    "UPDATE approval SET state = :state, closed_at = :now, closed_by = :by, closed_why = :why, "
    "superseded_by = :superseded_by, rev = rev + 1 "
    "WHERE tenant_id = :tenant_id AND id = :id AND state IN ('open', 'approved')"
)


def expire(work: Work, row: Approval) -> bool:
    """Close an approval whose time is over."""
    return _close(work, row, ApprovalState.EXPIRED, why="time")


def sweep() -> int:
    """Close those whose time is over; once a few seconds. Returns how many.

    It waits for the database: for threads, not for a unit or the event loop.
    """
    return _DUE.together_now(expire_due, _over)


def expire_due(work: Work, only: tuple[str, ...] | None = None) -> int:
    """Close those whose time is over, or the one of a key; returns how many.

    One that somebody else holds at the moment is left for the next time.
    """
    over = [*_is_over(), _is(only)] if only else _is_over()
    query = (
        select(Approval)
        .where(*over)
        .order_by(col(Approval.tenant_id), col(Approval.expires_at))
        .limit(AT_ONCE)
        .with_for_update(key_share=True, skip_locked=True)
    )
    return sum(expire(work, row) for row in work.session.exec(query).all())


def withdraw(work: Work, person: Principal, approval_id: str) -> Approval:
    """The requester takes the request back (CMD-15).

    Raises:
        NotFound: it is not one of theirs.
        ApprovalClosed: it is over already.
    """
    acting.now_acting(work.connection, person, clock.now())
    row = work.session.get(Approval, (person.tenant_id, approval_id), populate_existing=True)
    if row is None or not person.is_person or row.user_id != person.user_id:
        raise NotFound
    if not _close(work, row, ApprovalState.CANCELLED, why="withdrawn", by=person):
        work.session.refresh(row)
        raise ApprovalClosed(row)
    return work.session.get_one(Approval, (row.tenant_id, row.id), populate_existing=True)


def supersede(work: Work, row: Approval, by_approval: str, by: Principal) -> bool:
    """A replacement takes the place of an approval that is still open (CMD-28)."""
    return _close(
        work, row, ApprovalState.SUPERSEDED, why="replaced", by=by, superseded_by=by_approval
    )


def close_turn(
    work: Work,
    tenant_id: str,
    run_id: str,
    turn: int | None,
    state: ApprovalState,
    why: str,
    by: Principal | None = None,
) -> int:
    """End what a run asked for in a turn (None: in all of them), as the run moves on (CMD-15)."""
    conditions = [Approval.tenant_id == tenant_id, Approval.run_id == run_id]
    if turn is not None:
        conditions.append(Approval.turn == turn)
    return _close_all(work, _live(work.session, *conditions), state, why=why, by=by)


def listen() -> Callable[[], None]:
    """Close what users, agents and delegations leave behind, in the transaction that ends them."""
    return events.subscribe_inside(AccessChanged, follow)


def follow(work: Work, change: AccessChanged) -> None:
    """End the approvals of whoever may no longer act (SEC-31); what is revived revives none."""
    if not change.ends or change.session_id is not None or change.client_id is not None:
        return
    live = _live(work.session, Approval.tenant_id == change.tenant_id)
    rows = [row for row in live if _is_about(row, change)]
    _close_all(work, rows, ApprovalState.CANCELLED, why=change.why)


def record(
    work: Work,
    row: Approval,
    outcome: str,
    by: Principal | None,
    *,
    reason: str | None = None,
    said: dict[str, str] | None = None,
) -> None:
    """Put a decision or a close on record; without a person it is the requester's (expiry)."""
    approves = outcome == ApprovalState.APPROVED and by is not None
    origin = dict(row.origin)
    trail.append(
        work,
        NewEntry(
            tenant_id=row.tenant_id,
            call_id=ids.ulid(),
            command=row.command,
            version=row.version,
            risk=row.risk,
            idempotent=row.idempotent,
            reversible=row.reversible,
            outcome=outcome,
            reason=reason,
            user_id=by.user_id if by else row.user_id,
            channel=(by.channel if by else Channel.PROCESS).value,
            session_id=by.session_id if by else None,
            run_id=row.run_id,
            turn=row.turn,
            conversation_id=origin.get("conversation_id"),
            prompt_ref=origin.get("prompt_ref"),
            approval_id=row.id,
            approved_by=by.user_id if approves and by else None,
            approved_at=row.decided_at if approves else None,
            input_redacted=dict(said) if said else None,
            target_type=row.target_type,
            target_id=row.target_id,
        ),
    )


def _close_all(
    work: Work,
    rows: Sequence[Approval],
    state: ApprovalState,
    *,
    why: str,
    by: Principal | None = None,
) -> int:
    """Close those of one tenant that are still live; returns how many."""
    if len(rows) > 1:
        held = select(Approval.id).where(
            Approval.tenant_id == rows[0].tenant_id, col(Approval.id).in_([row.id for row in rows])
        )
        work.session.exec(held.order_by(Approval.id).with_for_update(key_share=True)).all()
    return sum(_close(work, row, state, why=why, by=by) for row in rows)


def _close(
    work: Work,
    row: Approval,
    state: ApprovalState,
    *,
    why: str,
    by: Principal | None = None,
    superseded_by: str | None = None,
) -> bool:
    closed = _CLOSE.run(
        work.connection,
        tenant_id=row.tenant_id,
        id=row.id,
        state=state.value,
        why=why[:64],
        by=by.user_id if by else None,
        superseded_by=superseded_by,
        now=clock.now(),
    )
    if closed.rowcount != 1:
        return False
    said = {"supersededBy": superseded_by} if superseded_by else None
    record(work, row, state.value, by, reason=why[:64], said=said)
    approval_events.tell(work, row, state=state, rev=row.rev + 1)
    return True


def _over(session: Session, more: int) -> Sequence[tuple[str, str]]:
    query = select(Approval.tenant_id, Approval.id).where(*_is_over())
    ordered = query.order_by(col(Approval.tenant_id), col(Approval.expires_at))
    return session.exec(ordered.limit(AT_ONCE + more)).all()


def _is_over() -> list[ColumnElement[bool]]:
    return [col(Approval.state).in_(LIVE), col(Approval.expires_at) <= clock.now()]


def _is(key: tuple[str, ...]) -> ColumnElement[bool]:
    tenant_id, approval_id = key
    return and_(col(Approval.tenant_id) == tenant_id, col(Approval.id) == approval_id)


def _live(session: Session, *conditions: object) -> Sequence[Approval]:
    live = col(Approval.state).in_(LIVE)
    return session.exec(select(Approval).where(live, *conditions)).all()  # type: ignore[arg-type]


def _is_about(row: Approval, change: AccessChanged) -> bool:
    if change.delegation_id is not None:
        return row.delegation_id == change.delegation_id
    if change.agent_id is not None:
        return change.agent_id in row.actors and change.user_id in (None, row.user_id)
    return change.user_id in (None, row.user_id, row.decided_by)
