"""Asking the model whether to take part, where its release says so: one request without tools.

What it lets pass by, and what it waits with, never enters a context (RUN-16, RUN-71).
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from app.aun.models import Message
from app.kernel import clock, db
from app.kernel.db import Work
from app.runs import attempts, context, gates, lanes, lease, rows, steps, streaming, writing
from app.runs.attempts import Attempt
from app.runs.errors import LimitReached
from app.runs.models.protocol import Ask, Entry, ModelFault
from app.runs.participation import AGAIN_S, MOST, NOT_FOR_ME, Verdict
from app.runs.run_models import Run
from app.runs.session import RunSession
from app.runs.states import EntryKind, InputState, Purpose

PATIENCE_S = 60
OFFLINE = "offline"  # rules alone judge no talk: it stays silent, as without this policy
ASKED = (
    "Another agent said this in a group you are in; it was not addressed to you. Decide whether "
    "you take part. Answer with one word: participate, silent or wait."
)


@dataclass(frozen=True, slots=True)
class Waiting:
    """An input that is to be judged, and what the model reads of it."""

    input_id: str
    judged: int
    body: dict[str, Any]


async def judge_due(run: RunSession) -> None:
    """Judge what waits in the run's lane, one after the other.

    Raises:
        LeaseLost, Cancelled: nothing may be asked any more.
    """
    if run.content.participation != "model" or run.facts.group_id is None:
        return
    while (waiting := await writing.now(run, _next, run)) is not None:
        verdict = await _verdict(run, waiting)
        await db.transaction(_apply, run, waiting, verdict)


def _next(work: Work, run: RunSession) -> Waiting | None:
    """The oldest that is due and passes the gates; a step is taken for it."""
    lease.hold_unless_stopped(work, run.claim)
    lane = gates.lane(work, run.claim.tenant_id, run.facts.lane_id or "")
    key = {"tenant_id": lane.tenant_id, "lane_id": lane.id, "moment": clock.now()}
    for queued in rows.QUEUED_TO_JUDGE.run_with(work.connection, key):
        verdict = gates.judge(lane, queued)
        if verdict is not None:
            gates.apply(work, lane, queued, verdict)
            continue
        if not _take_step(work, run):
            return None
        message = work.session.get_one(Message, (queued.tenant_id, queued.message_id))
        return Waiting(queued.id, queued.judged, context.body_of(work.session, run.facts, message))
    return None


def _take_step(work: Work, run: RunSession) -> bool:
    if run.model.provider == OFFLINE:
        return True
    row = work.session.get_one(Run, (run.claim.tenant_id, run.claim.run_id), populate_existing=True)
    try:
        steps.take(work, row)
    except LimitReached:
        return False
    return True


async def _verdict(run: RunSession, waiting: Waiting) -> Verdict:
    if run.model.provider == OFFLINE:
        return Verdict.SILENT
    try:
        said = await _asked(run, waiting)
    except ModelFault:
        return Verdict.WAIT
    word = said.strip().strip(".\"'").casefold()
    return Verdict(word) if word in set(Verdict) else Verdict.SILENT


async def _asked(run: RunSession, waiting: Waiting) -> str:
    seq = run.transcript.next_seq
    note = {"kind": "participation", "text": ASKED}
    ask = Ask(
        entries=[
            *run.transcript,
            Entry(seq=seq, kind=EntryKind.HISTORY, body=waiting.body),
            Entry(seq=seq + 1, kind=EntryKind.NOTE, body=note),
        ],
        tools=(),
        tools_on=False,
        output_limit=64,
        locale=run.facts.locale,
        now=clock.now(),
        timezone=run.facts.timezone,
    )
    number = await db.read(attempts.tried_for, run.claim, run.turn, Purpose.PARTICIPATION)
    attempt = Attempt(run, ask, attempts.new_thought(), number + 1, Purpose.PARTICIPATION)
    response = await streaming.response_of(run, attempt, ask, within_s=PATIENCE_S)
    await db.transaction(attempt.accept_aside, response)
    return response.text


def _apply(work: Work, run: RunSession, waiting: Waiting, verdict: Verdict) -> None:
    lease.hold(work, run.claim)
    key: dict[str, Any] = {"tenant_id": run.claim.tenant_id, "id": waiting.input_id}
    judged = waiting.judged + 1
    if verdict == Verdict.PARTICIPATE:
        lanes.tell(work, rows.JUDGED.run_with(work.connection, key).all(), run.facts.user_id)
    elif verdict == Verdict.SILENT or judged >= MOST:
        closed = gates.close(work, key["tenant_id"], key["id"], InputState.ARCHIVED, NOT_FOR_ME)
        lanes.tell(work, closed, run.facts.user_id)
    else:
        again = clock.now() + timedelta(seconds=AGAIN_S)
        rows.WAIT_ON.run_with(work.connection, key | {"judged": judged, "again": again})
