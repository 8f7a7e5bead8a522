"""How a run ends, and what becomes of the rest, in one transaction (agent-loop.md, 4: the table).

What is final stays final: every end is one conditional UPDATE, and its row count is the permission
to settle anything (RUN-52, RUN-60). A run's end never changes a message's delivery (RUN-74).
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import structlog
from sqlmodel import Session, col, select

from app.commands import approval_closing
from app.commands.approval_models import ApprovalState
from app.commands.external import EffectSettled
from app.kernel import clock, db, events, ids
from app.kernel.db import Work
from app.kernel.due import is_away
from app.kernel.prepared import Prepared
from app.runs import (
    authority,
    inputs,
    lease,
    ledger,
    records,
    rows,
    settling,
    speaking,
    told,
    transcript,
)
from app.runs.lease import Claim
from app.runs.outcome import NotStarted, Suspended
from app.runs.run_models import Run, RunWait, ToolCall
from app.runs.session import RunSession, Transcript
from app.runs.speaking import Speech
from app.runs.states import LIVE_RUNS, CallState, InputState, RunState, WaitKind

log = structlog.get_logger(__name__)

_END = Prepared(
    "UPDATE run SET state = :state, reason = :reason, public_error = :public_error, "
    "claim_token = NULL, claimed_by = NULL, lease_until = NULL, ended_at = :now, "
    "active_ms = active_ms + :active_ms, version = version + 1 "
    "WHERE tenant_id = :tenant_id AND id = :run_id AND state IN ('queued', 'running', 'suspended')"
)
_SUSPEND = Prepared(
    "UPDATE run SET state = 'suspended', claim_token = NULL, claimed_by = NULL, "
    "lease_until = NULL, active_ms = active_ms + :active_ms, version = version + 1 "
    "WHERE tenant_id = :tenant_id AND id = :run_id AND claim_token = :token AND state = 'running'"
)
_REQUEUE = Prepared(
    "UPDATE run SET state = 'queued', claim_token = NULL, claimed_by = NULL, lease_until = NULL, "
    "takeovers = takeovers + :takeovers, not_before = :not_before, "
    "active_ms = active_ms + :active_ms, version = version + 1 "
    "WHERE tenant_id = :tenant_id AND id = :run_id AND claim_token = :token AND state = 'running'"
)
_TAKE = Prepared(
    "UPDATE run SET state = 'running', claim_token = :token WHERE tenant_id = :tenant_id "
    "AND id = :run_id AND state IN ('queued', 'suspended')"
)
_CLOSE_WAITS = Prepared(
    "UPDATE run_wait SET satisfied_at = :now "
    "WHERE tenant_id = :tenant_id AND run_id = :run_id AND satisfied_at IS NULL"
)
_ABANDON = Prepared(
    "UPDATE model_request SET state = 'cancelled', ended_at = :now "
    "WHERE tenant_id = :tenant_id AND run_id = :run_id AND state = 'started'"
)
_PAUSED_FOR = Prepared(
    "SELECT 1 FROM run_wait WHERE tenant_id = :tenant_id AND run_id = :run_id "
    "AND call_id = :call_id AND kind = :kind AND ref IS NOT DISTINCT FROM :ref "
    "AND satisfied_at IS NULL"
)

_INPUTS = {
    RunState.COMPLETED: InputState.COMPLETED,
    RunState.FAILED: InputState.FAILED,
    RunState.CANCELED: InputState.CANCELED,
    RunState.INTERRUPTED: InputState.INTERRUPTED,
    RunState.OUTCOME_UNKNOWN: InputState.INTERRUPTED,
}
PARENT_ENDED = "parent_ended"
STOPPED = "The run was stopped before this call."
OVER = "The run ended before this call."


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How it ends; `speech` is said in the same commit."""

    state: RunState
    reason: str | None = None
    public_error: str | None = None
    speech: Speech | None = None


def finish(work: Work, run: RunSession, end: End) -> None:
    """Store how an execution ended, with all that belongs to it.

    Raises:
        LeaseLost: another worker has the run.
        Cancelled: it was stopped, or what it stands on is gone, before it could complete.
    """
    if end.state == RunState.COMPLETED:
        lease.hold_unless_stopped(work, run.claim)
        authority.check(work.session, _row(work.session, run.claim))
    lease.hold(work, run.claim)
    if end.speech is not None:
        speaking.publish(work, run.claim, run, end.speech)
    row = _row(work.session, run.claim)
    if end.state != RunState.COMPLETED or run.transcript.open_batch() is not None:
        _settle_calls(work, run.claim, end.state)
    close(work, row, end, active_ms=run.active_ms(clock.now()) - run.active_ms_before)


