"""`inventory.period.close`: one asks, another approves, and nothing is booked in it any more."""

import asyncio
import threading
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import text

from app.access import acting
from app.commands import pipeline
from app.commands.approval_errors import NotAnApprover
from app.commands.call import Call
from app.commands.outcome import Done
from app.commands.refused import Refused
from app.kernel import clock, db
from app.kernel.db import Work
from app.kernel.errors import NotFound
from app.packs.inventory.models import Move, Period
from tests.packs.inventory.warehouse import Warehouse, contents

CLOSE, RECEIVE = "inventory.period.close", "inventory.stock.receive"
BLOCKS = text("SELECT 1 FROM pg_locks WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid)) LIMIT 1")
LONGEST_S = 20


@pytest.mark.requirement("CMD-25", "CMD-12")
async def test_a_colleague_approves_and_nothing_is_booked_in_a_closed_month(
    warehouse: Warehouse,
) -> None:
    last = (clock.now().date().replace(day=1) - timedelta(days=1)).isoformat()
    receive = {**warehouse.where(), "quantity": 10}
    warehouse.do("inventory.stock.receive", **receive, bookedOn=last)
    warehouse.receive(5)

    asked = await warehouse.refused(CLOSE, "fiona", period=last[:7])
    for nobody in ("fiona", "mia"):
        with pytest.raises((NotAnApprover, NotFound)):
            await warehouse.approve(asked, nobody)
    await warehouse.agreed(CLOSE, "fiona", "frank", period=last[:7])
    late = await warehouse.refused("inventory.stock.receive", **receive, bookedOn=last)
    twice = await warehouse.refused(CLOSE, "fiona", period=last[:7])
    warehouse.receive(1)

    (period,) = contents(Period)
    listed = warehouse.do("inventory.period.list", "bob").result["rows"]
    assert (period["moves"], period["on_hand"]) == (1, 15)
    assert period["closed_by"] == warehouse.acme["fiona"].id
    assert (late.stage, late.reason) == ("handler", "period_closed")
    assert last[:7] in late.words("zh-CN")
    assert (twice.reason, twice.status) == ("duplicate_value", 409)
    assert [each["period"] for each in listed] == [last[:7]]


@pytest.mark.requirement("CMD-25", "CMD-16")
async def test_a_booking_after_the_question_makes_the_approval_stale(warehouse: Warehouse) -> None:
    last = (clock.now().date().replace(day=1) - timedelta(days=1)).isoformat()
    asked = await warehouse.refused(CLOSE, "fiona", period=last[:7])
    approval_id = await warehouse.approve(asked, "frank")
    wanted = warehouse.where()
    warehouse.do("inventory.stock.receive", **wanted, quantity=10, bookedOn=last)

    stale = await warehouse.refused(CLOSE, "fiona", period=last[:7], approval_id=approval_id)

    assert (stale.stage, stale.reason) == ("effect", "approval_stale")
    assert contents(Period) == []


@pytest.mark.requirement("CMD-25", "CMD-F10")
async def test_what_a_closed_month_counted_is_all_that_was_booked_in_it(
    warehouse: Warehouse,
) -> None:
    for months_ago in range(1, 6):
        last = months_before(months_ago)
        before, sent = len(contents(Move)), {"period": last[:7]}
        asked = await warehouse.refused(CLOSE, "fiona", **sent)
        approval_id = await warehouse.approve(asked, "frank")
        late = {**warehouse.where(), "quantity": 1, "bookedOn": last}

        closing = warehouse.call(CLOSE, "fiona", approval_id=approval_id, **sent)
        booking = [warehouse.call(RECEIVE, **late) for _ in range(6)]
        closed, *booked = await asyncio.gather(*map(outcome, (closing, *booking)))

        assert set(booked) <= {"done", "period_closed"}
        periods = [each for each in contents(Period) if each["period"] == last[:7]]
        made = len(contents(Move)) - before
        if closed == "done":
            (period,) = periods
            assert period["moves"] == made == booked.count("done")
        else:
            assert closed == "approval_stale"
            assert (periods, booked) == ([], ["done"] * 6)


