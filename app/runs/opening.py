"""Opening runs: a lane with a queued input that passes the gates, and no live run, gets one.

A lane has one live conversation run at most, and a message opens its run once: both are keys of the
database (RUN-61). An input that three runs in a row ended without taking is dropped, and says so.
"""

from datetime import timedelta
from typing import Any

from sqlmodel import Session

from app.kernel import clock, db, ids, json
from app.kernel.db import Work
from app.kernel.due import Due
from app.runs import authority, gates, rows, told
from app.runs.authority import Chain, Mandate
from app.runs.gates import Held
from app.runs.release import Content
from app.runs.run_models import Run
from app.runs.states import Hold, RunKind, SenderKind

LANES = 100  # opened in one tick
LOOKED_AT = 20  # queued inputs of a lane in one go
PEERS_A_DAY = 20  # runs for one outside peer whom nobody knows
DAY = timedelta(days=1)
NOT_TAKEN = "not_taken"
_DUE = Due("lane")
TRIES = (timedelta(0), timedelta(seconds=5), timedelta(seconds=30))  # until a run is opened anew


async def open_due() -> int:
    """Open a run in each lane that needs one; returns how many were opened."""
    opened = 0
    for key in _DUE.ready(await db.read(_openable, _DUE.resting)):
        with _DUE.trying(key):
            unit = give_up if _DUE.is_hopeless(key) else open_lane
            opened += await db.transaction(unit, *key)
    return opened


def open_lane(work: Work, tenant_id: str, lane_id: str) -> bool:
    """Open a run for the first input that passes, if there is one; whether there was."""
    lane = gates.lane(work, tenant_id, lane_id)
    key: dict[str, Any] = {"tenant_id": tenant_id, "lane_id": lane_id}
    if rows.LIVE_IN.run_with(work.connection, key).first() is not None:
        return False
    looked = {"moment": clock.now(), "limit": LOOKED_AT}
    for queued in rows.QUEUED.run_with(work.connection, key | looked):
        verdict = gates.judge(lane, queued) or _too_many(work, lane)
        if verdict is not None:
            gates.apply(work, lane, queued, verdict)
            continue
        tries = rows.TRIES.run_with(work.connection, key | {"message_id": queued.message_id}).one()
        if tries.number < len(TRIES):
            _open(work, lane, queued, tries.number)
            return True
        gates.drop(work, lane, queued, NOT_TAKEN)
    return False


def give_up(work: Work, tenant_id: str, lane_id: str) -> bool:
    """Drop the first input of a lane in which no run can be opened, and say so."""
    lane = gates.lane(work, tenant_id, lane_id)
    looked: dict[str, Any] = {"moment": clock.now(), "limit": 1}
    key = {"tenant_id": tenant_id, "lane_id": lane_id}
    for queued in rows.QUEUED.run_with(work.connection, key | looked):
        gates.drop(work, lane, queued, NOT_TAKEN)
    return False


def start(work: Work, run: Run) -> None:
    """Queue a run that was made, and tell of it."""
    work.session.add(run)
    work.session.flush()
    told.run(work, run)


def _open(work: Work, lane: Any, queued: Any, tries: int) -> None:
    chain = _chain(work, queued)
    mandate = authority.mandate_for(
        work.session, lane.tenant_id, lane.agent_id, lane.user_id, chain
    )
    start(work, _made(work, lane, queued, mandate, tries))


def _chain(work: Work, queued: Any) -> Chain | None:
    if queued.sender_kind != SenderKind.AGENT:
        return None
    return authority.chain_of(
        work.connection, queued.tenant_id, queued.message_id, queued.sender_aid
    )


def _made(work: Work, lane: Any, queued: Any, mandate: Mandate, tries: int) -> Run:
    made, now = ids.ulid(), clock.now()
    content = content_of(work, lane.tenant_id, lane.agent_id)
    again = f":{tries + 1}" if tries else ""
    return Run(
        tenant_id=lane.tenant_id,
        id=made,
        kind=RunKind.CONVERSATION,
        engine=content.engine,
        agent_id=lane.agent_id,
        lane_id=lane.id,
        conversation_id=lane.conversation_id,
        request_key=f"message:{lane.agent_id}:{queued.message_id}{again}",
        user_id=mandate.user_id,
        delegation_id=mandate.delegation_id,
        actors=mandate.actors,
        scopes=mandate.scopes,
        depth=mandate.depth,
        origin_message_id=queued.message_id,
        root_run_id=made,
        step_limit=content.limits.steps,
        not_before=now + TRIES[tries] if tries else None,
        queued_at=now,
    )


def content_of(work: Work, tenant_id: str, agent_id: str) -> Content:
    """What an agent's published release says now: advice, until the run is claimed (RUN-4)."""
    found = rows.POLICY.run(work.connection, tenant_id=tenant_id, agent_id=agent_id).scalar()
    return Content.of(json.of_column(found) or {})


def _too_many(work: Work, lane: Any) -> Held | None:
    """An outside peer whom nobody knows gets so many runs a day (agent-loop.md, 9)."""
    if lane.user_id is not None:
        return None
    since = clock.now() - DAY
    counted = rows.RUNS_OF_PEER.run(
        work.connection, tenant_id=lane.tenant_id, party=lane.party, since=since
    ).one()
    if counted.number < PEERS_A_DAY:
        return None
    return Held(Hold.QUOTA, clock.now() + gates.HOUR)


def _openable(session: Session, more: int = 0) -> list[tuple[str, str]]:
    found = rows.OPENABLE.run(session.connection(), moment=clock.now(), limit=LANES + more)
    return [(row.tenant_id, row.lane_id) for row in found]
