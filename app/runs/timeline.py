"""What a run did, in order: what it heard, its turns with thoughts and calls, what it said.

Thoughts are put in for those alone who may see them (UI-12); a thought is never a message (UI-5).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlmodel import Session, col, select

from app.aun.markdown import words_of
from app.aun.models import Message
from app.commands.approval_models import Approval
from app.runs.run_models import (
    ModelRequest,
    Run,
    RunInput,
    SentMessage,
    ToolCall,
    TranscriptEntry,
)
from app.runs.states import CallState, EntryKind, InputState, Purpose, RequestState, RunState

AT_MOST = 300  # turns of one conversation's page
BROKEN = frozenset(
    {
        RequestState.CUT,
        RequestState.REFUSED,
        RequestState.FAILED,
        RequestState.CANCELLED,
        RequestState.ABANDONED,
    }
)


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call, with the approval it waited for."""

    row: ToolCall
    approval: Approval | None = None

    @property
    def undo(self) -> Mapping[str, Any] | None:
        """The command that takes it back, and its input; None where there is none."""
        undo = (self.row.result or {}).get("undo") if self.row.state == CallState.DONE else None
        is_whole = isinstance(undo, dict) and undo.get("cmdCode") and undo.get("input") is not None
        return undo if is_whole else None

    @property
    def record(self) -> Mapping[str, Any] | None:
        """The record it changed, as the result names it."""
        record = (self.row.result or {}).get("record")
        return record if isinstance(record, dict) and record.get("id") else None

    @property
    def took(self) -> timedelta | None:
        """How long it took; of one that waited for a person that is nothing to tell."""
        if self.row.started_at is None or self.row.ended_at is None or self.approval is not None:
            return None
        return self.row.ended_at - self.row.started_at


@dataclass(frozen=True, slots=True)
class Thought:
    """The text of one attempt: of the accepted one whole, of one that broke off what there was."""

    attempt: int
    text: str
    is_streaming: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One logical request of a run, with all its attempts, and the calls of its response.

    Attributes:
        thoughts: of each attempt; none where the reader may not see them.
        requests: its attempts, the oldest first.
        rev: grows with all that is told of it.
    """

    run_id: str
    number: int
    thought_id: str
    started_at: datetime
    requests: tuple[ModelRequest, ...]
    thoughts: tuple[Thought, ...] = ()
    calls: tuple[Call, ...] = ()
    said: tuple["Said", ...] = ()
    sees_thoughts: bool = True

    @property
    def is_thinking(self) -> bool:
        """Whether an answer of the model is still on its way."""
        return any(request.state == RequestState.STARTED for request in self.requests)

    @property
    def stands_at(self) -> datetime:
        """When it has its place among messages: behind what it said before its first other act."""
        spoke = {said.call_id: said.at for said in self.said}
        acts = [call.row for call in self.calls if call.row.id not in spoke]
        began = acts[0].started_at if acts else None
        if began is None or not any(at <= began for at in spoke.values()):
            return self.started_at
        return began

    @property
    def took(self) -> timedelta | None:
        """How long the model took over it, all attempts."""
        ends = [request.ended_at for request in self.requests if request.ended_at is not None]
        return max(ends) - self.started_at if ends and not self.is_thinking else None

    @property
    def broke_off(self) -> tuple[ModelRequest, ...]:
        """The attempts that came to nothing."""
        return tuple(each for each in self.requests if each.state in BROKEN)

    @property
    def has_thoughts(self) -> bool:
        """Whether there is anything to open."""
        return any(each.text for each in self.thoughts)

    @property
    def rev(self) -> int:
        """Version of what is drawn."""
        ended = sum(request.state != RequestState.STARTED for request in self.requests)
        return ended + sum(call.row.rev for call in self.calls)


@dataclass(frozen=True, slots=True)
class Said:
    """A message that a run sent, its text in words without marks."""

    message_id: str
    conversation_id: str
    text: str
    at: datetime
    turn: int
    call_id: str | None

    @property
    def is_closing(self) -> bool:
        """Whether it is the text a turn closed with, and no call's."""
        return self.call_id is None


