"""One logical request to the model: retried, recovered once from overflow, checked whole.

Only a complete response joins the transcript; a fragment stays for the page (RUN-28, RUN-82).
Tools are never part of a retry: the same request goes out again, byte for byte (RUN-25, RUN-81).
"""

import asyncio
import random
from contextlib import suppress

from app.kernel import db
from app.runs import attempts, budget, compaction, guards, heads, offering, streaming
from app.runs.attempts import Attempt
from app.runs.errors import LeaseLost, RunFailed
from app.runs.models.protocol import Ask, ModelFault, Response
from app.runs.outcome import SILENCE, WAITING_FOR, Reply, Suspended, Tools, reply_of
from app.runs.session import RunSession
from app.runs.states import WaitKind

TRIES = 4
FIRST_WAIT_S, LONGEST_WAIT_S, LONGEST_ASKED_S = 0.5, 20.0, 60.0
TRUNCATED = "length"
SHORTER = "Your last answer was cut off at the length limit. Answer again, and be shorter."
LAST_STEP = "This is your last step: no tool can be called any more. Say what there is to say."


async def next_turn(run: RunSession) -> Reply | Tools | Suspended:
    """What the model wants next; what is stored of it comes before any request (RUN-67).

    Raises:
        RunFailed: there is no answer, or none that can be used.
        Cancelled, LeaseLost: it was stopped meanwhile.
    """
    if (batch := run.transcript.open_batch()) is not None:
        run.tools = await offering.tools_of(run)
        return batch
    if (waits := run.transcript.closing_wait()) is not None:
        return _waiting(run, waits)
    if run.transcript.has_finished_silently:
        return SILENCE
    if (text := run.transcript.closing_text()) is not None:
        return reply_of(text)
    return await _ask(run)


async def _ask(run: RunSession) -> Reply | Tools:
    run.tools = await offering.tools_of(run)
    run.turn += 1
    await heads.look(run)
    await _note_outside(run)
    await _note_last_step(run)
    response = await _answer(run, await compaction.fit(run))
    if response.finish == TRUNCATED:
        await _once_more(run)
        await attempts.note(run, "shorter", SHORTER)
        response = await _answer(run, budget.ask_of(run))
        if response.finish == TRUNCATED:
            raise RunFailed("truncated", "The model's answers were cut off twice.")
    return _read(run, response)


async def _once_more(run: RunSession) -> None:
    """One more request within the turn: it takes a step, and passes what a turn passes (RUN-26)."""
    if await guards.before_request(run) and not run.is_last_step:
        run.is_last_step = True
        await _note_last_step(run)


async def _note_outside(run: RunSession) -> None:
    if (away := run.outside.note()) is not None:
        await attempts.note(run, "outside", away)


async def _note_last_step(run: RunSession) -> None:
    if run.is_last_step:
        await attempts.note(run, "last_step", LAST_STEP)


def _read(run: RunSession, response: Response) -> Reply | Tools:
    batch = run.transcript.batch() if response.calls and not run.is_last_step else None
    if batch is not None:
        return batch
    return reply_of(response.text)


async def _answer(run: RunSession, ask: Ask) -> Response:
    """The response of one request, whose overflow is recovered from once (RUN-83)."""
    while True:
        try:
            return await _tried(run, ask)
        except ModelFault as fault:
            if fault.kind != "overflow":
                raise RunFailed(f"model_{fault.kind}", fault.public) from fault
            if run.allowance <= 0:
                raise RunFailed("context_overflow", fault.public) from fault
            run.allowance -= 1
            await compaction.recover(run)
            await _once_more(run)
            ask = budget.ask_of(run)


async def _tried(run: RunSession, ask: Ask) -> Response:
    thought_id = attempts.new_thought()
    first = await attempts.tried(run)
    for number in range(first + 1, first + TRIES + 1):
        run.check()
        run.tried = (run.turn, number)
        attempt = Attempt(run, ask, thought_id, number)
        try:
            return await _once(run, attempt, ask)
        except ModelFault as fault:
            if not fault.retryable or number == first + TRIES:
                raise
            await _wait(run, number - first, fault)
    raise AssertionError("unreachable")


async def _once(run: RunSession, attempt: Attempt, ask: Ask) -> Response:
    """One attempt, whose response joins the transcript unless it is too long."""
    response = await streaming.response_of(run, attempt, ask)
    try:
        entry = await db.transaction(attempt.accept, response)
    except LeaseLost:  # it comes too late for this run, and was paid for all the same (F-60)
        await db.transaction(attempt.count_late, response)
        raise
    if entry is not None:
        run.transcript.add(entry)
        budget.measure(run, ask, response)
    return response


async def _wait(run: RunSession, number: int, fault: ModelFault) -> None:
    """Wait before the next attempt; a stop ends it at once."""
    if fault.retry_after_s is not None:
        wait_s = min(fault.retry_after_s, LONGEST_ASKED_S)
    else:
        longest = min(FIRST_WAIT_S * 2 ** (number - 1), LONGEST_WAIT_S)
        wait_s = longest * random.uniform(0.5, 1.0)  # noqa: S311 - jitter
    with suppress(TimeoutError):
        async with asyncio.timeout(wait_s):
            await run.stop.wait()
    run.check()


def _waiting(run: RunSession, waits: object) -> Suspended:
    assert isinstance(waits, dict)  # noqa: S101 - we wrote it
    batch = run.transcript.batch()
    due_at = waits.get("due_at")
    return Suspended(
        kind=WaitKind(waits[WAITING_FOR]),
        call_id=batch.calls[0].id if batch else None,
        ref=waits.get("ref"),
        due_at=attempts.moment(due_at) if due_at else None,
        expects=waits.get("expects"),
        result=waits,
    )
