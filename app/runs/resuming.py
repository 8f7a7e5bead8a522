"""What a run that waited wakes to: answers for its open calls, notes for its closed waits.

No row with an explicit answer, no execution: unknown, missing or null is still waiting (RUN-89).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlmodel import Session, col, select

from app.commands.approval_models import Approval, ApprovalState
from app.identity.principal import Principal
from app.kernel import clock, db
from app.kernel.db import Work
from app.runs import attempts, command_tool, delegating, lease, settling
from app.runs.command_tool import Approved, StillWaiting
from app.runs.models.protocol import Entry
from app.runs.outcome import Interrupted, Result, Suspended
from app.runs.run_models import Run, RunWait, ToolCall
from app.runs.session import RunSession
from app.runs.states import CallState, WaitKind

TIMER = "The time you waited for has come."
NOBODY = "Nobody wrote within the time you waited. That is normal; nobody owes an answer."
DECIDED = "The approval you waited for was decided: {state}."


def waited(
    session: Session, principal: Principal | None, calls: Sequence[ToolCall]
) -> dict[str, Mapping[str, Any]]:
    """For each call that waits: how to go on with it, or the result it gets instead."""
    return {
        call.id: _answer(session, principal, call)
        for call in calls
        if call.state == CallState.WAITING
    }


async def wake(run: RunSession) -> None:
    """Tell the run of closed waits that came true, once each."""
    entry = await db.transaction(_note, run)
    if entry is not None:
        run.transcript.add(entry)


def _answer(session: Session, principal: Principal | None, call: ToolCall) -> Mapping[str, Any]:
    attempt = call.attempt + 1
    if call.child_run_id is not None:
        child = session.get(Run, (call.tenant_id, call.child_run_id), populate_existing=True)
        result = delegating.result_of(session, child) if child is not None else None
        waits = Suspended(kind=WaitKind.RUN, call_id=call.id, ref=call.child_run_id, is_open=True)
        return {"attempt": call.attempt, "result": result or waits}
    if principal is None:
        return {"attempt": call.attempt, "result": Suspended(kind=WaitKind.CALL, is_open=True)}
    became = settling.became(session, principal, call)
    if call.approval_id is not None and _was_not_made(became):
        return _decided(session, principal, call, attempt)
    if isinstance(became, Suspended):  # what it ordered outside is still on its way
        became = replace(became, call_id=call.id)
    return {"attempt": call.attempt, "result": became}


def _was_not_made(became: Result | Suspended) -> bool:
    """Whether a call that asked for an approval did nothing since, by the trail."""
    if isinstance(became, Suspended):
        return became.kind == WaitKind.APPROVAL
    return isinstance(became, Interrupted)


def _decided(
    session: Session, principal: Principal, call: ToolCall, attempt: int
) -> Mapping[str, Any]:
    approval_id = call.approval_id or ""
    match command_tool.after_waiting(session, principal, approval_id):
        case Approved(approval_id=approved):
            return {"attempt": attempt, "approval_id": approved}
        case StillWaiting(approval_id=open_id, due_at=due_at):
            waits = Suspended(
                kind=WaitKind.APPROVAL, call_id=call.id, ref=open_id, due_at=due_at, is_open=True
            )
            return {"attempt": call.attempt, "result": waits}
        case result:
            return {"attempt": call.attempt, "result": result}


def _note(work: Work, run: RunSession) -> Entry | None:
    """A line for the newest closed wait that came true without a message."""
    waits = run.transcript.closing_wait()
    if waits is None:
        return None
    lease.hold(work, run.claim)
    query = (
        select(RunWait)
        .where(
            RunWait.tenant_id == run.claim.tenant_id,
            RunWait.run_id == run.claim.run_id,
            col(RunWait.satisfied_at).is_not(None),
            col(RunWait.kind).in_([WaitKind.TIMER, WaitKind.MESSAGE, WaitKind.APPROVAL]),
        )
        .order_by(col(RunWait.id).desc())
        .limit(1)
    )
    wait = work.session.exec(query).first()
    batch = run.transcript.batch()
    if wait is None or batch is None or wait.call_id != batch.calls[0].id:
        return None
    kind, text = _words(work.session, wait)
    return attempts.write_note(work, run, kind, text) if kind else None


def _words(session: Session, wait: RunWait) -> tuple[str, str]:
    is_late = wait.due_at is not None and wait.due_at <= clock.now()
    answer = (wait.answer or {}).get("value")
    match wait.kind:
        case WaitKind.TIMER if answer == "due":
            return "timer", TIMER
        case WaitKind.MESSAGE if is_late and answer == "timeout":
            return "timeout", NOBODY
        case WaitKind.APPROVAL:
            row = session.get(Approval, (wait.tenant_id, wait.ref))
            if row is not None and row.state == ApprovalState.OPEN:
                return "", ""  # a message came first
            return "approval", DECIDED.format(state=row.state if row else "gone")
    return "", ""
