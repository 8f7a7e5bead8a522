"""What a run writes: at once, or in one commit with what it writes next.

What only records what is over may wait for the next unit. Nothing begins without a unit of its own,
which takes along what waits: a crash in between leaves what a crash right before would have left.
"""

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from app.kernel import db
from app.kernel.db import Work
from app.runs.session import RunSession, Unwritten

P = ParamSpec("P")
T = TypeVar("T")


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

    Raises:
        Whatever a unit raises: nothing was written. What waits goes on waiting, unless it was that
            which failed: then it goes, with what came after it.
    """
    if not run.unwritten:
        return await db.transaction(unit, *args, **kwargs)
    waiting, run.unwritten = run.unwritten, []
    written: list[Unwritten] = []
    units = (*waiting, Unwritten(unit, args, kwargs))
    try:
        done: T = await db.transaction(_together, units, written)
    except Exception:
        run.unwritten = [*written[: len(waiting)], *run.unwritten]
        raise
    return done


async def flush(run: RunSession) -> None:
    """Commit what waits.

    Raises:
        LeaseLost: it is not ours to write any more.
    """
    if run.unwritten:
        await now(run, _nothing)


def _together(work: Work, units: tuple[Unwritten, ...], written: list[Unwritten]) -> Any:
    """What the last of them returns; `written` are those that did not fail."""
    written.clear()  # it may run again
    done = None
    for each in units:
        done = each.unit(work, *each.args, **each.kwargs)
        written.append(each)
    return done


def _nothing(_work: Work) -> None:
    """All of it waited."""
