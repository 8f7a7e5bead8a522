"""Admission: how an input gets its receipt, and how it settles with its run (agent-loop.md, 4).

Receipt, transcript entry and quota are one commit, before any model or tool stage (RUN-13); what is
not admitted stays queued (RUN-18). One input per boundary (RUN-11).
"""

import hashlib
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection
from sqlmodel import Session

from app.aun.models import Message
from app.kernel import clock, db, json
from app.kernel.db import Work
from app.runs import checkpoint, context, gates, judging, lanes, lease, rows, transcript, writing
from app.runs.checkpoint import At
from app.runs.gates import Held
from app.runs.models.protocol import Entry
from app.runs.run_models import Run
from app.runs.session import CurrentInput, RunSession
from app.runs.states import EntryKind, Hold, InputState, Mode, RunKind, SenderKind

LOOKED_AT = 20


@dataclass(frozen=True, slots=True)
class Admitted:
    """An input that has its receipt: what joins the transcript, and what is being handled now."""

    entry: Entry
    current: CurrentInput


async def admit_first(run: RunSession) -> bool:
    """Admit the input that opened or woke the run, whatever its mode (RUN-116).

    False: nothing is left of what it was opened for. A run that goes on with what it has, inside a
    batch, or without a lane needs none.

    Raises:
        LeaseLost, Cancelled: nothing may be admitted.
    """
    if run.transcript.open_batch() is not None:
        return True
    woken_by, has_receipt = await db.read(_woken_by, run)
    if woken_by is not None and await _admit(run, rows.QUEUED_ONE, input_id=woken_by):
        return True
    if has_receipt or run.facts.lane_id is None or run.facts.kind != RunKind.CONVERSATION:
        return True
    await judging.judge_due(run)
    return await _admit(run, rows.QUEUED_OPENING, run_id=run.claim.run_id)


async def admit_steering(run: RunSession) -> bool:
    """Admit one steering input, if there is one; never inside a batch.

    Raises:
        LeaseLost, Cancelled: nothing may be admitted.
    """
    if run.transcript.open_batch() is not None or not await _is_queued(run, Mode.STEERING):
        return False
    run.has_heard = await _admit(run, rows.QUEUED_OF, mode=Mode.STEERING.value)
    return run.has_heard


def has_steering(connection: Connection, run: RunSession) -> bool:
    """Whether steering waits that could be admitted now; a look, no claim on it."""
    return _lane_of(run) is not None and _has_queued(connection, run, Mode.STEERING)


async def has_follow_up(run: RunSession) -> bool:
    """Whether a follow-up could be admitted now; a look, no claim on it."""
    await judging.judge_due(run)
    if not await _is_queued(run, Mode.FOLLOW_UP):
        return False
    return await writing.now(run, _has_follow_up, run)


async def admit_follow_up(run: RunSession) -> bool:
    """Admit the next follow-up: a round and a scope of its own begin with it (RUN-20).

    Raises:
        LeaseLost, Cancelled: nothing may be admitted.
    """
    at = At(run.round + 1, run.scope + 1)
    if not await _admit(run, rows.QUEUED_OF, at=at, mode=Mode.FOLLOW_UP.value):
        return False
    run.round, run.scope, run.reminded = at.round, at.scope, False
    return True


def settle(work: Work, tenant_id: str, run_id: str, state: InputState, reason: str | None) -> None:
    """Give every accepted, unfinished input of a run its end (RUN-17); others are not touched."""
    settled = rows.SETTLE.run(
        work.connection,
        tenant_id=tenant_id,
        run_id=run_id,
        state=state.value,
        reason=reason[:40] if reason else None,
        now=clock.now(),
    ).all()
    if settled:
        lanes.tell(work, settled, work.session.get_one(Run, (tenant_id, run_id)).user_id)


async def _admit(run: RunSession, select: Any, at: At | None = None, **wanted: Any) -> bool:
    """Admit the first of the wanted inputs that passes, and take it into the session."""
    if run.facts.lane_id is None:
        return False
    admitted = await writing.now(run, _take_first, run, select, wanted, at)
    if admitted is None:
        return False
    run.transcript.add(admitted.entry)
    run.current_input = admitted.current
    run.before_input = len(run.history)
    return True


