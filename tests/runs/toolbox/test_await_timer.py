"""`await_timer`: a pause by the clock."""

from datetime import timedelta

import pytest

from app.kernel import clock
from app.runs.outcome import Refused, Suspended
from app.runs.states import WaitKind
from tests.runs.sessions import Desks

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("RUN-92", "RUN-94")
async def test_it_is_due_after_the_seconds_or_at_the_moment(desks: Desks) -> None:
    run = await desks.at_work()
    until = (clock.now() + timedelta(hours=2)).replace(microsecond=0)

    short = await desks.call(run, "await_timer", seconds=90)
    long = await desks.call(run, "await_timer", until=clock.rfc3339(until))

    assert isinstance(short, Suspended)
    assert isinstance(long, Suspended)
    assert (short.kind, short.is_open) == (WaitKind.TIMER, False)
    assert short.due_at is not None
    assert clock.now() < short.due_at <= clock.now() + timedelta(seconds=90)
    assert long.due_at == until
    assert long.waiting()["result"] == {"waiting": "timer", "until": clock.rfc3339(until)}


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"seconds": 5, "until": "2026-12-01T09:00:00Z"},
        {"until": "tomorrow"},
        {"until": "2026-12-01T09:00:00"},
        {"until": "2126-12-01T09:00:00Z"},
        {"seconds": 86_401},
        {"seconds": 0},
    ],
)
async def test_what_is_no_moment_is_refused(desks: Desks, given: dict[str, object]) -> None:
    run = await desks.at_work()

    refused = await desks.call(run, "await_timer", **given)

    assert isinstance(refused, Refused)
    assert refused.advice == "fix_arguments"