@dataclass(frozen=True, slots=True)
class Heard:
    """An input of a run, and the number of the turn that followed it."""

    row: RunInput
    conversation_id: str | None
    text: str
    before_turn: int


@dataclass(frozen=True, slots=True)
class Noted:
    """A line of the host, or a shortened context."""

    kind: str
    text: str
    before_turn: int
    seq: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """Everything a run's page tells, in order."""

    turns: tuple[Turn, ...] = ()
    heard: tuple[Heard, ...] = ()
    queued: tuple[Heard, ...] = ()
    noted: tuple[Noted, ...] = ()
    children: tuple[Run, ...] = field(default=())


def of_run(session: Session, run: Run, *, sees_thoughts: bool) -> Timeline:
    """A run from its first input to its end, or to now."""
    notes = _noted(session, run)
    children = select(Run).where(Run.tenant_id == run.tenant_id, Run.parent_run_id == run.id)
    return Timeline(
        turns=tuple(turns(session, [run], sees_thoughts=sees_thoughts)),
        heard=_heard(session, run),
        queued=_queued(session, run),
        noted=notes,
        children=tuple(session.exec(children.order_by(col(Run.queued_at))).all()),
    )


def one_turn(session: Session, run: Run, number: int, *, sees_thoughts: bool) -> Turn | None:
    """One turn as it is now."""
    return next(iter(turns(session, [run], sees_thoughts=sees_thoughts, number=number)), None)


def in_conversation(
    session: Session,
    tenant_id: str,
    user_id: str,
    conversation_id: str,
    since: datetime | None = None,
    until: datetime | None = None,
) -> tuple[list[Turn], list[Run]]:
    """The turns of a user's own runs in a conversation and the runs that ended, of some time."""
    started: list[Any] = [
        ModelRequest.tenant_id == tenant_id,
        ModelRequest.purpose == Purpose.TURN,
        ModelRequest.attempt == 1,
        Run.user_id == user_id,
        Run.conversation_id == conversation_id,
        *([col(ModelRequest.started_at) >= since] if since else []),
        *([col(ModelRequest.started_at) < until] if until else []),
    ]
    query = (
        select(ModelRequest.run_id, ModelRequest.turn)
        .join(Run, (col(Run.tenant_id) == ModelRequest.tenant_id) & (Run.id == ModelRequest.run_id))
        .where(*started)
        .order_by(col(ModelRequest.started_at).desc())
        .limit(AT_MOST)
    )
    wanted = set(session.exec(query).all())
    runs = _runs(session, tenant_id, {run_id for run_id, _ in wanted})
    found = [
        turn
        for turn in turns(session, runs, sees_thoughts=True)
        if (turn.run_id, turn.number) in wanted
    ]
    return found, _ended(session, tenant_id, user_id, conversation_id, since, until)


def turns(
    session: Session, runs: Sequence[Run], *, sees_thoughts: bool, number: int | None = None
) -> list[Turn]:
    """The turns of runs, in order."""
    by_id = {run.id: run for run in runs}
    if not by_id:
        return []
    requests = _by_turn(_of(session, ModelRequest, by_id, number))
    answered = by_id if _has_answers(requests) else {}
    calls = _by_turn(_of(session, ToolCall, answered, number))
    said = _said(session, answered, number)
    responses = _responses(session, answered, number) if sees_thoughts else {}
    approvals = _approvals(
        session, runs[0].tenant_id, [row for each in calls.values() for row in each]
    )
    found = []
    for key, attempts in requests.items():
        asked = [each for each in attempts if each.purpose == Purpose.TURN]
        if not asked:
            continue
        texts = _thoughts(asked, responses.get(key), said.get(key, [])) if sees_thoughts else ()
        found.append(
            Turn(
                run_id=key[0],
                number=key[1],
                thought_id=asked[0].thought_id,
                started_at=asked[0].started_at,
                requests=tuple(asked),
                thoughts=texts,
                calls=tuple(Call(row, approvals.get(row.approval_id or "")) for row in calls[key]),
                said=tuple(said.get(key, ())),
                sees_thoughts=sees_thoughts,
            )
        )
    return sorted(found, key=lambda turn: (turn.started_at, turn.number))


