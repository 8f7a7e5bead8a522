"""The planner in the real loop, with real commands, records and approvals."""

import pytest

from tests.people import World
from tests.runs.playing import Stage

pytestmark = pytest.mark.anyio


@pytest.fixture
def desk(world: World, spenders: None) -> Stage:
    """The desk of expenses, whose agent alice lets act for her; no model is set up."""
    return Stage(world)


def said(desk: Stage) -> list[str]:
    return [str((each.payload or {})["text"]) for each in desk.sent()]


@pytest.mark.requirement("RUN-106", "RUN-107")
@pytest.mark.parametrize(
    ("text", "back"),
    [("submit my October report", "undo that"), ("提交我十月的报销单", "撤销")],
)
async def test_a_report_is_submitted_and_taken_back_with_a_persons_word(
    desk: Stage, text: str, back: str
) -> None:
    report = await desk.desk.draft("alice", 12_000)

    await desk.tell(text)
    assert (await desk.desk.report(report, "alice"))["state"] == "submitted"
    await desk.tell(back)
    assert desk.runs()[-1].state == "suspended", "nothing takes a recall back: a person is asked"
    await desk.decide()
    await desk.play()

    assert (await desk.desk.report(report, "alice"))["state"] == "draft"
    brief, reply, before, after = said(desk)
    number = (await desk.desk.report(report, "alice"))["number"]
    assert all(number in each for each in (brief, reply, before, after))
    assert [each.model for each in desk.by_agents()] == ["offline planner"] * 2
    assert desk.is_tidy()


@pytest.mark.requirement("RUN-107")
async def test_what_is_missing_is_asked_and_the_answer_completes_it(desk: Stage) -> None:
    report = await desk.desk.draft("alice", 12_000)
    number = (await desk.desk.report(report, "alice"))["number"]

    await desk.tell(f"add a taxi to {number}")
    assert desk.run().state == "suspended"
    await desk.tell("86 yuan on 3 October")

    lines = (await desk.desk.report(report, "alice"))["lines"]
    assert [each["amountMinor"] for each in lines if each["description"] == "taxi"] == [8_600]
    assert desk.is_tidy()


@pytest.mark.requirement("RUN-107")
async def test_a_refusal_reaches_the_person_in_the_words_of_the_rule(desk: Stage) -> None:
    report = await desk.desk.draft("alice")
    number = (await desk.desk.report(report, "alice"))["number"]

    await desk.tell(f"submit {number}")

    assert "A report needs a line." in said(desk)[-1]
    assert (await desk.desk.report(report, "alice"))["state"] == "draft"
    assert desk.is_tidy()


@pytest.mark.requirement("RUN-107")
async def test_a_denial_is_repeated_with_its_reason(desk: Stage) -> None:
    report = await desk.desk.submitted("alice", 12_000)
    number = (await desk.desk.report(report, "alice"))["number"]

    await desk.tell(f"recall {number}")
    await desk.decide("deny", reason="Leave it, please.")
    await desk.play()

    assert "Leave it, please" in said(desk)[-1]
    assert (await desk.desk.report(report, "alice"))["state"] == "submitted"


@pytest.mark.requirement("RUN-107")
async def test_a_no_and_a_question_change_nothing(desk: Stage) -> None:
    report = await desk.desk.draft("alice", 12_000)
    number = (await desk.desk.report(report, "alice"))["number"]

    await desk.tell(f"don't submit {number}")
    await desk.tell(f"is {number} submitted?")

    assert (await desk.desk.report(report, "alice"))["state"] == "draft"
    assert [each.command for each in desk.by_agents()] == ["expense.report.get"]
    assert number in said(desk)[-1]
