"""A person's own call is made by the server as soon as it is approved (CMD-14).

The page that took the decision waits for it. If the process dies in between, a job finds what is
approved and not begun; a claim on the row sees to it that one of them begins.
"""

import asyncio
from dataclasses import dataclass
from datetime import timedelta

from sqlmodel import Session, col, or_, select

from app.commands import approvals, pipeline
from app.commands.approval_models import Approval, ApprovalState
from app.commands.call import Call
from app.commands.errors import CallerGone
from app.commands.outcome import Done
from app.commands.refused import Refused
from app.identity import sessions
from app.kernel import clock, db
from app.kernel.db import Work
from app.kernel.due import Due
from app.kernel.errors import AppError, Busy
from app.kernel.prepared import Prepared

LEFT_ALONE = timedelta(seconds=20)  # for the page that decided; afterwards the job takes over
AT_ONCE = 50

_DUE = Due("approved_call")

_CLAIM = Prepared(
    "UPDATE approval SET carried_at = :now WHERE tenant_id = :tenant_id AND id = :id "
    "AND state = 'approved' AND agent_id IS NULL AND expires_at > :now "
    "AND (carried_at IS NULL OR carried_at <= :before)"
)


@dataclass(frozen=True, slots=True)
class Carried:
    """What became of it: `done`, or why it was `refused`; both None: somebody else is at it."""

    done: Done | None = None
    refused: AppError | None = None


async def carry_out(tenant_id: str, approval_id: str) -> Carried:
    """Make the approved call of a person, as that person, whose rights are read anew; once."""
    call = await db.transaction(_begin, tenant_id, approval_id)
    if call is None:
        return Carried()
    try:
        return Carried(done=await pipeline.execute(call))
    except (Busy, CallerGone) as later:
        return Carried(refused=later)  # it stays approved; the job tries again
    except Refused as refused:
        if refused.reason == "in_flight":
            return Carried(refused=refused)  # that passes: likewise
        # a guard before the consumption said no: no retry could be any different
        await db.transaction(approvals.failed, call, approval_id, refused.stage, refused.reason)
        return Carried(refused=refused)


def carry_out_due() -> int:
    """Make the approved calls that nobody began, on a thread; returns how many were tried."""
    due = _DUE.ready(db.read_now(_due, _DUE.resting))
    for key in due:
        with _DUE.trying(key):
            asyncio.run(carry_out(*key))
    return len(due)


def is_own(row: Approval) -> bool:
    """Whether it is about a person's own call, which nobody else makes."""
    return row.agent_id is None


def _begin(work: Work, tenant_id: str, approval_id: str) -> Call | None:
    now = clock.now()
    claimed = _CLAIM.run(
        work.connection, tenant_id=tenant_id, id=approval_id, now=now, before=now - LEFT_ALONE
    )
    if claimed.rowcount != 1:
        return None
    row = work.session.get_one(Approval, (tenant_id, approval_id), populate_existing=True)
    person = sessions.requester(work.session, tenant_id, row.user_id, row.session_id)
    return approvals.call_of(work.session, person, approval_id) if person else None


def _due(session: Session, more: int) -> list[tuple[str, str]]:
    now = clock.now()
    query = (
        select(Approval.tenant_id, Approval.id)
        .where(
            Approval.state == ApprovalState.APPROVED,
            col(Approval.agent_id).is_(None),
            col(Approval.expires_at) > now,
            col(Approval.decided_at) <= now - LEFT_ALONE,
            or_(col(Approval.carried_at).is_(None), col(Approval.carried_at) <= now - LEFT_ALONE),
        )
        .order_by(col(Approval.expires_at))
        .limit(AT_ONCE + more)
    )
    return list(session.exec(query).all())
