"""How often an AID may call: a steady rate and a burst above it (aun.md, 10).

`limits` counts windows; a client that starts 450 sends at once and then rests needs a bucket.
"""

from collections import OrderedDict
from dataclasses import dataclass

from app.aun.errors import Throttled
from app.aun.method import Cost
from app.kernel import clock

REMEMBERED = 50_000  # buckets; the one that was not touched the longest goes, full by then


@dataclass(frozen=True, slots=True)
class Rate:
    """So many a second, and so many at once."""

    per_s: float
    burst: int


RATES = {Cost.SEND: Rate(100, 1_000), Cost.OTHER: Rate(200, 400)}


class Buckets:
    """The buckets of one process."""

    def __init__(self) -> None:
        self._left: OrderedDict[tuple[str, Cost], tuple[float, float]] = OrderedDict()

    def take(self, aid: str, cost: Cost) -> None:
        """Take one.

        Raises:
            Throttled: none is left; says when there will be.
        """
        rate, now_s, key = RATES[cost], clock.monotonic_s(), (aid, cost)
        left, at_s = self._left.get(key, (float(rate.burst), now_s))
        left = min(rate.burst, left + (now_s - at_s) * rate.per_s)
        taken = left >= 1
        self._left[key] = (left - taken, now_s)
        self._left.move_to_end(key)
        if len(self._left) > REMEMBERED:
            self._left.popitem(last=False)
        if not taken:
            raise Throttled(retry_after_ms=max(1, round((1 - left) / rate.per_s * 1_000)))
