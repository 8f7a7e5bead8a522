"""Runs whose worker is gone: back to the queue once their lease is over, and never executed here.

One conditional UPDATE each, so that two processes that see the same run count one takeover. A run
that kills each worker ends after three of them (agent-loop.md, 3).
"""

from collections.abc import Collection
from typing import Any

import structlog
from sqlmodel import Session

from app.kernel import db
from app.kernel.db import Work
from app.runs import claiming, ending, rows
from app.runs.ending import End
from app.runs.run_models import Run
from app.runs.states import RunState
from app.runs.writing import PASSING

log = structlog.get_logger(__name__)

TAKEOVERS = 3
CRASH_LOOP = "crash_loop"
AT_ONCE = 100


async def recover_due(own: Collection[tuple[str, str]]) -> int:
    """Queue the runs nobody works on any more; `own` are those this process executes."""
    recovered = 0
    for found in await db.read(_expired):
        if (found.tenant_id, found.id) not in own:
            recovered += await _recovered(found)
    return recovered


async def _recovered(found: Any) -> bool:
    """Whether it was recovered; one that cannot be keeps nobody from the others."""
    for unit in (recover, give_up):
        try:
            return await db.transaction(unit, found)
        except PASSING:
            raise
        except Exception as fault:
            log.exception("not_recovered", run=found.id, exc_info=fault)
    return False


def recover(work: Work, found: Any) -> bool:
    """Queue one run again, or end it where it was taken over too often; whether it was ours to."""
    key = {"tenant_id": found.tenant_id, "run_id": found.id, "token": found.claim_token}
    if rows.RECOVER.run(work.connection, **key).first() is None:
        return False
    if found.takeovers < TAKEOVERS:
        claiming.tell(work, found.tenant_id, found.id)
        return True
    ending.end(work, _row(work.session, found), RunState.INTERRUPTED, CRASH_LOOP)
    return True


def give_up(work: Work, found: Any) -> bool:
    """End one that was taken over too often, though nobody can say what its last calls came to."""
    key = {"tenant_id": found.tenant_id, "run_id": found.id, "token": found.claim_token}
    if found.takeovers < TAKEOVERS or rows.RECOVER.run(work.connection, **key).first() is None:
        return False
    crash_loop = End(state=RunState.INTERRUPTED, reason=CRASH_LOOP)
    return ending.close(work, _row(work.session, found), crash_loop)


def _expired(session: Session) -> list[Any]:
    return list(rows.EXPIRED.run(session.connection(), limit=AT_ONCE))


def _row(session: Session, found: Any) -> Run:
    return session.get_one(Run, (found.tenant_id, found.id), populate_existing=True)
