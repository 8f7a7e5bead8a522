"""The record of every tool call: Started before anything happens, its outcome after (RUN-36).

Each write names the claim; what a replaced worker would write is not written (RUN-52).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session, col, func, select

from app.kernel import clock, ids, json
from app.kernel.db import Work
from app.kernel.prepared import Prepared
from app.runs import lease, told, transcript
from app.runs.lease import Claim
from app.runs.models.protocol import Entry
from app.runs.outcome import (
    Done,
    InCommit,
    NotStarted,
    ProposedCall,
    Refused,
    Result,
    Suspended,
    Unknown,
)
from app.runs.run_models import SentMessage, ToolCall, TranscriptEntry
from app.runs.session import RunSession
from app.runs.states import CallKind, CallState, EntryKind, WaitKind
from app.runs.tool import Prepared as PreparedCall

KEPT = 1 << 20  # bytes of a result in the record
CUT = "too_large"

_COLUMNS = (
    *("tenant_id", "id", "run_id", "turn", "ordinal", "provider_call_id", "tool", "kind"),
    *("command", "version", "arguments_redacted", "arguments_sha256", "state", "attempt"),
    *("rev", "started_at", "ended_at", "reason", "result"),
)
_INSERT = Prepared(
    f"INSERT INTO tool_call ({', '.join(_COLUMNS)}) "  # noqa: S608 - our columns
    f"VALUES ({', '.join(':' + name for name in _COLUMNS)}) ON CONFLICT (tenant_id, id) DO NOTHING "
    "RETURNING id, turn, state, rev"
)
_RESTART = Prepared(
    "UPDATE tool_call SET state = 'started', attempt = :attempt, rev = rev + 1 "
    "WHERE tenant_id = :tenant_id AND id = :id AND state = 'waiting' RETURNING id, turn, state, rev"
)
_FINISH = Prepared(
    "UPDATE tool_call SET state = :state, approval_id = coalesce(:approval_id, approval_id), "
    "child_run_id = coalesce(:child_run_id, child_run_id), stage = :stage, reason = :reason, "
    "advice = :advice, public_error = :public_error, result = :result, audit_seq = :audit_seq, "
    "timings = :timings, version = coalesce(:version, version), ended_at = :ended_at, "
    "rev = rev + 1 "
    "WHERE tenant_id = :tenant_id AND id = :id AND state IN ('started', 'waiting') "
    "RETURNING id, turn, state, rev"
)
_TOLD = Prepared(
    "SELECT c.id, c.turn, c.state, c.rev, c.run_id, r.tenant_id, r.conversation_id, r.user_id "
    "FROM tool_call c JOIN run r ON r.tenant_id = c.tenant_id AND r.id = c.run_id "
    "WHERE c.tenant_id = :tenant_id AND c.id = :id"
)
_DIAGNOSE = Prepared(
    "INSERT INTO tool_call_diagnostic (tenant_id, tool_call_id, diagnostic, at) "
    "VALUES (:tenant_id, :id, :diagnostic, :at) "
    "ON CONFLICT (tenant_id, tool_call_id) DO UPDATE SET diagnostic = excluded.diagnostic"
)


@dataclass(frozen=True, slots=True)
class Finished:
    """What came of a call, and the transcript entry that tells the model; None while it waits."""

    result: Result | Suspended
    entry: Entry | None


def start(work: Work, run: RunSession, call: PreparedCall) -> None:
    """Write down that the call is about to happen.

    Raises:
        LeaseLost, Cancelled: nothing may happen any more.
    """
    claim = run.claim
    lease.hold_unless_stopped(work, claim)
    if call.has_waited:
        key = {"tenant_id": claim.tenant_id, "id": call.call.id}
        made = _RESTART.run(work.connection, **key, attempt=call.attempt).first()
    else:
        made = _insert(work, claim, call, CallState.STARTED)
    _tell_of(work, run, call.call.id, made)


def finish(
    work: Work, run: RunSession, call: PreparedCall, ran: Result | Suspended | InCommit, seq: int
) -> Finished:
    """Write down what came of a call; a local effect is made in this same commit (RUN-95).

    Raises:
        LeaseLost: the run was taken over.
        AppError: the effect was refused; nothing of it stays.
    """
    claim = run.claim
    lease.hold(work, claim)
    result = ran.unit(work) if isinstance(ran, InCommit) else ran
    made = _finish(work, claim, call.call.id, result)
    if made is None:  # there is none of a call that was not permitted
        _insert(work, claim, call, CallState.STARTED)
        made = _finish(work, claim, call.call.id, result)
    entry = _answer(work, claim, call.call, result, seq)
    _tell_of(work, run, call.call.id, made)
    return Finished(result, entry)


def entry_of(call: ProposedCall, result: Result | Suspended, seq: int) -> Entry | None:
    """What tells the model what came of a call; None while it waits."""
    text = result.for_model()
    if text is None:
        return None
    body = {"call_id": call.id, "tool": call.tool, "text": text}
    return Entry(seq=seq, kind=EntryKind.RESULTS, body=body, turn=call.turn)


def not_started(
    work: Work, claim: Claim, calls: Sequence[ProposedCall], reason: str, seq: int
) -> list[Entry]:
    """Write down that not one call of a batch began, and why.

    Raises:
        LeaseLost: the run was taken over.
    """
    lease.hold(work, claim)
    result = NotStarted(reason)
    entries: list[Entry] = []
    for call in calls:
        _put_not_started(work, claim, call, result)
        entry = _answer(work, claim, call, result, seq + len(entries))
        entries += [entry] if entry else []
    _tell(work, claim, *(call.id for call in calls))
    return entries


def settle(work: Work, claim: Claim, call: ProposedCall, result: Result, seq: int) -> Entry | None:
    """Give a call its result outside of its execution: found after a crash, or at the end.

    Raises:
        LeaseLost: the run was taken over.
    """
    lease.hold(work, claim)
    if isinstance(result, NotStarted):
        _put_not_started(work, claim, call, result)
    return settle_late(work, claim, call, result, seq)


def settle_late(
    work: Work, claim: Claim, call: ProposedCall, result: Result, seq: int
) -> Entry | None:
    """The same for a call that was on its way outside when its run ended: nobody holds that."""
    _finish(work, claim, call.id, result)
    entry = _answer(work, claim, call, result, seq)
    _tell(work, claim, call.id)
    return entry


def wait(work: Work, claim: Claim, call: ProposedCall, waits: Suspended) -> None:
    """Note that a call waits, found after a crash.

    Raises:
        LeaseLost: the run was taken over.
    """
    lease.hold(work, claim)
    _finish(work, claim, call.id, waits)
    _tell(work, claim, call.id)


def of_run(session: Session, tenant_id: str, run_id: str) -> list[ToolCall]:
    """Every call of a run, in order."""
    query = (
        select(ToolCall)
        .where(ToolCall.tenant_id == tenant_id, ToolCall.run_id == run_id)
        .order_by(col(ToolCall.turn), col(ToolCall.ordinal))
    )
    return list(session.exec(query))


def brief(session: Session, claim: Claim, scope: int, conversation_id: str) -> str | None:
    """The message by which this scope told the user since the last input, if there is one."""
    admitted = select(func.max(TranscriptEntry.turn)).where(
        TranscriptEntry.tenant_id == claim.tenant_id,
        TranscriptEntry.run_id == claim.run_id,
        TranscriptEntry.kind == EntryKind.INPUT,
    )
    since = session.exec(admitted).one()
    query = (
        select(SentMessage.message_id)
        .where(
            SentMessage.tenant_id == claim.tenant_id,
            SentMessage.run_id == claim.run_id,
            SentMessage.scope == scope,
            SentMessage.conversation_id == conversation_id,
            col(SentMessage.turn) > (since or 0),
        )
        .order_by(col(SentMessage.at).desc())
    )
    return session.exec(query).first()


def _insert(work: Work, claim: Claim, call: PreparedCall, state: CallState) -> Any:
    descriptor = call.descriptor
    return _INSERT.run(
        work.connection,
        **_named(claim, call.call),
        kind=call.tool.kind.value,
        command=descriptor.code if descriptor else None,
        version=descriptor.version if descriptor else None,
        arguments_redacted=dict(call.redacted),
        arguments_sha256=call.sha256,
        state=state.value,
        attempt=call.attempt,
        rev=1,
        started_at=clock.now(),
        ended_at=None,
        reason=None,
        result=None,
    ).first()


def _put_not_started(work: Work, claim: Claim, call: ProposedCall, result: NotStarted) -> None:
    now = clock.now()
    _INSERT.run(
        work.connection,
        **_named(claim, call),
        kind=CallKind.FRAMEWORK.value,
        command=None,
        version=None,
        arguments_redacted={},
        arguments_sha256=ids.sha256(call.arguments),
        state=CallState.NOT_STARTED.value,
        attempt=1,
        rev=1,
        started_at=None,
        ended_at=now,
        reason=result.reason[:64],
        result=result.data(),
    )


def _named(claim: Claim, call: ProposedCall) -> dict[str, Any]:
    return {
        "tenant_id": claim.tenant_id,
        "id": call.id,
        "run_id": claim.run_id,
        "turn": call.turn,
        "ordinal": call.ordinal,
        "provider_call_id": call.provider_id[:200],
        "tool": call.tool[:200],
    }


def _finish(work: Work, claim: Claim, call_id: str, result: Result | Suspended) -> Any:
    """Its row as it is now; None where there is none that could end."""
    facts: dict[str, Any] = dict(result.facts) if isinstance(result, Done | Refused) else {}
    is_open = isinstance(result, Suspended) and result.is_open
    waits_for = result.kind if isinstance(result, Suspended) else None
    state = result.state if is_open or not isinstance(result, Suspended) else CallState.DONE
    refused = result if isinstance(result, Refused) else None
    made = _FINISH.run(
        work.connection,
        tenant_id=claim.tenant_id,
        id=call_id,
        state=state.value,
        approval_id=_ref(result, WaitKind.APPROVAL) or facts.get("approvalId"),
        child_run_id=_ref(result, WaitKind.RUN),
        stage=refused.stage if refused else None,
        reason=_reason(result),
        advice=refused.advice if refused else None,
        public_error=refused.detail[:1_000] if refused else None,
        result=None if is_open else _kept(result),
        audit_seq=facts.get("audit_seq"),
        timings=facts.get("timings"),
        version=facts.get("version"),
        ended_at=None if is_open and waits_for else clock.now(),
    ).first()
    if diagnostic := getattr(result, "diagnostic", ""):
        _DIAGNOSE.run(
            work.connection,
            tenant_id=claim.tenant_id,
            id=call_id,
            diagnostic=diagnostic[:8_000].replace("\x00", ""),
            at=clock.now(),
        )
    return made


def _ref(result: Result | Suspended, kind: WaitKind) -> str | None:
    return result.ref if isinstance(result, Suspended) and result.kind == kind else None


def _reason(result: Result | Suspended) -> str | None:
    match result:
        case Refused(reason=reason) | NotStarted(reason=reason):
            return reason[:64]
        case Unknown():
            return "outcome_unknown"
    return None


def _kept(result: Result | Suspended) -> dict[str, Any]:
    data = result.waiting() if isinstance(result, Suspended) else result.data()
    if len(json.dumps(data)) <= KEPT:
        return data
    return {"outcome": data.get("outcome"), "cut": CUT}


def _answer(
    work: Work, claim: Claim, call: ProposedCall, result: Result | Suspended, seq: int
) -> Entry | None:
    entry = entry_of(call, result, seq)
    if entry is None:
        return None
    return transcript.write(work, claim, seq, entry.kind, entry.body, turn=entry.turn)


def _tell_of(work: Work, run: RunSession, call_id: str, made: Any) -> None:
    if made is None:  # nothing changed: it says what it says
        _tell(work, run.claim, call_id)
    else:
        told.call(work, run.facts.told, made)


def _tell(work: Work, claim: Claim, *call_ids: str) -> None:
    key = {"tenant_id": claim.tenant_id}
    rows = [_TOLD.run_with(work.connection, key | {"id": each}).one() for each in call_ids]
    told.calls(work, rows)
