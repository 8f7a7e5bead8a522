"""Drive one claimed run to an outcome.

    follow-up ─▶ [ steering ─▶ model ─▶ tools ─▶ steering ─▶ … ] ─▶ answer ─▶ follow-up?

This module only decides what happens next. Claiming the run and storing how it ended are the
worker's; receipts, requests, tools and checkpoints are modules of their own.
"""

from app.runs import checkpoint, guards, inputs, replies, request, tools
from app.runs.outcome import SILENCE, Complete, Reply, Suspended, Tools
from app.runs.session import RunSession


async def drive(run: RunSession) -> Complete | Suspended:
    """Answer the first input and then every follow-up, one at a time, in order.

    Raises:
        Cancelled: someone stopped the run; admitted inputs are settled as canceled.
        LeaseLost: another worker took over; nothing more may be written here.
        OutcomeUnknown: an outside effect may or may not have happened; never repeated here.
        RunFailed, LimitReached: it cannot, or may not, go on.
    """
    while True:
        answer = await _one_round(run)
        if isinstance(answer, Suspended):
            return answer
        if not await inputs.has_follow_up(run):
            return Complete(
                answer, reason=_reason(run)
            )  # goes out with the final state, in one transaction
        await replies.publish_and_settle(run, answer)  # first close what was asked,
        if not await inputs.admit_follow_up(run):  # then give the next its receipt
            return Complete(SILENCE)  # withdrawn meanwhile, and the answer is already out


async def _one_round(run: RunSession) -> Reply | Suspended:
    while True:
        if parked := await guards.before_turn(run):  # steering first: a batch is never cut in two
            return parked
        match await request.next_turn(run):
            case Suspended() as waiting:  # a wait that was stored, and has not come true
                return waiting
            case Reply() as reply:
                if await inputs.admit_steering(run):
                    continue
                if not await replies.remind(run, reply):  # once: nothing was sent yet (RUN-53)
                    return reply
            case Tools() as batch:
                waiting_call = await tools.run_batch(run, batch)
                checkpoint.save(run)
                if waiting_call:
                    return waiting_call


def _reason(run: RunSession) -> str | None:
    return "last_step" if run.is_last_step else None
