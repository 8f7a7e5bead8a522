"""Messages of any length: what is looked at of them is bounded, and so is the work."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from app.runs.models.planner import planner, reading, verbs
from app.runs.models.planner.ranking import ranked
from app.runs.models.protocol import Ask
from tests.runs.planner.house import SUBMIT, talk
from tests.runs.planner.world import descriptors

LONG = 100_000
SORTS = {
    "one word": "a",
    "verbs": "submit approve pay show ",
    "denials": "don't ",
    "Chinese": "提交批准付款查看",
    "Chinese denials": "不要提交",
    "waits": "等",
    "digits": "1234567890",
    "groups of digits": "1,234,",
    "numbers": "EXP-12, ",
    "amounts": "86 yuan ",
    "brackets": "(){}[]<>",
    "quotes": "“",
    "marks": "?",
    "lines": "\n",
    "requests": "submit it and ",
    "joined": "12 and ",
    "hyphens": "a-",
    "names of fields": "title: ",
    "signs that grow": "ﷺ",
}


def work_of(act: Callable[[], Any]) -> int:
    """How many calls of functions it takes, those of the interpreter's own included."""
    counted = 0

    def count(_frame: FrameType, event: str, _of: object) -> None:
        nonlocal counted
        counted += event in {"call", "c_call"}

    sys.setprofile(count)
    try:
        act()
    finally:
        sys.setprofile(None)
    return counted


def asked(text: str, before: str = "") -> Ask:
    """What is asked when somebody says this, as an answer to a question or on its own."""
    conversation = talk()
    if before:
        conversation.tell(before)
    conversation.add(text)
    planner.plan(conversation.ask())  # indexes are made once
    return conversation.ask()


@pytest.mark.requirement("RUN-107", "RUN-108")
@pytest.mark.parametrize("before", ["", "submit my report", "add a taxi to EXP-2041"])
@pytest.mark.parametrize("sort", SORTS)
def test_a_longer_message_is_no_more_work(sort: str, before: str) -> None:
    text = SORTS[sort] * (LONG // len(SORTS[sort]))
    full, endless = asked(text[: reading.LONGEST], before), asked(text, before)

    assert work_of(lambda: planner.plan(full)) < 150_000
    assert work_of(lambda: planner.plan(endless)) < 1_500
    assert all(len(each.text) <= reading.LONGEST for each in reading.read(endless).lines)


@pytest.mark.requirement("RUN-108")
@pytest.mark.parametrize("sort", SORTS)
def test_ranking_looks_at_the_head_of_a_query(sort: str) -> None:
    text = SORTS[sort] * (LONG // len(SORTS[sort]))
    ranked("submit", descriptors(), "en")

    assert work_of(lambda: ranked(text, descriptors(), "en")) < 20_000


@pytest.mark.requirement("RUN-108")
def test_verbs_are_counted_once_each() -> None:
    few, many = ("submit approve pay " * times for times in (20, 400))

    assert work_of(lambda: verbs.classes(many)) < 25 * work_of(lambda: verbs.classes(few))
    assert verbs.classes(many) == {"submit", "approve", "pay"}


@pytest.mark.requirement("RUN-107")
def test_a_longer_verb_hides_the_shorter_one_in_it() -> None:
    assert verbs.classes("transfer money") == {"pay"}
    assert verbs.classes("审批通过") == {"approve"}
    assert verbs.classes("transfer money, move it") == {"pay", "move"}


@pytest.mark.requirement("RUN-107")
@pytest.mark.parametrize(
    ("text", "words"), [("submit EXP-2041", "more than I can read"), ("提交 EXP-2041", "太长")]
)
def test_a_message_that_is_too_long_does_nothing_and_hears_so(text: str, words: str) -> None:
    """Its end might say no."""
    conversation = talk()

    [said] = conversation.tell(text + " ," * LONG)

    assert words in said
    assert conversation.office.ran == []
    conversation.tell("submit EXP-2041")
    assert [code for code, _ in conversation.office.ran] == [SUBMIT]


@pytest.mark.requirement("RUN-107")
def test_what_comes_meanwhile_and_is_too_long_ends_the_request() -> None:
    conversation = talk()
    conversation.add("submit EXP-2041")
    conversation.turn()
    conversation.add("wait, " * LONG)

    conversation.work()

    assert conversation.office.ran == []


@pytest.mark.requirement("RUN-107")
def test_an_amount_that_nobody_pays_is_none() -> None:
    conversation = talk()
    conversation.tell("add a taxi to EXP-2041")

    for text in ("9" * 400, "1" + ",234" * 100, "¥" + "9" * 400):
        conversation.tell(f"{text} yuan on 3 October")
        assert conversation.office.ran == []
