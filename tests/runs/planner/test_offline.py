"""The planner as a model: what it is called, and that nothing but the ask decides what it says."""

import asyncio
from dataclasses import replace

import pytest

from app.kernel import i18n
from app.runs.models.offline import OfflinePlanner
from app.runs.models.planner import ranking
from app.runs.models.protocol import Answered, Ask, Delta, ThoughtDelta
from tests.runs.planner.world import NOW, Office, Talk, descriptors, record


def streamed(ask: Ask) -> list[Delta]:
    async def run() -> list[Delta]:
        return [piece async for piece in OfflinePlanner().stream(ask)]

    return asyncio.run(run())


def an_ask(text: str = "submit EXP-2041", locale: str = "en") -> Ask:
    talk = Talk(Office(), descriptors(), locale=locale)
    talk.add(text)
    return talk.ask()


@pytest.mark.requirement("RUN-106")
def test_the_same_ask_gives_the_same_bytes() -> None:
    may = ["expense.report.submit"]
    office = Office(records=[record("expense.report", "A1", "EXP-2041", "draft", may)])
    talk = Talk(office, descriptors())
    talk.add("submit EXP-2041")
    talk.work()
    asks = [
        replace(talk.ask(), entries=talk.entries[:length])
        for length in range(1, len(talk.entries) + 1)
    ]

    first = [repr(streamed(ask)) for ask in asks]
    ranking._index.cache_clear()
    ranking._kept.cache_clear()

    assert [repr(streamed(ask)) for ask in asks] == first
    assert len(set(first)) > 3, "else this proves nothing"


@pytest.mark.requirement("RUN-106")
def test_it_is_called_offline_planner_with_its_version() -> None:
    planner = OfflinePlanner()

    assert (planner.name, planner.version, planner.provider) == ("offline planner", "1", "offline")
    with i18n.speaking("zh-CN"):
        assert i18n.gettext(planner.label) == "离线规划器"


@pytest.mark.requirement("RUN-107")
def test_thoughts_come_as_sentences_before_the_answer() -> None:
    *thoughts, last = streamed(an_ask())

    assert isinstance(last, Answered)
    assert len(thoughts) >= 3
    assert all(isinstance(each, ThoughtDelta) and each.text.endswith("\n") for each in thoughts)
    told = "".join(each.text for each in thoughts if isinstance(each, ThoughtDelta))
    assert "Submit expense report 1.00" in told, "candidates with their scores"
    assert "".join(last.response.thoughts) == told


@pytest.mark.requirement("RUN-107")
def test_an_answer_says_how_it_ended_and_what_it_cost() -> None:
    response = streamed(an_ask())[-1]
    assert isinstance(response, Answered)

    assert response.response.finish == "tool_calls"
    assert response.response.usage is not None
    assert response.response.usage.input_tokens == 0
    silent = streamed(an_ask("thanks!"))[-1]
    assert isinstance(silent, Answered)
    assert (silent.response.finish, silent.response.calls) == ("stop", ())


def test_when_all_is_answered_it_says_nothing_and_thinks_nothing() -> None:
    talk = Talk(Office(), descriptors(), locale="zh-CN")
    talk.tell("你好")

    [last] = streamed(talk.ask())

    assert isinstance(last, Answered)
    assert (last.response.thoughts, last.response.text, last.response.calls) == ((), "", ())


@pytest.mark.requirement("RUN-107")
def test_where_no_tool_may_be_called_it_closes_in_words() -> None:
    last = streamed(replace(an_ask("don't submit EXP-2041"), tools_on=False))[-1]

    assert isinstance(last, Answered)
    assert last.response.calls == ()
    assert "do nothing" in last.response.text


@pytest.mark.requirement("RUN-108")
def test_an_index_is_made_once_for_the_same_commands() -> None:
    ranking._index.cache_clear()
    for text in ("submit EXP-2041", "show EXP-2041", "提交报销单"):
        streamed(an_ask(text))

    counted = ranking._index.cache_info()

    assert (counted.misses, counted.hits >= 2) == (1, True)


def test_the_clock_is_that_of_the_ask() -> None:
    ask = an_ask("how much budget is left for this month")
    earlier = replace(ask, now=NOW.replace(month=3))

    assert "2026-11" in repr(streamed(ask)[-1])
    assert "2026-03" in repr(streamed(earlier)[-1])