def finish_unprepared(work: Work, claim: Claim, end: End) -> None:
    """The same for a run that never came as far as a session.

    Raises:
        LeaseLost: another worker has the run.
    """
    lease.hold(work, claim)
    _settle_calls(work, claim, end.state)
    close(work, _row(work.session, claim), end)


def end(
    work: Work,
    row: Run,
    state: RunState,
    reason: str | None,
    public_error: str | None = None,
) -> bool:
    """End a run that no worker holds: queued, suspended, or given up; whether it was still live."""
    if row.state not in LIVE_RUNS:
        return False
    claim = Claim(row.tenant_id, row.id, row.claim_token or "")
    if row.state != RunState.RUNNING:
        _settle_unheld(work, row, claim, state)
    return close(work, row, End(state=state, reason=reason, public_error=public_error))


def close(work: Work, row: Run, end: End, *, active_ms: int = 0) -> bool:
    """The final state, and what falls with it: approvals, waits, inputs, sub-runs."""
    if not _close_row(work, {"tenant_id": row.tenant_id, "run_id": row.id}, end, active_ms):
        return False
    if end.state != RunState.COMPLETED:
        why = f"run_{end.state.value}"
        approval_closing.close_turn(work, row.tenant_id, row.id, None, ApprovalState.CANCELLED, why)
        _end_children(work, row, end)
    reason = None if end.state == RunState.COMPLETED else end.reason
    inputs.settle(work, row.tenant_id, row.id, _INPUTS[end.state], reason)
    work.session.expire_all()
    ended_row = work.session.get_one(Run, (row.tenant_id, row.id), populate_existing=True)
    ledger.after_run(work, ended_row)
    told.run(work, ended_row)
    return True


async def give_up(tenant_id: str, run_id: str, how: End) -> bool:
    """End a run that can never go on, with as much of its end as can be written.

    Nobody may be able to say what its last calls came to, or even to read its row: what waits for
    it must not wait for ever.
    """
    for unit in (_end_whole, _end_unsettled):
        try:
            return await db.transaction(unit, tenant_id, run_id, how)
        except Exception as fault:
            if is_away(fault):
                raise
            log.exception("not_ended_whole", tenant_id=tenant_id, run_id=run_id, exc_info=fault)
    return await db.transaction(end_bare, tenant_id, run_id, how)


def end_bare(work: Work, tenant_id: str, run_id: str, how: End) -> bool:
    """End a run whose row nobody can read: its state, its waits and its inputs, and no news."""
    key = {"tenant_id": tenant_id, "run_id": run_id}
    if not _close_row(work, key, how, 0):
        return False
    settled = {"state": _INPUTS[how.state].value, "reason": how.reason, "now": clock.now()}
    rows.SETTLE.run_with(work.connection, key | settled)
    return True


def suspend(work: Work, run: RunSession, waits: Suspended) -> None:
    """Store a wait together with the release of the claim; the checkpoint is there (RUN-76).

    Raises:
        LeaseLost: another worker has the run.
        Cancelled: somebody stopped it meanwhile.
    """
    lease.hold_unless_stopped(work, run.claim)
    now = clock.now()
    if not _is_waited_for(work, run.claim, waits):
        work.session.add(
            RunWait(
                tenant_id=run.claim.tenant_id,
                id=ids.ulid(),
                run_id=run.claim.run_id,
                call_id=waits.call_id,
                kind=waits.kind.value,
                ref=waits.ref,
                due_at=waits.due_at if waits.kind != WaitKind.APPROVAL else None,
                expects=dict(waits.expects) if waits.expects else None,
                opened_at=now,
            )
        )
        work.session.flush()
    key = {"tenant_id": run.claim.tenant_id, "run_id": run.claim.run_id}
    active_ms = run.active_ms(now) - run.active_ms_before
    _SUSPEND.run(work.connection, **key, token=run.claim.token, active_ms=active_ms)
    told.run(work, _row(work.session, run.claim))
    work.announce(told.Hint(tenant_id=run.claim.tenant_id, what="wait", id=run.claim.run_id))


def requeue(
    work: Work, claim: Claim, *, active_ms: int = 0, takeovers: int = 0, after_s: float = 0.0
) -> bool:
    """Give a run back to the queue: at shutdown, or when the store failed us (RUN-68, F-53)."""
    given = _REQUEUE.run(
        work.connection,
        tenant_id=claim.tenant_id,
        run_id=claim.run_id,
        token=claim.token,
        takeovers=takeovers,
        active_ms=active_ms,
        not_before=clock.now() + timedelta(seconds=after_s) if after_s else None,
    )
    if given.rowcount != 1:
        return False
    told.run(work, _row(work.session, claim))
    return True


