"""What is due for many: one that cannot be done keeps nobody from the others.

Who fails is named in the log, and rests before it is tried again, longer each time. What no try can
do is hopeless: its owner gives it an end, where there is one that is honest.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

import structlog
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlmodel import Session

from app.kernel import clock, db
from app.kernel.db import Work
from app.kernel.errors import Busy

log = structlog.get_logger(__name__)

TRIES = 8  # then it is hopeless: two minutes, in which what is amiss may be mended
LONGEST_S = 300.0  # rests between two tries
FORGOTTEN_AFTER = timedelta(hours=1)  # nobody asked for it any more

Key = TypeVar("Key", bound=tuple[str, ...])
Unit = Callable[[Work, tuple[str, ...] | None], int]
Find = Callable[[Session, int], Sequence[tuple[str, ...]]]


@dataclass(frozen=True, slots=True)
class _Failed:
    failures: int
    at: datetime
    until: datetime

    def rests(self, now: datetime) -> bool:
        return self.at <= now < self.until  # the clock may have been set back


class Due:
    """The rows of one kind that are due again and again, each known by a key: its tenant first.

    Args:
        kind: by which the log names them.
        longest_s: rests between two tries.
    """

    def __init__(self, kind: str, longest_s: float = LONGEST_S) -> None:
        self._kind = kind
        self._longest_s = longest_s
        self._known: dict[tuple[str, ...], _Failed] = {}
        self._opening = db.opening()

    @property
    def resting(self) -> int:
        """How many rest now: so many more have to be looked for, or they leave no room."""
        now = clock.now()
        return sum(failed.rests(now) for failed in list(self._failed.values()))

    def ready(self, found: Iterable[Key]) -> list[Key]:
        """Those that do not rest."""
        now = clock.now()
        return [key for key in found if not self.rests(key, now)]

    def rests(self, key: tuple[str, ...], now: datetime | None = None) -> bool:
        """Whether one failed a moment ago."""
        failed = self._failed.get(key)
        return failed is not None and failed.rests(now or clock.now())

    def again(self) -> list[tuple[str, ...]]:
        """Those that failed and rest no more, for who looks only at what is new."""
        now = clock.now()
        self._forget(now)
        return [key for key, failed in list(self._failed.items()) if not failed.rests(now)]

    def is_hopeless(self, key: tuple[str, ...]) -> bool:
        """Whether it failed so often that nobody can expect it to succeed."""
        failed = self._failed.get(key)
        return failed is not None and failed.failures >= TRIES

    @contextmanager
    def trying(self, key: tuple[str, ...]) -> Iterator[None]:
        """Do one of them inside: a fault of its own ends here, on record.

        Raises:
            Whatever says that the store is away: that is the fault of none.
        """
        try:
            yield
        except Exception as fault:
            if is_away(fault):
                raise
            self._note(key, fault)
        else:
            self._failed.pop(key, None)

    async def together(self, unit: Unit, find: Find) -> int:
        """All of them in one unit; where that fails, each in its own. How many were done.

        Args:
            unit: does all that are due (None), or the one of a key if it still is.
            find: the keys of the first ones that are due, and so many more.
        """
        if not self.resting:
            try:
                return await db.transaction(unit, None)
            except Exception as fault:  # noqa: BLE001 - each by itself says what it was
                part(self._kind, fault)
        done = 0
        for key in self.ready(await db.read(find, self.resting)):
            with self.trying(key):
                done += await db.transaction(unit, key)
        return done

    def together_now(self, unit: Unit, find: Find) -> int:
        """`together` for code without an event loop."""
        if not self.resting:
            try:
                return db.transact_now(unit, None)
            except Exception as fault:  # noqa: BLE001 - each by itself says what it was
                part(self._kind, fault)
        done = 0
        for key in self.ready(db.read_now(find, self.resting)):
            with self.trying(key):
                done += db.transact_now(unit, key)
        return done

    @property
    def _failed(self) -> dict[tuple[str, ...], _Failed]:
        """Those of the database that is open."""
        if self._opening != db.opening():
            self._known, self._opening = {}, db.opening()
        return self._known

    def _note(self, key: tuple[str, ...], fault: Exception) -> None:
        before, now = self._failed.get(key), clock.now()
        failures = before.failures if before else 0
        if not isinstance(fault, Busy):  # somebody holds it: that passes
            failures += 1
        # the second try is at the next look; what passes has passed by then
        rests_s = 0.0 if before is None else 2.0 ** max(failures - 2, 0)
        until = now + timedelta(seconds=min(rests_s, self._longest_s))
        self._forget(now)
        self._failed[key] = _Failed(failures, now, until)
        log.error(
            "due_failed",
            kind=self._kind,
            tenant_id=key[0],
            row_id="/".join(key[1:]),
            attempt=failures,
            exc_info=fault,
        )

    def _forget(self, now: datetime) -> None:
        for key, failed in list(self._failed.items()):
            if failed.until + FORGOTTEN_AFTER <= now:
                self._failed.pop(key, None)


def part(kind: str, fault: Exception) -> None:
    """What was to be done together failed: it is done apart, unless the store is away.

    Raises:
        The fault, where it is.
    """
    if is_away(fault):
        raise fault
    log.warning("not_done_together", kind=kind, fault=type(fault).__name__)


def is_away(fault: Exception) -> bool:
    """Whether the store is away, or has no room: not the fault of what was to be done."""
    if isinstance(fault, ExceptionGroup):
        return any(isinstance(each, Exception) and is_away(each) for each in fault.exceptions)
    if isinstance(fault, Busy):
        return db.is_sqlite()  # in PostgreSQL it is one row that somebody holds
    if isinstance(fault, OperationalError):  # SQLite: it could not read a value, malformed JSON
        return getattr(fault.orig, "sqlite_errorcode", None) != sqlite3.SQLITE_ERROR
    return isinstance(fault, InterfaceError)
