"""Waking runs: a wait that came true, or whose time is over, puts its run back into the queue.

What came true is read from rows, never from an event (F-21). A wait is satisfied once, by its first
answer; `false`, `0`, `""` and null are answers (RUN-60).
"""

from typing import Any

from sqlalchemy import Connection
from sqlmodel import Session

from app.commands import approval_closing
from app.commands.approval_models import Approval, ApprovalState
from app.commands.outbox_models import EffectState, ExternalEffect
from app.kernel import clock, db
from app.kernel.db import Work
from app.kernel.due import Due
from app.runs import claiming, ending, gates, lanes, rows
from app.runs.ending import End
from app.runs.run_models import Run, RunWait, ToolCall
from app.runs.states import LIVE_RUNS, CallState, Hold, RunState, WaitKind
from app.runs.writing import INTERNAL

AT_ONCE = 100
LOOKED_AT = 20  # queued inputs of a lane
TIMEOUT, DUE, RESUMED, GONE = "timeout", "due", "resumed", "gone"
_PENDING = {EffectState.WAITING, EffectState.STARTED}
_WAITS, _HELD = Due("run_wait"), Due("run_input")


async def wake_due() -> int:
    """Queue the runs whose waits came true; returns how many."""
    woken = 0
    for key in _WAITS.ready(await db.read(_wakeable, _WAITS.resting)):
        with _WAITS.trying(key):
            way = give_up if _WAITS.is_hopeless(key) else _woken
            woken += await way(*key)
    return woken


async def _woken(tenant_id: str, wait_id: str) -> bool:
    return await db.transaction(wake, tenant_id, wait_id)


async def give_up(tenant_id: str, wait_id: str) -> bool:
    """End a run that can never be woken: those who wait for it hear that it failed."""
    run_id = await db.look(_run_of, tenant_id, wait_id)
    if run_id is not None:
        failed = End(state=RunState.FAILED, reason="internal", public_error=INTERNAL)
        await ending.give_up(tenant_id, run_id, failed)
    return False


def wake(work: Work, tenant_id: str, wait_id: str) -> bool:
    """Satisfy one wait, if what it waits for is there; whether its run goes on."""
    wait = work.session.get(RunWait, (tenant_id, wait_id), populate_existing=True)
    if wait is None or wait.satisfied_at is not None:
        return False
    answer = _ANSWERS[WaitKind(wait.kind)](work, wait)
    return answer is not None and satisfy(work, wait, answer)


def satisfy(work: Work, wait: RunWait, answer: Any) -> bool:
    """Give a wait its answer, and queue its run; False: another answer came first."""
    now = clock.now()
    key = {"tenant_id": wait.tenant_id}
    found = rows.SATISFY.run_with(
        work.connection, key | {"id": wait.id, "now": now, "answer": {"value": answer}}
    ).first()
    if found is None:
        return False
    key["run_id"] = wait.run_id
    if rows.WAKE.run_with(work.connection, key | {"now": now}).first() is not None:
        claiming.tell(work, wait.tenant_id, wait.run_id)
        _free_inputs(work, wait)
    return True


async def hold_due() -> int:
    """Let messages behind open batches say that they wait for them; returns how many."""
    return await _HELD.together(hold_inputs, _behind_a_batch)


def hold_inputs(work: Work, only: tuple[str, ...] | None = None, /) -> int:
    """Let messages behind an open batch say that they wait for it (RUN-73); returns how many."""
    if only is None:
        held = rows.HOLD_BEHIND_A_BATCH.run(work.connection).all()
    else:
        tenant_id, input_id = only
        one = rows.HOLD_ONE_BEHIND.run(work.connection, tenant_id=tenant_id, id=input_id)
        held = one.all()
    for row in held:
        lanes.tell(work, [row], lanes.watcher_of(work, row.tenant_id, row.lane_id))
    return len(held)


def _free_inputs(work: Work, wait: RunWait) -> None:
    run = work.session.get_one(Run, (wait.tenant_id, wait.run_id))
    if run.lane_id is not None:
        lanes.release(work, run.tenant_id, run.lane_id, Hold.APPROVAL, run.user_id)


def _approval(work: Work, wait: RunWait) -> str | None:
    """How it was decided; a run that only pauses for it hears messages meanwhile (RUN-92)."""
    decided = _decided(work, wait)
    if decided is not None or not _is_pause(work, wait):
        return decided
    return _heard(work, wait)


