"""`await_message`: the agent's own pause, begun with its question in one commit."""

from datetime import timedelta

import pytest

from app.kernel import clock
from app.runs.outcome import Refused, Suspended
from app.runs.states import WaitKind
from tests.runs.sessions import Desks

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("RUN-92", "RUN-94", "RUN-95")
async def test_a_question_is_sent_and_the_call_is_done_while_the_run_waits(desks: Desks) -> None:
    run = await desks.at_work()

    waits = await desks.call(
        run,
        "await_message",
        question="Which trip?",
        choices=["Shanghai", "Beijing"],
        expects={"slot": "trip"},
        timeout_s=60,
    )

    assert isinstance(waits, Suspended)
    (message,), (row,) = desks.sent(), desks.calls()
    assert (message.payload or {})["text"] == "Which trip?\n\n1. Shanghai\n2. Beijing"
    assert (waits.kind, waits.is_open, waits.ref) == (
        WaitKind.MESSAGE,
        False,
        run.facts.lane_id,
    )
    assert waits.expects == {"slot": "trip"}
    assert waits.due_at is not None
    assert abs(waits.due_at - clock.now() - timedelta(seconds=60)) < timedelta(seconds=30)
    assert row.state == "done"
    assert waits.waiting()["result"] == {"waiting": "message", "message_id": message.id}
    assert desks.sent_rows()[0].call_id == row.id


@pytest.mark.requirement("RUN-55", "RUN-92")
async def test_without_a_question_it_waits_half_an_hour_and_says_nothing(desks: Desks) -> None:
    run = await desks.at_work()

    waits = await desks.call(run, "await_message")

    assert isinstance(waits, Suspended)
    assert desks.sent() == []
    assert waits.due_at is not None
    assert waits.due_at - clock.now() <= timedelta(seconds=1_800)


async def test_what_is_expected_fits_into_four_kilobytes(desks: Desks) -> None:
    run = await desks.at_work()

    refused = await desks.call(run, "await_message", question="What?", expects={"a": "x" * 5_000})

    assert isinstance(refused, Refused)
    assert refused.reason == "invalid_input"
    assert desks.sent() == []


async def test_a_question_that_may_not_be_asked_begins_no_wait(desks: Desks) -> None:
    desks.enable("bob")
    group = desks.group("bob", agents=("expenses",))
    desks.say_in(group, "bob", mentions=[{"aid": desks.aid("expenses")}])
    run = await desks.takes_up()
    desks.put_out(group, "bob")

    refused = await desks.call(run, "await_message", question="Which?")

    assert isinstance(refused, Refused)
    assert refused.reason == "recipient_not_allowed"
