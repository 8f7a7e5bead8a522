"""Runs whose worker is gone: back to the queue once their lease is over, and never executed here.

One conditional UPDATE each, so that two processes that see the same run count one takeover. A run
that kills each worker ends after three of them (agent-loop.md, 3).
"""

from collections.abc import Collection
from typing import Any

from sqlmodel import Session

from app.kernel import db
from app.kernel.db import Work
from app.runs import claiming, ending, rows
from app.runs.run_models import Run
from app.runs.states import RunState

TAKEOVERS = 3
CRASH_LOOP = "crash_loop"
AT_ONCE = 100


async def recover_due(own: Collection[tuple[str, str]]) -> int:
    """Queue the runs nobody works on any more; `own` are those this process executes."""
    recovered = 0
    for found in await db.read(_expired):
        if (found.tenant_id, found.id) not in own:
            recovered += await db.transaction(recover, found)
    return recovered


def recover(work: Work, found: Any) -> bool:
    """Queue one run again, or end it where it was taken over too often; whether it was ours to."""
    key = {"tenant_id": found.tenant_id, "run_id": found.id, "token": found.claim_token}
    if rows.RECOVER.run(work.connection, **key).first() is None:
        return False
    if found.takeovers < TAKEOVERS:
        claiming.tell(work, found.tenant_id, found.id)
        return True
    row = work.session.get_one(Run, (found.tenant_id, found.id), populate_existing=True)
    ending.end(work, row, RunState.INTERRUPTED, CRASH_LOOP)
    return True


def _expired(session: Session) -> list[Any]:
    return list(rows.EXPIRED.run(session.connection(), limit=AT_ONCE))