def _is_pause(work: Work, wait: RunWait) -> bool:
    """Whether the call that waits for an approval is over itself: its batch is closed."""
    if wait.call_id is None:
        return False
    call = work.session.get(ToolCall, (wait.tenant_id, wait.call_id), populate_existing=True)
    return call is not None and call.state == CallState.DONE


def _decided(work: Work, wait: RunWait) -> str | None:
    """How it was decided; an open one may be over by time, a replaced one has a successor."""
    row = work.session.get(Approval, (wait.tenant_id, wait.ref), populate_existing=True)
    if row is None:
        return GONE
    if row.state == ApprovalState.OPEN:
        if row.expires_at > clock.now() or not approval_closing.expire(work, row):
            return None
        return ApprovalState.EXPIRED.value
    if row.state == ApprovalState.SUPERSEDED and row.superseded_by is not None:
        return _followed(work, wait, row.superseded_by)
    return str(row.state)


def _followed(work: Work, wait: RunWait, successor: str) -> str | None:
    """Wait for the replacement of an approval, with the call that asked (CMD-28)."""
    key = {"tenant_id": wait.tenant_id, "successor": successor}
    rows.FOLLOW_APPROVAL.run_with(work.connection, key | {"id": wait.id})
    rows.FOLLOW_APPROVAL_IN_CALL.run_with(work.connection, key | {"call_id": wait.call_id})
    work.session.expire_all()
    moved = work.session.get_one(RunWait, (wait.tenant_id, wait.id))
    return _decided(work, moved)


def _run(work: Work, wait: RunWait) -> str | None:
    child = work.session.get(Run, (wait.tenant_id, wait.ref), populate_existing=True)
    if child is None:
        return GONE
    return None if child.state in LIVE_RUNS else str(child.state)


def _call(work: Work, wait: RunWait) -> str | None:
    effect = work.session.get(ExternalEffect, (wait.tenant_id, wait.ref), populate_existing=True)
    if effect is None:
        return GONE
    return None if effect.state in _PENDING else str(effect.state)


def _message(work: Work, wait: RunWait) -> str | None:
    return _heard(work, wait) or (TIMEOUT if _is_over(wait) else None)


def _timer(work: Work, wait: RunWait) -> str | None:
    """A pause by the clock is no reason to leave somebody unheard: a message ends it (RUN-92)."""
    return _heard(work, wait) or (DUE if _is_over(wait) else None)


def _heard(work: Work, wait: RunWait) -> str | None:
    """The first queued input of the run's lane that passes the gates ends the wait directly."""
    run = work.session.get_one(Run, (wait.tenant_id, wait.run_id), populate_existing=True)
    if run.lane_id is not None and run.state == RunState.SUSPENDED:
        lane = gates.lane(work, run.tenant_id, run.lane_id)
        key = {"tenant_id": run.tenant_id, "lane_id": run.lane_id}
        looked = {"moment": clock.now(), "limit": LOOKED_AT}
        for queued in rows.QUEUED_JUDGED.run_with(work.connection, key | looked):
            verdict = gates.judge(lane, queued)
            if verdict is None:
                return str(queued.id)
            gates.apply(work, lane, queued, verdict)
    return None


def _pause(_work: Work, _wait: RunWait) -> str:
    return RESUMED  # the statement that found it saw that nothing rests any more


def _is_over(wait: RunWait) -> bool:
    return wait.due_at is not None and wait.due_at <= clock.now()


_ANSWERS = {
    WaitKind.APPROVAL: _approval,
    WaitKind.RUN: _run,
    WaitKind.CALL: _call,
    WaitKind.MESSAGE: _message,
    WaitKind.TIMER: _timer,
    WaitKind.PAUSE: _pause,
}


def _wakeable(session: Session, more: int = 0) -> list[tuple[str, str]]:
    limit = AT_ONCE + more
    found = rows.WAKEABLE.run(session.connection(), moment=clock.now(), limit=limit)
    return [(row.tenant_id, row.id) for row in found]


def _behind_a_batch(session: Session, more: int = 0) -> list[tuple[str, str]]:
    found = rows.BEHIND_A_BATCH.run(session.connection(), limit=AT_ONCE + more)
    return [(row.tenant_id, row.id) for row in found]


def _run_of(connection: Connection, tenant_id: str, wait_id: str) -> str | None:
    found: str | None = rows.RUN_OF_WAIT.run(connection, tenant_id=tenant_id, id=wait_id).scalar()
    return found
