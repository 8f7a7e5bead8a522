"""Who fails rests and is named; a store that is away is nobody's fault."""

import sqlite3
from collections.abc import Sequence

import pytest
from sqlalchemy.exc import OperationalError
from sqlmodel import Session
from structlog.testing import capture_logs

from app.kernel import db, due
from app.kernel.db import Work
from app.kernel.due import Due
from app.kernel.errors import Busy
from tests.clock import Clock

pytestmark = pytest.mark.usefixtures("opened")

BROKEN, OTHER = ("T", "broken"), ("T", "other")


def fail(rows: Due, fault: Exception) -> None:
    with rows.trying(BROKEN):
        raise fault


def test_one_that_fails_rests_longer_each_time_and_is_well_again_once_it_is_done(
    clock: Clock,
) -> None:
    rows = Due("row")
    rests = []
    for _ in range(12):
        assert rows.ready([BROKEN, OTHER]) == [BROKEN, OTHER]
        fail(rows, ValueError())
        began = clock.now
        while rows.rests(BROKEN):
            assert (rows.ready([BROKEN, OTHER]), rows.resting) == ([OTHER], 1)
            clock.move(seconds=1)
        rests.append((clock.now - began).total_seconds())

    assert rests == [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, due.LONGEST_S, due.LONGEST_S]
    assert rows.is_hopeless(BROKEN)
    with rows.trying(BROKEN):
        pass
    assert not rows.is_hopeless(BROKEN)


def test_who_looks_only_at_what_is_new_finds_what_failed_for_as_long_as_it_is_known(
    clock: Clock,
) -> None:
    rows = Due("row")
    assert rows.again() == []
    for _ in range(2):
        fail(rows, ValueError())
    assert rows.again() == [], "it rests"

    clock.move(seconds=1)
    assert rows.again() == [BROKEN]
    clock.move(seconds=due.FORGOTTEN_AFTER.total_seconds())
    assert rows.again() == [], "nobody found it due any more"


def test_a_clock_that_is_set_back_lets_nobody_rest_for_longer(clock: Clock) -> None:
    rows = Due("row")
    for _ in range(2):
        fail(rows, ValueError())
    assert rows.rests(BROKEN)

    clock.move(hours=-5)

    assert not rows.rests(BROKEN)


def test_a_store_that_is_away_is_the_fault_of_none(clock: Clock) -> None:
    rows = Due("row")
    gone = OperationalError("SELECT", {}, Exception("gone"))
    for fault in (gone, ExceptionGroup("several", [ValueError(), gone])):
        with pytest.raises(type(fault)):
            fail(rows, fault)

    assert rows.ready([BROKEN]) == [BROKEN]


def test_a_value_that_sqlite_cannot_read_is_its_own_fault() -> None:
    malformed = sqlite3.OperationalError("malformed JSON")
    malformed.sqlite_errorcode = sqlite3.SQLITE_ERROR
    assert not due.is_away(OperationalError("SELECT", {}, malformed))

    malformed.sqlite_errorcode = sqlite3.SQLITE_FULL
    assert due.is_away(OperationalError("SELECT", {}, malformed))


def test_one_that_somebody_holds_rests_and_never_becomes_hopeless(clock: Clock) -> None:
    rows = Due("row")
    for _ in range(due.TRIES + 1):
        if db.is_sqlite():  # there somebody holds the whole store
            with pytest.raises(Busy):
                fail(rows, Busy())
        else:
            fail(rows, Busy())
        clock.move(seconds=due.LONGEST_S)

    assert not rows.is_hopeless(BROKEN)


async def test_all_are_done_in_one_unit_and_apart_only_while_one_fails(clock: Clock) -> None:
    rows, units = Due("row"), list[object]()
    is_broken = True

    def unit(_work: Work, only: tuple[str, ...] | None) -> int:
        units.append(only)
        if is_broken and only in (None, BROKEN):
            raise ValueError
        return 2 if only is None else 1

    def find(_session: Session, more: int) -> Sequence[tuple[str, ...]]:
        return [BROKEN, OTHER]

    with capture_logs() as logged:
        assert await rows.together(unit, find) == 1
        assert await rows.together(unit, find) == 1
        assert await rows.together(unit, find) == 1
    assert units == [None, BROKEN, OTHER, None, BROKEN, OTHER, OTHER]
    named = [each for each in logged if each["event"] == "due_failed"]
    assert {(each["kind"], each["tenant_id"], each["row_id"]) for each in named} == {
        ("row", "T", "broken")
    }
    assert [each["attempt"] for each in named] == [1, 2]

    units.clear()
    is_broken = False
    clock.move(seconds=1)
    assert await rows.together(unit, find) == 2
    assert units == [None]
