"""A worker: claim → execute → finish, and nothing else (RUN-3).

Whatever happens in between, the end is stored, or the run goes back to the queue. What ends a
run is stored even while this process shuts down (RUN-68).
"""

import asyncio
import traceback
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import structlog
from sqlalchemy.exc import DBAPIError

from app.kernel import clock, db
from app.kernel.db import Work
from app.runs import ending, engines, preparing, recovery, replies, writing
from app.runs.checkpoint import UnreadableCheckpoint
from app.runs.ending import End
from app.runs.errors import Cancelled, LeaseLost, LimitReached, OutcomeUnknown, RunFailed
from app.runs.heartbeat import Leaving
from app.runs.lease import Claim
from app.runs.outcome import Complete, Suspended
from app.runs.run_models import Run
from app.runs.session import RunSession
from app.runs.states import RunState
from app.runs.writing import INTERNAL, PASSING

log = structlog.get_logger(__name__)

AGAIN_AFTER_S = 5.0  # the store failed
STOP_GRACE_S = 10.0  # for a tool to end after a stop; then its run ends without it
LEAVING_S = 1.0  # for it to hear that this process shuts down
PAUSES_S = (0.5, 1.0, 2.0, 4.0)  # between tries to give a run back to a store that is away
Started = Callable[[RunSession], Any]
GivenBack = Callable[[Work, Claim, RunSession | None], None]


async def execute(claim: Claim, started: Started = lambda _run: None) -> None:
    """Execute one claimed run to its end, or until it waits; `started` gets its session."""
    run: RunSession | None = None
    try:
        run = await preparing.prepare(claim)
        started(run)
        outcome = await _until_stopped(run, engines.execute(run, run.facts.engine))
        await _finish(run, outcome)
    except Leaving:  # this process shuts down, and the stage at hand is over
        await _surely(_give_back(claim, run, _queued))
    except LeaseLost:
        log.info("lease_lost", run_id=claim.run_id)
        await _surely(_keep_what_is_over(run))
    except asyncio.CancelledError:  # this process shuts down, and waits no longer
        await _surely(_give_back(claim, run, _queued))
        raise
    except PASSING as fault:
        log.exception("store_failed", run_id=claim.run_id, exc_info=fault)
        await _surely(_give_back(claim, run, _queued_for_later, PAUSES_S))
    except (DBAPIError, UnreadableCheckpoint) as fault:
        log.exception("store_refused", run_id=claim.run_id, exc_info=fault)
        await _surely(_give_back(claim, run, _taken_over, PAUSES_S))
    except Exception as fault:  # noqa: BLE001 - whatever it was, the run has an end
        await _surely(_end(claim, run, fault))
    finally:
        if run is not None:
            await asyncio.shield(run.outside.close())


async def _until_stopped(
    run: RunSession, executing: Coroutine[Any, Any, Complete | Suspended]
) -> Complete | Suspended:
    """What it comes to; a tool that does not hear the stop is waited for no longer than the grace.

    What it still does then has no effect: its writes name a claim that is over (RUN-52, RUN-65).

    Raises:
        Cancelled: it was stopped, and did not end in time; what `executing` raises.
    """
    execution, stop = asyncio.create_task(executing), asyncio.create_task(run.stop.wait())
    try:
        await asyncio.wait({execution, stop}, return_when=asyncio.FIRST_COMPLETED)
        if isinstance(run.stopped, Cancelled):
            await asyncio.wait({execution}, timeout=STOP_GRACE_S)
            if not execution.done():
                log.warning("stop_forced", run_id=run.claim.run_id)
                execution.add_done_callback(_left_behind)
                raise run.stopped
        return await execution
    except asyncio.CancelledError:  # this process shuts down: it ends where it stands
        execution.add_done_callback(_left_behind)
        execution.cancel()
        await asyncio.wait({execution}, timeout=LEAVING_S)
        raise
    finally:
        stop.cancel()
        execution.cancel()


def _left_behind(execution: "asyncio.Task[Complete | Suspended]") -> None:
    fault = None if execution.cancelled() else execution.exception()
    log.info("left_behind_ended", fault=type(fault).__name__ if fault else None)


