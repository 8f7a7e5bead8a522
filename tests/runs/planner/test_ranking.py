"""The ranker, as the planner and `search_commands` use it."""

import pytest

from app.runs.models.planner.ranking import ranked
from tests.runs.planner.world import descriptors


def best(query: str) -> str:
    return ranked(query, descriptors(), "en")[0][0].code


@pytest.mark.requirement("RUN-107")
@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("submit report", "expense.report.submit"),
        ("送审报销单", "expense.report.submit"),
        ("expense report submit", "expense.report.submit"),
        ("take back a submitted report", "expense.report.recall"),
        ("how much budget is left", "expense.budget.get"),
        ("an ordered delivery has arrived", "inventory.order.receive"),
        ("移库", "inventory.stock.move"),
    ],
)
def test_a_command_is_found_by_its_words_in_either_language(query: str, code: str) -> None:
    assert best(query) == code


@pytest.mark.requirement("RUN-107")
def test_a_command_that_contradicts_the_verb_is_out() -> None:
    scores = {each.code: score for each, score in ranked("approve the report", descriptors(), "en")}

    assert scores["expense.report.approve"] > 0.5
    assert scores["expense.report.reject"] == 0
    assert scores["expense.report.submit"] == 0


@pytest.mark.requirement("RUN-107")
def test_every_command_has_a_score_between_nothing_and_one() -> None:
    found = ranked("提交 report please", descriptors(), "en")

    assert len(found) == len(descriptors())
    assert all(0 <= score <= 1 for _, score in found)
    assert [score for _, score in found] == sorted((s for _, s in found), reverse=True)


@pytest.mark.requirement("RUN-107")
def test_the_words_of_another_command_in_a_hint_do_not_count() -> None:
    """The hint of a submission names the command that takes it back."""
    scores = {each.code: score for each, score in ranked("recall", descriptors(), "en")}

    assert scores["expense.report.submit"] == 0


def test_no_commands_no_hits() -> None:
    assert ranked("submit", (), "en") == []