def _has_answers(requests: Mapping[Any, Sequence[ModelRequest]]) -> bool:
    """Whether any came to an end: before that there are no calls, and no words."""
    return any(
        each.state != RequestState.STARTED for attempts in requests.values() for each in attempts
    )


def _thoughts(
    requests: Sequence[ModelRequest],
    response: Mapping[str, Any] | None,
    said: Sequence[Said],
) -> tuple[Thought, ...]:
    """What the model wrote, by attempts; what went out as a message is not thought any more."""
    is_published = any(each.is_closing for each in said)
    found = []
    for request in requests:
        text = request.fragment or ""
        if request.state == RequestState.DONE and response is not None:
            parts = [*response.get("thoughts", ())]
            parts += [] if is_published else [response.get("text") or ""]
            text = "\n\n".join(filter(None, map(str, parts)))
        found.append(Thought(request.attempt, text, request.state == RequestState.STARTED))
    return tuple(found)


def _of(session: Session, model: Any, runs: Mapping[str, Run], number: int | None) -> list[Any]:
    if not runs:
        return []
    tenant_id = next(iter(runs.values())).tenant_id
    query = select(model).where(model.tenant_id == tenant_id, model.run_id.in_(sorted(runs)))
    if number is not None:
        query = query.where(model.turn == number)
    last: Any = model.attempt if model is ModelRequest else model.ordinal
    return list(session.exec(query.order_by(model.turn, last)).all())


def _by_turn(rows: Iterable[Any]) -> dict[tuple[str, int], list[Any]]:
    found: dict[tuple[str, int], list[Any]] = defaultdict(list)
    for row in rows:
        found[row.run_id, row.turn].append(row)
    return found


def _responses(
    session: Session, runs: Mapping[str, Run], number: int | None
) -> dict[tuple[str, int], dict[str, Any]]:
    if not runs:
        return {}
    tenant_id = next(iter(runs.values())).tenant_id
    query = select(TranscriptEntry).where(
        TranscriptEntry.tenant_id == tenant_id,
        col(TranscriptEntry.run_id).in_(sorted(runs)),
        TranscriptEntry.kind == EntryKind.RESPONSE,
    )
    if number is not None:
        query = query.where(TranscriptEntry.turn == number)
    return {(row.run_id, row.turn): row.body for row in session.exec(query)}


def _said(
    session: Session, runs: Mapping[str, Run], number: int | None
) -> dict[tuple[str, int], list[Said]]:
    if not runs:
        return {}
    tenant_id = next(iter(runs.values())).tenant_id
    query = (
        select(SentMessage, Message)
        .join(
            Message,
            (col(Message.tenant_id) == SentMessage.tenant_id)
            & (col(Message.id) == SentMessage.message_id),
        )
        .where(SentMessage.tenant_id == tenant_id, col(SentMessage.run_id).in_(sorted(runs)))
        .order_by(col(SentMessage.at))
    )
    if number is not None:
        query = query.where(SentMessage.turn == number)
    found: dict[tuple[str, int], list[Said]] = defaultdict(list)
    for sent, message in session.exec(query):
        found[sent.run_id, sent.turn].append(
            Said(
                message_id=sent.message_id,
                conversation_id=sent.conversation_id,
                text=_words(message),
                at=sent.at,
                turn=sent.turn,
                call_id=sent.call_id,
            )
        )
    return found


