"""The one clock: aware UTC times for what people see, monotonic seconds for what is measured."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime

_told: ContextVar[datetime | None] = ContextVar("told", default=None)


def now() -> datetime:
    """The wall-clock time, aware, in UTC."""
    return _told.get() or datetime.now(UTC)


@contextmanager
def telling(moment: datetime) -> Iterator[None]:
    """Let everything inside, in this thread, happen at `moment`: for the story the demo tells."""
    token = _told.set(moment)
    try:
        yield
    finally:
        _told.reset(token)


def epoch_s() -> int:
    """Whole seconds since 1970, for claims and cookies."""
    return int(now().timestamp())


def monotonic_s() -> float:
    """Seconds on a clock that is never set back; only differences mean anything."""
    return time.monotonic()


def rfc3339(moment: datetime) -> str:
    """`moment` as RFC 3339 in UTC with microseconds, as the audit chain stores it (SEC-75)."""
    # isoformat takes a third of the time of strftime
    plain = moment if moment.tzinfo is UTC else moment.astimezone(UTC)
    return plain.isoformat(timespec="microseconds")[:-6] + "Z"
