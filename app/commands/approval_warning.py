"""Whoever may decide a request is told once more when a minute is left (UI-82)."""

from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import ColumnElement
from sqlmodel import Session, col, select

from app.commands import approval_events
from app.commands.approval_models import Approval, ApprovalState
from app.kernel import clock
from app.kernel.db import Work
from app.kernel.due import Due
from app.kernel.models import LoggedEvent

LEFT = timedelta(minutes=1)
AT_ONCE = 200  # in one transaction

_DUE = Due("approval_warning")


def sweep() -> int:
    """Tell of those that nobody decided and that end within a minute; once a few seconds.

    It waits for the database: for threads, not for a unit or the event loop.
    """
    return _DUE.together_now(warn_due, _ending)


def warn_due(work: Work, only: tuple[str, ...] | None = None) -> int:
    """Tell of those that end within a minute, or of the one of a key.

    The news in the event log is the mark that it was told: each is told of once, by whatever
    process holds it first. Returns how many.
    """
    ending = _is_ending()
    if only is not None:
        ending += [col(Approval.tenant_id) == only[0], col(Approval.id) == only[1]]
    query = (
        select(Approval)
        .where(*ending)
        .order_by(col(Approval.tenant_id), col(Approval.expires_at))
        .limit(AT_ONCE)
        .with_for_update(key_share=True, skip_locked=True)  # all rows before the first event
    )
    return sum(_warn(work, row) for row in work.session.exec(query).all())


def _warn(work: Work, row: Approval) -> bool:
    if row.expires_at - row.opened_at <= LEFT:
        return False  # that it was opened said so
    if _was_told(work, row):
        return False
    approval_events.tell_ending(work, row)
    return True


def _was_told(work: Work, row: Approval) -> bool:
    query = select(LoggedEvent.seq).where(
        LoggedEvent.tenant_id == row.tenant_id,
        col(LoggedEvent.at) >= row.expires_at - 2 * LEFT,
        LoggedEvent.kind == approval_events.ENDING,
        LoggedEvent.subject == row.id,
    )
    return work.session.exec(query.limit(1)).first() is not None


def _ending(session: Session, more: int) -> Sequence[tuple[str, str]]:
    query = select(Approval.tenant_id, Approval.id).where(*_is_ending())
    ordered = query.order_by(col(Approval.tenant_id), col(Approval.expires_at))
    return session.exec(ordered.limit(AT_ONCE + more)).all()


def _is_ending() -> list[ColumnElement[bool]]:
    now = clock.now()
    return [
        col(Approval.state) == ApprovalState.OPEN,
        col(Approval.expires_at) > now,
        col(Approval.expires_at) <= now + LEFT,
    ]