def listen() -> Callable[[], None]:
    """Record what becomes of calls outside whose runs are over, in the transaction that tells."""
    return events.subscribe_inside(EffectSettled, follow)


def follow(work: Work, settled: EffectSettled) -> None:
    """A dispatched call is recorded as it ends, also after its run; a live one is woken by it."""
    key = (settled.tenant_id, settled.call_id.rpartition(".")[0])
    call = work.session.get(ToolCall, key, populate_existing=True)
    if call is None or call.state != CallState.WAITING:
        return
    run = work.session.get_one(Run, (call.tenant_id, call.run_id), populate_existing=True)
    principal = authority.principal_of(work.session, run)
    if run.state not in LIVE_RUNS and principal is not None:
        settling.settle_late(work, principal, call, run)


def _end_whole(work: Work, tenant_id: str, run_id: str, how: End) -> bool:
    row = work.session.get_one(Run, (tenant_id, run_id), populate_existing=True)
    return end(work, row, how.state, how.reason, how.public_error)


def _end_unsettled(work: Work, tenant_id: str, run_id: str, how: End) -> bool:
    row = work.session.get_one(Run, (tenant_id, run_id), populate_existing=True)
    return close(work, row, how)


def _close_row(work: Work, key: dict[str, str], end: End, active_ms: int) -> bool:
    now = clock.now()
    ended = _END.run(
        work.connection,
        **key,
        state=end.state.value,
        reason=end.reason[:64] if end.reason else None,
        public_error=end.public_error[:1_000] if end.public_error else None,
        active_ms=active_ms,
        now=now,
    )
    if ended.rowcount != 1:
        return False
    _CLOSE_WAITS.run(work.connection, **key, now=now)
    _ABANDON.run(work.connection, **key, now=now)
    return True


def _is_waited_for(work: Work, claim: Claim, waits: Suspended) -> bool:
    """Whether the same wait is open already, of a run that was woken for nothing."""
    found = _PAUSED_FOR.run(
        work.connection,
        tenant_id=claim.tenant_id,
        run_id=claim.run_id,
        call_id=waits.call_id,
        kind=waits.kind.value,
        ref=waits.ref,
    )
    return found.first() is not None


def _settle_calls(work: Work, claim: Claim, state: RunState) -> None:
    """Every call of the newest batch has a result, before the run is over (RUN-44).

    What is Started here is of an execution that broke off: what came of it stands in the trail.
    """
    entries = transcript.load(work.session, claim)
    if not entries:
        return
    principal = authority.principal_of(work.session, _row(work.session, claim))
    entries += settling.settle(work, claim, principal, entries[-1].seq + 1, entries)
    script = Transcript(entries)
    batch = script.open_batch()
    if batch is None:
        return
    answered, seq = script.answered(), script.next_seq
    known = {row.id: row for row in records.of_run(work.session, claim.tenant_id, claim.run_id)}
    words = STOPPED if state == RunState.CANCELED else OVER
    for call in batch.calls:
        row = known.get(call.id)
        if call.id in answered or (row and settling.is_dispatched(work.session, principal, row)):
            continue
        if records.settle(work, claim, call, NotStarted(words), seq) is not None:
            seq += 1


def _settle_unheld(work: Work, row: Run, claim: Claim, state: RunState) -> None:
    """The same for a run without a worker; its row is taken first, so that nobody claims it."""
    token = ids.random_token()
    taken = Claim(claim.tenant_id, claim.run_id, token)
    key = {"tenant_id": row.tenant_id, "run_id": row.id}
    if _TAKE.run(work.connection, **key, token=token).rowcount == 1:
        _settle_calls(work, taken, state)


def _end_children(work: Work, row: Run, end_: End) -> None:
    query = select(Run).where(
        Run.tenant_id == row.tenant_id,
        Run.parent_run_id == row.id,
        col(Run.state).in_(LIVE_RUNS),
    )
    for child in work.session.exec(query).all():
        if child.state == RunState.RUNNING:
            child.cancel_requested_at, child.reason = clock.now(), PARENT_ENDED
            work.session.add(child)
            work.session.flush()
            work.announce(told.Hint(tenant_id=child.tenant_id, what="stop", id=child.id))
        else:
            end(work, child, RunState.CANCELED, PARENT_ENDED)


def _row(session: Session, claim: Claim) -> Run:
    return session.get_one(Run, (claim.tenant_id, claim.run_id), populate_existing=True)
