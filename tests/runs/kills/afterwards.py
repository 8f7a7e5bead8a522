"""What has to hold after any kill, whatever was killed: nothing is lost, doubled or half done."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from sqlmodel import Session, col, select

from app.audit import verify
from app.audit.models import AuditEntry
from app.aun.models import Message
from app.commands import record_check
from app.packs.expenses.models import Report
from app.runs import budget, transcript
from app.runs.lease import Claim
from app.runs.models.protocol import Entry
from app.runs.run_models import ModelRequest, Run, RunInput, ToolCall
from app.runs.states import FINAL_RUNS, OPEN_CALLS, EntryKind, InputState

OVER = {
    InputState.COMPLETED,
    InputState.FAILED,
    InputState.CANCELED,
    InputState.INTERRUPTED,
    InputState.ARCHIVED,
    InputState.DROPPED,
}


def problems(session: Session, tenant_id: str) -> list[str]:
    """What is wrong with runs, inputs, calls, reports and their trail; nothing is."""
    runs = list(session.exec(select(Run).where(Run.tenant_id == tenant_id)))
    return [
        *(f"run {run.id} is {run.state}" for run in runs if run.state not in FINAL_RUNS),
        *(f"run {run.id} is still held" for run in runs if run.claim_token is not None),
        *_of_inputs(session, runs),
        *(text for run in runs for text in _of_transcript(session, run)),
        *_of_requests(session, tenant_id),
        *_of_effects(session, tenant_id),
    ]


def trail_problems(url: str, tenant_id: str, folder: Path) -> list[str]:
    """What the product's own check finds: each write has its entry, each entry its write."""
    verify.register_cross_check("records", record_check.check)
    report = verify.verify(url, folder, tenant=tenant_id)
    return [problem.text for tenant in report.tenants for problem in tenant.problems]


def _of_inputs(session: Session, runs: Sequence[Run]) -> Iterable[str]:
    rows = session.exec(select(RunInput)).all()
    for row in rows:
        if row.state not in OVER:
            yield f"input {row.id} is {row.state} ({row.hold})"
        if row.settled_at is None:
            yield f"input {row.id} is not settled"
    heard = Counter((row.agent_id, row.message_id) for row in rows)
    yield from (f"heard {number} times: {key}" for key, number in heard.items() if number > 1)
    known = {run.id for run in runs}
    yield from (
        f"input {row.id} names a strange run" for row in rows if row.run_id not in {None, *known}
    )


def _of_transcript(session: Session, run: Run) -> Iterable[str]:
    entries = transcript.load(session, Claim(run.tenant_id, run.id, ""))
    seqs = [entry.seq for entry in entries]
    if seqs != list(range(1, len(seqs) + 1)):
        yield f"run {run.id}: entries {seqs}"
    yield from (f"run {run.id}: {text}" for text in illegal(entries))
    yield from (f"run {run.id}, folded: {text}" for text in illegal(budget.visible(entries)))
    query = select(ToolCall).where(ToolCall.tenant_id == run.tenant_id, ToolCall.run_id == run.id)
    rows = {row.id: row for row in session.exec(query)}
    called = [call["id"] for entry in entries for call in entry.body.get("calls", [])]
    if sorted(called) != sorted(rows):
        yield f"run {run.id}: {len(called)} calls, {len(rows)} records"
    yield from (f"call {row.id} is {row.state}" for row in rows.values() if row.state in OPEN_CALLS)
    inputs = Counter(entry.body["message_id"] for entry in entries if entry.kind == EntryKind.INPUT)
    yield from (f"run {run.id}: input {id} twice" for id, number in inputs.items() if number > 1)


def unfit(asked: Sequence[Entry]) -> Iterable[str]:
    """Why a provider that forgives nothing would refuse this request."""
    yield from illegal(asked)
    if asked[-1].kind == EntryKind.RESPONSE:
        yield "the model spoke last"
    kinds = [entry.kind for entry in asked]
    if kinds[0] != EntryKind.SYSTEM or kinds.count(EntryKind.SYSTEM) != 1:
        yield "not one system text, and first"


def illegal(entries: Sequence[Entry]) -> Iterable[str]:
    """Which calls and results of these entries are no pairs, each result right after its call."""
    due: list[str] = []
    for entry in entries:
        if entry.kind == EntryKind.RESULTS:
            if (id := entry.body["call_id"]) in due:
                due.remove(id)
            else:
                yield f"result {id} answers nothing"
        elif due and entry.kind != EntryKind.SUMMARY:
            yield f"{entry.kind.value} before the results of {due}"
            due = []
        if entry.kind == EntryKind.RESPONSE:
            due = [call["id"] for call in entry.body["calls"]]
    if due:
        yield f"no result of {due}"


def _of_requests(session: Session, tenant_id: str) -> Iterable[str]:
    query = select(ModelRequest).where(ModelRequest.tenant_id == tenant_id)
    for row in session.exec(query):
        if row.state == "started":
            yield f"request {row.id} is still open"


def _of_effects(session: Session, tenant_id: str) -> Iterable[str]:
    entries = session.exec(
        select(AuditEntry).where(AuditEntry.tenant_id == tenant_id, AuditEntry.outcome == "done")
    ).all()
    twice = Counter(entry.call_id for entry in entries)
    yield from (f"call {id} was done {number} times" for id, number in twice.items() if number > 1)
    done = {entry.call_id for entry in entries}
    query = select(ToolCall).where(ToolCall.tenant_id == tenant_id, ToolCall.kind == "command")
    for row in session.exec(query):
        has_entry = any(f"{row.id}.{attempt}" in done for attempt in range(1, row.attempt + 1))
        if (row.state == "done") != has_entry and row.state != "unknown":
            yield f"call {row.id} is {row.state}, in the trail: {has_entry}"


def titles(session: Session) -> Counter[str]:
    """Reports by their titles."""
    return Counter(session.exec(select(Report.title)).all())


def texts(session: Session, aid: str) -> Counter[str]:
    """What somebody said, by its text."""
    query = select(Message).where(Message.sender_aid == aid).order_by(col(Message.log_seq))
    return Counter(str((row.payload or {}).get("text", "")) for row in session.exec(query))


def requests(session: Session, run_id: str) -> list[tuple[int, int, str]]:
    """Turn, attempt and state of what a run asked its model."""
    query = select(ModelRequest).where(ModelRequest.run_id == run_id)
    rows: list[Any] = sorted(session.exec(query), key=lambda row: (row.turn, row.attempt))
    return [(row.turn, row.attempt, row.state) for row in rows]


def sent_more_than_once(session: Session) -> list[str]:
    """Ids by which senders name more than one of their messages."""
    named = Counter(session.exec(select(Message.message_id)).all())
    return [id for id, number in named.items() if number > 1]
