"""One attempt's stream, read to its end, a fault or a stop, and on record either way (RUN-28).

A stop does not wait for the next piece. What is not a whole response is none (RUN-82).
"""

import asyncio
from contextlib import aclosing, suppress

import structlog

from app.kernel import db
from app.runs import writing
from app.runs.attempts import Attempt
from app.runs.models.protocol import (
    Answered,
    Ask,
    CallDelta,
    ModelFault,
    Response,
    TextDelta,
    ThoughtDelta,
)
from app.runs.session import RunSession
from app.runs.states import RequestState

log = structlog.get_logger(__name__)

CUT_OFF = "The model's answer broke off."
TOO_SLOW = "The model took too long to answer."
FILTERED = "The provider's filter refused the answer."


async def response_of(
    run: RunSession, attempt: Attempt, ask: Ask, *, within_s: float | None = None
) -> Response:
    """The response of one attempt, recorded from before its first byte; to accept is the caller's.

    With `within_s` the whole of it is waited for no longer than that.

    Raises:
        ModelFault: it gave no response that can be used.
        Cancelled, LeaseLost: it was stopped.
    """
    await writing.now(run, attempt.begin)
    try:
        return await _streamed(run, attempt, ask, within_s)
    except ModelFault as fault:
        log.warning("model_fault", kind=fault.kind, diagnostic=fault.diagnostic)
        state = RequestState.CUT if fault.kind == "cut" else RequestState.FAILED
        await db.transaction(attempt.fail, state, fault)
        raise
    except BaseException:
        with suppress(Exception):
            await writing.whole(db.transaction(attempt.abandon, run.stopped is not None))
        raise


async def _streamed(
    run: RunSession, attempt: Attempt, ask: Ask, within_s: float | None
) -> Response:
    """The response; a stop does not wait for the next piece, and leaves the stream at rest."""
    stopping = asyncio.ensure_future(run.stop.wait())
    coming = asyncio.ensure_future(_heard(run, attempt, ask))
    try:
        await asyncio.wait(
            {coming, stopping}, timeout=within_s, return_when=asyncio.FIRST_COMPLETED
        )
        run.check()
        if not coming.done():
            raise ModelFault("timeout", retryable=True, public=TOO_SLOW)
        return await coming
    finally:
        stopping.cancel()
        coming.cancel()
        await asyncio.wait({coming})
        coming.cancelled() or coming.exception()  # seen, whatever it was


async def _heard(run: RunSession, attempt: Attempt, ask: Ask) -> Response:
    async with aclosing(run.model.stream(ask)) as stream:  # type: ignore[type-var]
        async for piece in stream:
            run.check()
            match piece:
                case ThoughtDelta(text=text) | TextDelta(text=text):
                    attempt.grow(text)
                case CallDelta():
                    attempt.heard()
                case Answered(response=response):
                    return _checked(response)
    raise ModelFault("cut", retryable=True, public=CUT_OFF)


def _checked(response: Response) -> Response:
    """The response, if it can be used or is merely too long (RUN-82).

    Raises:
        ModelFault: it was cut off, filtered, or ended in an error.
    """
    match response.finish:
        case "stop" | "tool_calls" | "length":
            return response
        case "content_filter":
            raise ModelFault("filter", public=FILTERED)
        case None:
            raise ModelFault("cut", retryable=True, public=CUT_OFF)
    raise ModelFault("server", retryable=True, public=CUT_OFF, diagnostic=str(response.finish))
