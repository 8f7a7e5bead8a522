"""Calls that a crash left Started: what the trail proves is taken over, nothing is repeated.

Source: RUN-66. A command's call is asked for by its id; a framework tool's effect and record are
one commit; what reached outside and left no answer is unknown.
"""

from collections.abc import Mapping
from typing import Any

from sqlmodel import Session

from app.commands import looking_up
from app.commands.looking_up import Became
from app.identity.principal import Principal
from app.kernel.db import Work
from app.kernel.errors import NotFound
from app.runs import records
from app.runs.lease import Claim
from app.runs.models.protocol import Entry
from app.runs.outcome import (
    RESULT_LIMIT,
    Done,
    Interrupted,
    ProposedCall,
    Refused,
    Result,
    Suspended,
    Unknown,
    shortened,
)
from app.runs.run_models import Run, ToolCall
from app.runs.states import OPEN_CALLS, CallKind, CallState, EntryKind, WaitKind
from app.runs.transcript import load, write

APPROVAL_REQUIRED = "approval_required"


def settle(
    work: Work, claim: Claim, principal: Principal | None, seq: int, entries: list[Entry]
) -> list[Entry]:
    """Give every call of the run its place: returns the entries that were missing.

    Calls whose result row is there, but not in the transcript, are told from their record (K-12).
    """
    made: list[Entry] = []
    told = {each.body["call_id"] for each in entries if each.kind == EntryKind.RESULTS}
    for row in records.of_run(work.session, claim.tenant_id, claim.run_id):
        if row.id in told or (call := _proposed(row, entries)) is None:
            continue
        if row.state == CallState.STARTED:
            entry = _settle(work, claim, principal, row, call, seq + len(made))
        elif row.state in OPEN_CALLS:
            continue  # it waits
        else:
            entry = _told_again(work, claim, row, call, seq + len(made))
        made += [entry] if entry is not None else []
    return made


def is_dispatched(session: Session, principal: Principal | None, row: ToolCall) -> bool:
    """Whether a call that waits is on its way outside: what comes of it is recorded as it ends."""
    if row.state != CallState.WAITING or row.child_run_id is not None or principal is None:
        return False
    result = became(session, principal, row)
    return isinstance(result, Suspended) and result.kind == WaitKind.CALL


def settle_late(work: Work, principal: Principal, row: ToolCall, run: Run) -> None:
    """Record how a dispatched call ended whose run was over before it (agent-loop.md, 4)."""
    claim = Claim(run.tenant_id, run.id, "")
    entries = load(work.session, claim)
    call = _proposed(row, entries)
    result = became(work.session, principal, row)
    if call is not None and not isinstance(result, Suspended):
        records.settle_late(work, claim, call, result, entries[-1].seq + 1)


def became(session: Session, principal: Principal, row: ToolCall) -> Result | Suspended:
    """What a command's call came to, as the trail has it."""
    try:
        found = looking_up.of(session, principal, f"{row.id}.{row.attempt}")
    except NotFound:
        return Interrupted()
    return _of_trail(found)


def _settle(
    work: Work,
    claim: Claim,
    principal: Principal | None,
    row: ToolCall,
    call: ProposedCall,
    seq: int,
) -> Entry | None:
    result = _result(work.session, principal, row)
    if isinstance(result, Suspended):
        records.wait(work, claim, call, result)
        return None
    return records.settle(work, claim, call, result, seq)


def _result(session: Session, principal: Principal | None, row: ToolCall) -> Result | Suspended:
    match CallKind(row.kind):
        case CallKind.COMMAND if principal is not None:
            return became(session, principal, row)
        case CallKind.MCP:  # one that only reads: what changes something is a command
            return Interrupted()
    if row.command is not None and principal is not None:  # `run_command`
        return became(session, principal, row)
    return Interrupted()


def _of_trail(found: Became) -> Result | Suspended:
    answer = found.answer or {}
    facts = {"audit_seq": found.audit_seq, "version": found.version}
    match found.outcome:
        case "done" | "replayed":
            return Done(
                result=answer.get("result"),
                record=answer.get("record"),
                undo=answer.get("undo"),
                facts={**facts, "timings": answer.get("timings")},
            )
        case "dispatched":
            return Suspended(kind=WaitKind.CALL, ref=found.call_id, is_open=True)
        case "unknown":
            return Unknown()
    if found.reason == APPROVAL_REQUIRED and found.approval_id:
        return Suspended(kind=WaitKind.APPROVAL, ref=found.approval_id, is_open=True)
    return Refused(
        reason=found.reason or found.outcome,
        stage=found.stage,
        detail=_said_outside(answer),
        facts=facts,
    )


def _said_outside(answer: Mapping[str, Any]) -> str:
    """What an outside server said to its refusal."""
    outside = (answer.get("result") or {}).get("outside") or {}
    return str(outside.get("said", ""))


def _told_again(work: Work, claim: Claim, row: ToolCall, call: ProposedCall, seq: int) -> Entry:
    text = shortened(row.result or {"outcome": row.state}, RESULT_LIMIT)
    body = {"call_id": call.id, "tool": call.tool, "text": text}
    return write(work, claim, seq, EntryKind.RESULTS, body, turn=call.turn)


def _proposed(row: ToolCall, entries: list[Entry]) -> ProposedCall | None:
    for entry in entries:
        if entry.kind != EntryKind.RESPONSE:
            continue
        for ordinal, call in enumerate(entry.body.get("calls", [])):
            if call["id"] == row.id:
                return ProposedCall(
                    id=row.id,
                    provider_id=call["provider_id"],
                    tool=call["tool"],
                    arguments=call["arguments"],
                    ordinal=ordinal,
                    turn=entry.turn,
                )
    return None
