"""The frozen clock: wall-clock time stands still until a test moves it; measured time goes on."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import time_machine

START = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)  # a Monday morning


class Clock:
    """What time it is, for this process."""

    def __init__(self, traveller: time_machine.Traveller) -> None:
        self._traveller = traveller

    @property
    def now(self) -> datetime:
        """The time, aware, in UTC."""
        return datetime.now(UTC)

    def move(
        self, *, seconds: float = 0, minutes: float = 0, hours: float = 0, days: float = 0
    ) -> datetime:
        """Let so much time pass, or go back where it is negative; gives the new time."""
        self._traveller.shift(timedelta(seconds=seconds, minutes=minutes, hours=hours, days=days))
        return self.now

    def set(self, moment: datetime) -> None:
        """Make it `moment`."""
        self._traveller.move_to(moment, tick=False)


@contextmanager
def frozen(at: datetime = START) -> Iterator[Clock]:
    """Freeze the clock at `at`."""
    with time_machine.travel(at, tick=False) as traveller:
        yield Clock(traveller)