def _approvals(session: Session, tenant_id: str, calls: Sequence[ToolCall]) -> dict[str, Approval]:
    wanted = {row.approval_id for row in calls if row.approval_id}
    if not wanted:
        return {}
    query = select(Approval).where(
        Approval.tenant_id == tenant_id, col(Approval.id).in_(sorted(wanted))
    )
    return {row.id: row for row in session.exec(query)}


def _heard(session: Session, run: Run) -> tuple[Heard, ...]:
    query = (
        select(TranscriptEntry)
        .where(TranscriptEntry.tenant_id == run.tenant_id, TranscriptEntry.run_id == run.id)
        .where(TranscriptEntry.kind == EntryKind.INPUT)
        .order_by(col(TranscriptEntry.seq))
    )
    turn_after = {row.input_id: row.turn + 1 for row in session.exec(query) if row.input_id}
    inputs = _inputs(session, RunInput.tenant_id == run.tenant_id, RunInput.run_id == run.id)
    return tuple(
        Heard(row, run.conversation_id, _text(message), turn_after.get(row.id, 1))
        for row, message in inputs
        if row.state != InputState.QUEUED
    )


def _queued(session: Session, run: Run) -> tuple[Heard, ...]:
    """What waits in the lane of a run that goes on."""
    if run.lane_id is None or run.state in {RunState.FAILED, RunState.COMPLETED}:
        return ()
    inputs = _inputs(
        session,
        RunInput.tenant_id == run.tenant_id,
        RunInput.lane_id == run.lane_id,
        RunInput.state == InputState.QUEUED,
    )
    return tuple(Heard(row, run.conversation_id, _text(message), 0) for row, message in inputs)


def _inputs(session: Session, *conditions: Any) -> list[tuple[RunInput, Message | None]]:
    query = (
        select(RunInput, Message)
        .outerjoin(
            Message,
            (col(Message.tenant_id) == RunInput.tenant_id)
            & (col(Message.id) == RunInput.message_id),
        )
        .where(*conditions)
        .order_by(col(RunInput.accepted_at), col(RunInput.log_seq))
        .limit(AT_MOST)
    )
    return list(session.exec(query).all())


def _noted(session: Session, run: Run) -> tuple[Noted, ...]:
    query = (
        select(TranscriptEntry)
        .where(TranscriptEntry.tenant_id == run.tenant_id, TranscriptEntry.run_id == run.id)
        .where(col(TranscriptEntry.kind).in_([EntryKind.NOTE, EntryKind.SUMMARY]))
        .order_by(col(TranscriptEntry.seq))
        .limit(AT_MOST)
    )
    return tuple(
        Noted(
            kind="summary" if row.kind == EntryKind.SUMMARY else str(row.body.get("kind", "note")),
            text="" if row.kind == EntryKind.SUMMARY else str(row.body.get("text", "")),
            before_turn=row.turn + 1,
            seq=row.seq,
        )
        for row in session.exec(query)
    )


def _runs(session: Session, tenant_id: str, ids: Collection[str]) -> list[Run]:
    if not ids:
        return []
    query = select(Run).where(Run.tenant_id == tenant_id, col(Run.id).in_(sorted(ids)))
    return list(session.exec(query).all())


def _ended(
    session: Session,
    tenant_id: str,
    user_id: str,
    conversation_id: str,
    since: datetime | None,
    until: datetime | None,
) -> list[Run]:
    query = select(Run).where(
        Run.tenant_id == tenant_id,
        Run.conversation_id == conversation_id,
        Run.user_id == user_id,
        col(Run.ended_at).is_not(None),
        *([col(Run.ended_at) >= since] if since else []),
        *([col(Run.ended_at) < until] if until else []),
    )
    return list(session.exec(query.order_by(col(Run.ended_at).desc()).limit(AT_MOST)).all())


def _text(message: Message | None) -> str:
    payload = message.payload if message and message.recalled_at is None else None
    text = payload.get("text") if payload else None
    return text if isinstance(text, str) else ""


def _words(message: Message) -> str:
    text = _text(message)
    return words_of(message.html) if text and message.html else text