def _take_first(
    work: Work, run: RunSession, select: Any, wanted: dict[str, Any], at: At | None
) -> Admitted | None:
    lease.hold_unless_stopped(work, run.claim)
    lane = gates.lane(work, run.claim.tenant_id, run.facts.lane_id or "")
    queued = _first_that_passes(work, run, lane, select, wanted)
    return _accept(work, run, lane, queued, at) if queued is not None else None


def _first_that_passes(
    work: Work, run: RunSession, lane: Any, select: Any, wanted: dict[str, Any]
) -> Any:
    if not _has_step(work, run):
        gates.hold(work, lane, Held(Hold.STEPS, None))
        return None
    looked = {"moment": clock.now(), "limit": LOOKED_AT}
    key = {"tenant_id": lane.tenant_id, "lane_id": lane.id}
    for queued in select.run_with(work.connection, key | looked | wanted):
        verdict = gates.judge(lane, queued)
        if verdict is None:
            return queued
        gates.apply(work, lane, queued, verdict)
    return None


def _has_step(work: Work, run: RunSession) -> bool:
    """Whether a step is left to answer with, of the root and of this run's own share."""
    key = {"tenant_id": run.claim.tenant_id, "run_id": run.claim.run_id}
    return bool(rows.STEPS.run_with(work.connection, key).one().is_left)


def _accept(work: Work, run: RunSession, lane: Any, queued: Any, at: At | None) -> Admitted | None:
    seq = run.transcript.next_seq
    accepted = rows.ACCEPT.run(
        work.connection,
        tenant_id=queued.tenant_id,
        id=queued.id,
        run_id=run.claim.run_id,
        round=at.round if at else run.round,
        accepted_seq=seq,
        now=clock.now(),
    ).all()
    if not accepted:
        return None
    message = work.session.get_one(Message, (queued.tenant_id, queued.message_id))
    body = context.body_of(work.session, run.facts, message)
    body |= {"mode": queued.mode, "input_id": queued.id}
    if at is not None:
        checkpoint.write(work, run, at)
    entry = transcript.write(
        work, run.claim, seq, EntryKind.INPUT, body, turn=run.turn, input_id=queued.id
    )
    gates.count(work, lane, queued)
    lanes.tell(work, accepted, lane.user_id)
    return Admitted(entry, _current(queued, body))


def _current(queued: Any, body: dict[str, Any]) -> CurrentInput:
    text = body["text"]
    return CurrentInput(
        input_id=queued.id,
        message_id=queued.message_id,
        sent_as=queued.sent_as,
        sender_aid=queued.sender_aid,
        text=text,
        digest=hashlib.sha256(text.encode()).hexdigest(),
        is_from_person=queued.sender_kind == SenderKind.PERSON,
    )


def _has_follow_up(work: Work, run: RunSession) -> bool:
    lease.hold(work, run.claim)
    lane = gates.lane(work, run.claim.tenant_id, run.facts.lane_id or "")
    wanted = {"mode": Mode.FOLLOW_UP.value}
    return _first_that_passes(work, run, lane, rows.QUEUED_OF, wanted) is not None


async def _is_queued(run: RunSession, mode: Mode) -> bool:
    if _lane_of(run) is None:
        return False
    return await db.read(_look, run, mode)


def _look(session: Session, run: RunSession, mode: Mode) -> bool:
    return _has_queued(session.connection(), run, mode)


def _lane_of(run: RunSession) -> str | None:
    """Where its inputs come from; a run of another kind than a conversation hears none."""
    return run.facts.lane_id if run.facts.kind == RunKind.CONVERSATION else None


def _has_queued(connection: Connection, run: RunSession, mode: Mode) -> bool:
    found = rows.HAS_QUEUED.run(
        connection,
        tenant_id=run.claim.tenant_id,
        lane_id=_lane_of(run),
        mode=mode.value,
        moment=clock.now(),
    )
    return found.first() is not None


def _woken_by(session: Session, run: RunSession) -> tuple[str | None, bool]:
    """The input that ended the run's newest wait for a message, and whether it has receipts."""
    key = {"tenant_id": run.claim.tenant_id, "run_id": run.claim.run_id}
    answer = json.of_column(rows.WOKEN_BY.run_with(session.connection(), key).scalar())
    value = (answer or {}).get("value")
    has_receipt = rows.HAS_RECEIPT.run_with(session.connection(), key).first() is not None
    return value if isinstance(value, str) else None, has_receipt