async def _keep_what_is_over(run: RunSession | None) -> None:
    """Record what came of the stage at hand: a worker that leaves has the run still."""
    if run is not None:
        await writing.flush(run)


async def _finish(run: RunSession, outcome: Complete | Suspended) -> None:
    match outcome:
        case Suspended() as waits:
            await writing.whole(writing.now(run, ending.suspend, run, waits))
        case Complete(reply=reply, reason=reason):
            speech = await replies.ready(run, reply)
            end = End(state=RunState.COMPLETED, reason=reason, speech=speech)
            await writing.whole(writing.now(run, ending.finish, run, end))


async def _end(claim: Claim, run: RunSession | None, fault: Exception) -> None:
    """Store how it ended; where that cannot be stored, another process has to find an end."""
    end = _end_of(fault)
    try:
        if run is not None:
            await writing.at_last(run, ending.finish, run, end)
        else:
            await db.transaction(ending.finish_unprepared, claim, end)
    except LeaseLost:
        raise
    except PASSING as away:
        log.exception("end_not_stored", run_id=claim.run_id, exc_info=away)
        await _give_back(claim, run, _queued_for_later, PAUSES_S)
    except Exception as refused:
        log.exception("end_refused", run_id=claim.run_id, exc_info=refused)
        await _give_back(claim, run, _taken_over, PAUSES_S)


async def _give_back(
    claim: Claim, run: RunSession | None, how: GivenBack, pauses_s: Sequence[float] = (0.0,)
) -> None:
    """Let another process have it, in one commit with what is over of it.

    A store that is away is asked again after each pause. What it takes at none of these times is
    left to the trail, as after a crash.
    """
    for pause_s in pauses_s:
        try:
            await _given_back(claim, run, how)
        except PASSING as away:
            log.warning("not_given_back", run_id=claim.run_id, fault=type(away).__name__)
            fault = away
        else:
            return
        await asyncio.sleep(pause_s)
    if run is not None:
        writing.forget(run, fault)
    await _given_back(claim, run, how)


async def _given_back(claim: Claim, run: RunSession | None, how: GivenBack) -> None:
    if run is not None:
        await writing.at_last(run, how, claim, run)
    else:
        await db.transaction(how, claim, run)


def _end_of(fault: Exception) -> End:
    match fault:
        case Cancelled(reason=reason):
            return End(state=RunState.CANCELED, reason=reason)
        case OutcomeUnknown():
            return End(state=RunState.OUTCOME_UNKNOWN, reason="outcome_unknown")
        case LimitReached(limit=limit):
            return End(state=RunState.INTERRUPTED, reason=limit)
        case RunFailed(reason=reason, public=public):
            return End(state=RunState.FAILED, reason=reason, public_error=public)
    log.error("run_failed", exc_info=fault, where=traceback.format_exception(fault)[-1:])
    return End(state=RunState.FAILED, reason="internal", public_error=INTERNAL)


async def _surely(storing: Coroutine[Any, Any, None]) -> None:
    """Store how it ended, though this task may be cancelled; a lost lease stores nothing."""
    try:
        await writing.whole(storing)
    except LeaseLost:
        log.info("lease_lost_at_end")


def _queued(work: Work, claim: Claim, run: RunSession | None, after_s: float = 0.0) -> None:
    ending.requeue(work, claim, active_ms=_worked_ms(run), after_s=after_s)


def _queued_for_later(work: Work, claim: Claim, run: RunSession | None) -> None:
    _queued(work, claim, run, AGAIN_AFTER_S)


def _taken_over(work: Work, claim: Claim, run: RunSession | None) -> None:
    """Let it be tried again by another process, and not for ever: it counts as a takeover."""
    row = work.session.get_one(Run, (claim.tenant_id, claim.run_id), populate_existing=True)
    if row.takeovers >= recovery.TAKEOVERS:
        crash_loop = End(state=RunState.INTERRUPTED, reason=recovery.CRASH_LOOP)
        ending.finish_unprepared(work, claim, crash_loop)
        return
    worked_ms = _worked_ms(run)
    ending.requeue(work, claim, active_ms=worked_ms, takeovers=1, after_s=AGAIN_AFTER_S)


def _worked_ms(run: RunSession | None) -> int:
    return run.active_ms(clock.now()) - run.active_ms_before if run else 0
