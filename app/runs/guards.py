"""What holds before every turn: ours, not stopped, still eligible, and a step left (RUN-26)."""

from dataclasses import dataclass
from typing import Any

from app.kernel import clock
from app.kernel.db import Work
from app.runs import authority, inputs, lease, spending, steps, writing
from app.runs.outcome import Suspended
from app.runs.session import RunSession
from app.runs.states import WaitKind


@dataclass(frozen=True, slots=True)
class Passed:
    """The turn may begin; `is_last`: it is asked with tools off, to end in words (RUN-77).

    With `has_steering` it may not yet: somebody wrote meanwhile, and is heard first.
    """

    is_last: bool = False
    is_paused: bool = False
    has_steering: bool = False


async def before_turn(run: RunSession) -> Suspended | None:
    """Admit one steering input, where there is one, and take a step; a pause parks the run.

    A round begins here, or a batch is whole. The look for steering is in the commit of the step.
    Nothing is taken where no request is to go out.

    Raises:
        Cancelled: somebody stopped it, or what it stands on is gone.
        LeaseLost: another worker took over.
        LimitReached: steps, tokens, money or time are used up.
    """
    run.check()
    if not run.transcript.asks_the_model and not await inputs.admit_steering(run):
        return None
    passed = await writing.now(run, _pass, run)
    if passed.has_steering:
        await inputs.admit_steering(run)
        run.has_heard = True  # one at a boundary, and one that is held is not asked again
        passed = await writing.now(run, _pass, run)
    run.has_heard = False
    if passed.is_paused:
        return Suspended(kind=WaitKind.PAUSE)
    run.is_last_step = passed.is_last
    return None


async def before_request(run: RunSession) -> bool:
    """The same before one more request within a turn; whether its step is the last.

    Raises:
        Cancelled, LeaseLost, LimitReached: it may not go out.
    """
    run.check()
    return (await writing.now(run, _take_step, run)).is_last


def _pass(work: Work, run: RunSession) -> Passed:
    lease.hold_unless_stopped(work, run.claim)
    if not run.has_heard and inputs.has_steering(work.connection, run):
        return Passed(has_steering=True)
    now = _standing(work, run)
    if authority.is_paused(now):
        return Passed(is_paused=True)
    return _spend(work, run, now)


def _take_step(work: Work, run: RunSession) -> Passed:
    return _spend(work, run, _standing(work, run))


def _standing(work: Work, run: RunSession) -> Any:
    lease.hold_unless_stopped(work, run.claim)
    now = authority.standing(work.connection, run.claim.tenant_id, run.claim.run_id)
    authority.judge(now, lambda: work.session)
    return now


def _spend(work: Work, run: RunSession, now: Any) -> Passed:
    spending.check(work, now, run.content.limits, run.active_ms(clock.now()))
    return Passed(is_last=steps.take(work, now))
