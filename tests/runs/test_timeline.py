"""Where the work of a run stands among the messages of its conversation."""

from datetime import datetime, timedelta

import pytest

from app.kernel import clock
from app.runs.run_models import ToolCall
from app.runs.states import CallKind, CallState
from app.runs.timeline import Call, Said, Turn

BEGAN = clock.now()


def after(seconds: int) -> datetime:
    return BEGAN + timedelta(seconds=seconds)


def called(tool: str, seconds: int) -> Call:
    row = ToolCall(
        tenant_id="t",
        id=f"{tool}-{seconds}",
        run_id="r",
        turn=1,
        ordinal=seconds,
        provider_call_id="p",
        tool=tool,
        kind=CallKind.FRAMEWORK,
        arguments_sha256="",
        state=CallState.DONE,
        started_at=after(seconds),
    )
    return Call(row)


def said(call: Call, seconds: int) -> Said:
    return Said(
        message_id="m",
        conversation_id="c",
        text="I am about to pay.",
        at=after(seconds),
        turn=1,
        call_id=call.row.id,
    )


def turn(*calls: Call, said: tuple[Said, ...] = ()) -> Turn:
    return Turn(
        run_id="r",
        number=1,
        thought_id="thought",
        started_at=BEGAN,
        requests=(),
        calls=calls,
        said=said,
    )


@pytest.mark.requirement("RUN-85")
def test_what_was_said_before_an_act_stands_above_it() -> None:
    brief, pays = called("send_message", 1), called("pay", 3)

    assert turn(brief, pays, said=(said(brief, 2),)).stands_at == after(3)


def test_a_turn_that_acts_first_or_says_nothing_stands_where_it_began() -> None:
    reads, tells = called("read", 1), called("send_message", 2)

    assert turn(reads, tells, said=(said(tells, 3),)).stands_at == BEGAN
    assert turn(reads).stands_at == BEGAN
    assert turn(tells, said=(said(tells, 3),)).stands_at == BEGAN
