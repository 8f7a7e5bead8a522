"""Whoever may decide a request is told once more when a minute is left (UI-82)."""

from datetime import timedelta

from sqlmodel import col, select

from app.commands import approval_events
from app.commands.approval_models import Approval, ApprovalState
from app.kernel import clock
from app.kernel.db import Work
from app.kernel.models import LoggedEvent

LEFT = timedelta(minutes=1)
AT_ONCE = 200  # in one transaction


def warn_due(work: Work) -> int:
    """Tell of those that nobody decided and that end within a minute; once a few seconds.

    The news in the event log is the mark that it was told: each is told of once, by whatever
    process holds it first. Returns how many.
    """
    now = clock.now()
    query = (
        select(Approval)
        .where(
            Approval.state == ApprovalState.OPEN,
            col(Approval.expires_at) > now,
            col(Approval.expires_at) <= now + LEFT,
        )
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
