"""Wakes many who wait for about the same moment with one timer for all of them.

A timer of an event loop is half a KiB; ten thousand idle streams would have one each.
"""

import asyncio
import math
from typing import Protocol
from weakref import WeakKeyDictionary

STEPS = 6  # nobody is woken early, and nobody later than by a 32nd of the wait


class Sleeper(Protocol):
    """Who waits."""

    def tire(self) -> None:
        """The moment came; on its loop."""


Moment = set[Sleeper]  # they leave it when they need not be woken any more


class Beats:
    """The moments of one event loop for which somebody waits."""

    def __init__(self) -> None:
        self._moments: dict[float, Moment] = {}

    def wake(self, loop: asyncio.AbstractEventLoop, sleeper: Sleeper, within_s: float) -> Moment:
        """Wake `sleeper` after so many seconds."""
        step_s = math.ldexp(
            1, math.frexp(within_s)[1] - STEPS
        )  # a power of two: its sums are exact
        at_s = math.ceil((loop.time() + within_s) / step_s) * step_s
        moment = self._moments.get(at_s)
        if moment is None:
            moment = self._moments[at_s] = set()
            loop.call_at(at_s, self._beat, at_s)
        moment.add(sleeper)
        return moment

    def _beat(self, at_s: float) -> None:
        for sleeper in self._moments.pop(at_s):
            sleeper.tire()


_beats: WeakKeyDictionary[asyncio.AbstractEventLoop, Beats] = WeakKeyDictionary()


def wake(loop: asyncio.AbstractEventLoop, sleeper: Sleeper, within_s: float) -> Moment:
    """Let `loop` wake `sleeper` after so many seconds; on its thread."""
    found = _beats.get(loop)
    if found is None:
        found = _beats[loop] = Beats()
    return found.wake(loop, sleeper, within_s)
