"""Runs that begin with no message: a schedule is its person's word, a task is an agent's."""

import pytest

from app.runs.models.planner import reading
from app.runs.states import EntryKind
from tests.runs.planner.house import DRAFT, SUBMIT, talk
from tests.runs.planner.world import Talk


def begun(kind: str, text: str, *, is_principal: bool, locale: str = "en") -> Talk:
    """A run as it is prepared: with a note that says what it is for."""
    conversation = talk(locale)
    body = {"kind": kind, "text": text, "is_principal": is_principal}
    conversation._entry(EntryKind.NOTE, body)
    conversation.work()
    return conversation


@pytest.mark.requirement("RUN-54", "RUN-107")
@pytest.mark.parametrize(
    "text",
    [
        "submit my October report",
        "weekdays 9:00: submit my October report",
        "Every Monday at 9:00, submit my October report",
        "submit EXP-2041 every 2 hours",
        "工作日 9:00：提交我十月的报销单",
        "每周一9:00提交 EXP-2041",
        "每月1日提交我十月的报销单",
    ],
)
def test_a_schedule_is_worked_on_as_its_persons_message(text: str) -> None:
    conversation = begun("schedule", text, is_principal=True)

    target = {"operationType": "UPDATE", "targetRecordId": DRAFT}
    assert conversation.office.ran == [(SUBMIT, target)]
    assert "EXP-2041" in conversation.said[-1]


@pytest.mark.requirement("RUN-54", "RUN-107")
@pytest.mark.parametrize(
    ("locale", "text", "words"),
    [("en", "submit my report", "have done nothing"), ("zh-CN", "提交我的报销单", "什么都没有做")],
)
def test_a_schedule_tells_what_it_would_have_to_ask(locale: str, text: str, words: str) -> None:
    """An answer opens another run, which knows nothing of the question."""
    conversation = begun("schedule", text, is_principal=True, locale=locale)

    [said] = conversation.said
    assert words in said
    assert "EXP-2041" in said
    assert "EXP-2050" in said
    assert (conversation.questions, conversation.office.ran) == ([], [])


@pytest.mark.requirement("RUN-107")
@pytest.mark.parametrize("text", ["every Monday submit EXP-2041", "每周一提交 EXP-2041"])
def test_what_a_person_wants_again_and_again_is_not_done_once(text: str) -> None:
    conversation = talk()

    [said] = conversation.tell(text)

    assert conversation.office.ran == []
    assert "right away" in said or "立即" in said


@pytest.mark.requirement("RUN-7", "RUN-107")
def test_what_a_task_finds_goes_to_the_agent_that_set_it() -> None:
    conversation = begun("task", "show EXP-2041", is_principal=False)

    assert [code for code, _ in conversation.office.ran] == ["expense.report.get"]
    last = conversation.entries[-1]
    assert (last.kind, last.body["calls"]) == (EntryKind.RESPONSE, [])
    assert last.body["text"] == conversation.said[-1]


@pytest.mark.requirement("RUN-107")
@pytest.mark.parametrize(
    ("kind", "is_principal"), [("task", False), ("task", True), ("schedule", False)]
)
def test_the_words_of_a_task_are_nobodys_consent(kind: str, is_principal: bool) -> None:
    conversation = begun(kind, "submit EXP-2041", is_principal=is_principal)

    assert (conversation.office.ran, conversation.questions) == ([], [])


@pytest.mark.requirement("RUN-107")
def test_a_task_answers_no_question() -> None:
    conversation = talk()
    conversation.tell("submit my report")
    body = {"kind": "task", "text": "EXP-2041", "is_principal": False}
    conversation._entry(EntryKind.NOTE, body)

    conversation.work()

    assert SUBMIT not in [code for code, _ in conversation.office.ran]


@pytest.mark.requirement("RUN-107")
def test_other_notes_are_not_heard() -> None:
    conversation = begun("timer", "submit EXP-2041", is_principal=True)

    assert (conversation.said, conversation.office.ran) == ([], [])
    assert reading.read(conversation.ask()).lines == []