@pytest.mark.requirement("CMD-25", "CMD-F10")
async def test_who_closes_waits_for_a_booking_under_way_and_holds_nothing_it_needs(
    warehouse: Warehouse,
) -> None:
    last = months_before(1)
    approval_id = await warehouse.approve(
        await warehouse.refused(CLOSE, "fiona", period=last[:7]), "frank"
    )
    booking = warehouse.call(RECEIVE, **warehouse.where(), quantity=1, bookedOn=last)
    closing = warehouse.call(CLOSE, "fiona", approval_id=approval_id, period=last[:7])
    is_under_way = threading.Event()
    tries: list[str] = []

    def book(work: Work) -> Done:
        tries.append("booking")
        acting.now_acting(work.connection, booking.principal, clock.now())
        is_under_way.set()
        wait_until_it_blocks(work)
        return pipeline.perform(work, booking)

    def close(_work: Work) -> Call:
        assert is_under_way.wait(LONGEST_S)
        tries.append("closing")
        return closing

    booked, closed = await asyncio.gather(
        db.transaction(book), pipeline.execute_as(close), return_exceptions=True
    )

    assert isinstance(booked, Done)
    assert isinstance(closed, Refused)
    assert (booked.outcome, closed.stage, closed.reason) == ("done", "effect", "approval_stale")
    assert sorted(tries) == ["booking", "closing"]  # neither had to start over


@pytest.mark.requirement("CMD-25", "CMD-F10")
async def test_a_booking_waits_for_who_closes_and_finds_the_month_closed(
    warehouse: Warehouse,
) -> None:
    last = months_before(1)
    approval_id = await warehouse.approve(
        await warehouse.refused(CLOSE, "fiona", period=last[:7]), "frank"
    )
    booking = warehouse.call(RECEIVE, **warehouse.where(), quantity=1, bookedOn=last)
    closing = warehouse.call(CLOSE, "fiona", approval_id=approval_id, period=last[:7])
    is_under_way = threading.Event()
    tries: list[str] = []

    def last_word(work: Work) -> None:
        tries.append("closing")
        is_under_way.set()
        wait_until_it_blocks(work)

    def book(_work: Work) -> Call:
        assert is_under_way.wait(LONGEST_S)
        tries.append("booking")
        return booking

    closed, booked = await asyncio.gather(
        pipeline.execute(replace(closing, guard=last_word)),
        pipeline.execute_as(book),
        return_exceptions=True,
    )

    assert isinstance(closed, Done)
    assert isinstance(booked, Refused)
    assert (closed.outcome, booked.stage, booked.reason) == ("done", "handler", "period_closed")
    assert sorted(tries) == ["booking", "closing"]
    assert contents(Move) == []


async def test_a_month_that_is_not_over_stays_open(warehouse: Warehouse) -> None:
    now = clock.now().date().isoformat()[:7]
    refusals = [await warehouse.refused(CLOSE, "fiona", period=each) for each in (now, "2098-12")]
    wrong = await warehouse.refused(CLOSE, "fiona", period="2026-13")
    denied = await warehouse.refused(CLOSE, "mia", period="2020-01")

    assert {each.reason for each in refusals} == {"period_not_over"}
    assert wrong.reason == "invalid_input"
    assert denied.reason == "permission_denied"
    assert contents(Period) == []


def months_before(number: int) -> str:
    """The last day of a month that is over, so many months ago."""
    day = clock.now().date()
    for _ in range(number):
        day = day.replace(day=1) - timedelta(days=1)
    return day.isoformat()


async def outcome(call: Call) -> str:
    try:
        return (await pipeline.execute(call)).outcome
    except Refused as refusal:
        return refusal.reason


def wait_until_it_blocks(work: Work) -> None:
    """Go on when somebody waits for this transaction; SQLite has one writer, so nobody can."""
    until_s = clock.monotonic_s() + LONGEST_S
    while not db.is_sqlite() and work.connection.execute(BLOCKS).first() is None:
        assert clock.monotonic_s() < until_s
