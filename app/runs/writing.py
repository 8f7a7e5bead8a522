"""What a run writes: at once, or in one commit with what it writes next.

What only records what is over may wait for the next unit. Nothing begins without a unit of its own,
which takes along what waits: a crash in between leaves what a crash right before would have left.
What waits does so until it is committed, whoever is cancelled meanwhile; what can never be written
goes, and the log names it.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, TypeVar

import structlog
from sqlalchemy.exc import InterfaceError, OperationalError, SQLAlchemyError

from app.kernel import db
from app.kernel.db import Work
from app.kernel.errors import Busy
from app.runs import lease
from app.runs.errors import LeaseLost, RunFailed
from app.runs.session import RunSession, Unwritten

log = structlog.get_logger(__name__)

INTERNAL = "The fault is ours, and it has been written down."
PASSING = (Busy, OperationalError, InterfaceError)  # the store was away, or had no room

P = ParamSpec("P")
T = TypeVar("T")


class NeverWritten(RunFailed):
    """What waited cannot be recorded: no call begins any more, and the trail tells of those made.

    It is the fault of none of those who come after: not of the unit that took it along.
    """

    def __init__(self) -> None:
        super().__init__("internal", INTERNAL)


def later(
    run: RunSession,
    unit: Callable[Concatenate[Work, P], object],
    *args: P.args,
    **kwargs: P.kwargs,
) -> None:
    """Write this with what the run writes next."""
    run.unwritten.append(Unwritten(unit, args, kwargs))


async def now(
    run: RunSession,
    unit: Callable[Concatenate[Work, P], T],
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """Commit a unit with all that waits before it; returns what it returned, once it is durable.

    A caller that is cancelled leaves when it is known what was written.

    Raises:
        NeverWritten: something that waited cannot be; it is gone, with what came after it.
        Whatever the unit raises: it wrote nothing, and what waits is written, or goes on waiting.
    """
    if not run.unwritten:
        return await db.transaction(unit, *args, **kwargs)
    done: T = await whole(_with_what_waits(run, Unwritten(unit, args, kwargs)))
    return done


async def at_last(
    run: RunSession,
    unit: Callable[Concatenate[Work, P], T],
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """The same for the unit by which a worker leaves a run, whatever became of what waits."""
    try:
        return await now(run, unit, *args, **kwargs)
    except NeverWritten:
        return await now(run, unit, *args, **kwargs)


async def flush(run: RunSession) -> None:
    """Commit what waits.

    Raises:
        LeaseLost: it is not ours to write any more.
        NeverWritten: some of it cannot be.
    """
    if run.unwritten:
        await now(run, _nothing)


async def whole(storing: Coroutine[Any, Any, T]) -> T:
    """Store it, though this task is cancelled: who leaves waits for it, and finds it over."""
    task = asyncio.ensure_future(storing)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.add_done_callback(_seen)
        await asyncio.wait({task})
        raise


def _seen(task: "asyncio.Task[Any]") -> None:
    """Nobody else hears how it ended any more."""
    if not task.cancelled() and (fault := task.exception()) is not None:
        log.warning("not_stored", fault=type(fault).__name__)


def forget(run: RunSession, why: Exception) -> None:
    """Let go of what waits; the log says of what."""
    names = [getattr(each.unit, "__qualname__", repr(each.unit)) for each in run.unwritten]
    run.unwritten.clear()
    run.in_doubt = None
    if names:
        log.error("never_written", run_id=run.claim.run_id, units=names, exc_info=why)


@dataclass(slots=True)
class _Tried:
    """How many units did not fail, and the mark of their transaction once all are done."""

    number: int = 0
    mark: str | None = None


async def _with_what_waits(run: RunSession, last: Unwritten) -> Any:
    async with run.writing:  # one whose caller was cancelled may be on its way still
        await _resolve_doubt(run)
        waiting = tuple(run.unwritten)
        tried = _Tried()
        try:
            done = await db.transaction(_together, (*waiting, last), tried)
        except LeaseLost:
            run.unwritten.clear()
            raise
        except PASSING:
            run.in_doubt = (len(waiting), tried.mark) if tried.mark else None
            raise
        except Exception as fault:
            if tried.number == len(waiting) and not isinstance(fault, SQLAlchemyError):
                raise  # its own: what waits is sound
            await _one_by_one(run)
            return await db.transaction(last.unit, *last.args, **last.kwargs)
        del run.unwritten[: len(waiting)]
        return done


async def _one_by_one(run: RunSession) -> None:
    """Commit what waits, each on its own: a session may hold a fault back until another's unit."""
    while run.unwritten:
        each, tried = run.unwritten[0], _Tried()
        try:
            await db.transaction(_together, (each,), tried)
        except LeaseLost:
            run.unwritten.clear()
            raise
        except PASSING:
            run.in_doubt = (1, tried.mark) if tried.mark else None
            raise
        except Exception as fault:
            forget(run, fault)
            raise NeverWritten from fault
        del run.unwritten[0]


async def _resolve_doubt(run: RunSession) -> None:
    """Forget what is stored, though the connection broke before it could be heard."""
    if run.in_doubt is None:
        return
    number, mark = run.in_doubt
    is_stored = await db.look(lease.was_committed, mark)
    run.in_doubt = None
    if is_stored:
        del run.unwritten[:number]


def _together(work: Work, units: tuple[Unwritten, ...], tried: _Tried) -> Any:
    """What the last of them returns."""
    tried.number, tried.mark = 0, None  # it may run again
    done = None
    for each in units:
        done = each.unit(work, *each.args, **each.kwargs)
        tried.number += 1
    tried.mark = lease.mark(work)
    return done


def _nothing(_work: Work) -> None:
    """All of it waited."""
