"""Schedules that fire with the planner: in the real loop, with real commands and messages."""

from datetime import UTC, datetime

import pytest

from app.kernel import db
from app.runs import schedules
from tests.clock import Clock
from tests.people import World
from tests.runs.playing import Stage

pytestmark = pytest.mark.anyio

MONDAY = datetime(2026, 11, 30, 8, 30, tzinfo=UTC)


@pytest.fixture
def desk(world: World, spenders: None, clock: Clock) -> Stage:
    """The desk of expenses, whose agent alice lets act for her; no model is set up."""
    clock.set(MONDAY)
    return Stage(world)


async def fired(desk: Stage, clock: Clock, instruction: str) -> list[str]:
    """What the agent said when the schedule of alice was due."""
    agent = desk.agent("expenses")
    db.transact_now(
        schedules.create, desk.person("alice"), agent.id, instruction, "weekdays 9:00", "UTC"
    )
    clock.move(minutes=30)
    assert await schedules.fire_due() == 1
    await desk.play()
    return [str((each.payload or {})["text"]) for each in desk.sent()]


@pytest.mark.requirement("RUN-54", "RUN-107")
@pytest.mark.parametrize(
    "text",
    [
        "submit my October travel report",
        "weekdays 9:00: submit my October travel report",
        "提交我十月的差旅报销单",
    ],
)
async def test_what_is_scheduled_is_done_and_told_to_its_person(
    desk: Stage, clock: Clock, text: str
) -> None:
    report = await desk.desk.draft("alice", 12_000)

    brief, reply = await fired(desk, clock, text)

    told = await desk.desk.report(report, "alice")
    assert told["state"] == "submitted"
    assert told["number"] in brief
    assert told["number"] in reply
    run = desk.run()
    assert (run.kind, run.state) == ("scheduled", "completed")
    assert {each.conversation_id for each in desk.sent()} == {run.conversation_id}
    assert desk.is_tidy()


@pytest.mark.requirement("RUN-54", "RUN-107")
async def test_a_schedule_ends_where_it_would_have_to_ask(desk: Stage, clock: Clock) -> None:
    reports = [await desk.desk.draft("alice", 12_000) for _ in range(2)]

    [said] = await fired(desk, clock, "submit my October report")

    assert "have done nothing" in said
    assert desk.run().state == "completed", "it waits for no answer"
    for each in reports:
        told = await desk.desk.report(each, "alice")
        assert told["state"] == "draft"
        assert told["number"] in said
    assert desk.is_tidy()


@pytest.mark.requirement("RUN-54", "RUN-89")
async def test_what_needs_a_persons_assent_needs_it_on_a_schedule_too(
    desk: Stage, clock: Clock
) -> None:
    report = await desk.desk.submitted("alice", 12_000)
    number = (await desk.desk.report(report, "alice"))["number"]

    await fired(desk, clock, f"recall {number}")

    assert desk.run().state == "suspended"
    assert (await desk.desk.report(report, "alice"))["state"] == "submitted"
    await desk.decide()
    await desk.play()
    assert (await desk.desk.report(report, "alice"))["state"] == "draft"
    assert desk.is_tidy()
