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
from app.kernel.due import Due, is_away
from app.runs import claiming, ending, rows
from app.runs.ending import End
from app.runs.run_models import Run
from app.runs.states import RunState

log = structlog.get_logger(__name__)

TAKEOVERS = 3
CRASH_LOOP = "crash_loop"
AT_ONCE = 100

_DUE = Due("run")
_GIVEN_UP = End(state=RunState.INTERRUPTED, reason=CRASH_LOOP)


async def recover_due(own: Collection[tuple[str, str]]) -> int:
    """Queue the runs nobody works on any more; `own` are those this process executes."""
    recovered = 0
    for found in await db.read(_expired, _DUE.resting + len(own)):
        key = (found.tenant_id, found.id)
        if key in own or _DUE.rests(key):
            continue
        with _DUE.trying(key):
            recovered += await _recovered(found, is_hopeless=_DUE.is_hopeless(key))
    return recovered


async def _recovered(found: Any, *, is_hopeless: bool) -> bool:
    """Whether it was; one that can never be has an end, with as much of it as can be written."""
    ways = [recover]
    if is_hopeless or found.takeovers >= TAKEOVERS:
        ways.append(give_up)
    if is_hopeless:
        ways.append(abandon)
    for unit in ways[:-1]:
        try:
            return await db.transaction(unit, found)
        except Exception as fault:
            if is_away(fault):
                raise
            log.exception("not_recovered", run_id=found.id, exc_info=fault)
    return await db.transaction(ways[-1], found)


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
    """End one, though nobody can say what its last calls came to."""
    key = {"tenant_id": found.tenant_id, "run_id": found.id, "token": found.claim_token}
    if rows.RECOVER.run(work.connection, **key).first() is None:
        return False
    return ending.close(work, _row(work.session, found), _GIVEN_UP)


def abandon(work: Work, found: Any) -> bool:
    """End one whose very row nobody can read."""
    key = {"tenant_id": found.tenant_id, "run_id": found.id, "token": found.claim_token}
    if rows.RECOVER.run(work.connection, **key).first() is None:
        return False
    return ending.end_bare(work, found.tenant_id, found.id, _GIVEN_UP)


def _expired(session: Session, more: int = 0) -> list[Any]:
    return list(rows.EXPIRED.run(session.connection(), limit=AT_ONCE + more))


def _row(session: Session, found: Any) -> Run:
    return session.get_one(Run, (found.tenant_id, found.id), populate_existing=True)
