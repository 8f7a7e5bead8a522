"""Claims: which process executes which run, by a token of each claim (RUN-62, RUN-63).

One statement takes the oldest queued run that has room; suspended runs hold no slot.
"""

import structlog

from app.kernel import db, ids
from app.kernel.db import Work
from app.kernel.due import Due, part
from app.runs import rows, told
from app.runs.lease import Claim
from app.runs.release import Limits
from app.runs.run_models import Run

log = structlog.get_logger(__name__)

LEASE_S = 60.0

_TOLD = Due("claimed_run")


async def claim_due(process: str, room: int, lease_s: float) -> list[Claim]:
    """`claim`; one that nobody can be told of is claimed too, and its worker finds it an end."""
    try:
        return await db.transaction(claim, process, room, lease_s)
    except Exception as fault:  # noqa: BLE001 - each by itself says what it was
        part("claimed_run", fault)
    taken = await db.transaction(take, process, room, lease_s)
    for each in taken:
        try:
            with _TOLD.trying((each.tenant_id, each.run_id)):
                await db.transaction(tell, each.tenant_id, each.run_id)
        except Exception:  # the store is away; they are ours, and somebody has to execute them
            log.exception("claim_not_told", run_id=each.run_id)
    return taken


def claim(work: Work, process: str, room: int, lease_s: float = LEASE_S) -> list[Claim]:
    """Take up to `room` queued runs, the oldest first, within the limits of agents and users."""
    taken = take(work, process, room, lease_s)
    for each in taken:
        tell(work, each.tenant_id, each.run_id)
    return taken


def take(work: Work, process: str, room: int, lease_s: float) -> list[Claim]:
    """The same, and nobody hears of it."""
    usual = Limits()
    taken: list[Claim] = []
    while len(taken) < room:
        token = ids.random_token()
        found = rows.claim_one(
            work.connection,
            token=token,
            process=process,
            lease_s=lease_s,
            agent_cap=usual.concurrent,
            user_cap=usual.concurrent_per_user,
        )
        if found is None:
            break
        taken.append(Claim(found.tenant_id, found.id, token))
    return taken


def tell(work: Work, tenant_id: str, run_id: str) -> None:
    """Say that a run is in another state, as its row has it now."""
    told.run(work, work.session.get_one(Run, (tenant_id, run_id), populate_existing=True))
