"""What is listed where only a state is said, and what is begun where only a kind is."""

from typing import Any

import pytest

from tests.runs.planner.house import talk
from tests.runs.planner.world import Talk, descriptors

REPORTS, ORDERS = "expense.report.list", "inventory.order.list"
MINE = {"number": "EXP-2041", "title": "Suzhou", "state": "draft", "ownerName": "Alice"}
CARLS = {**MINE, "number": "EXP-2055", "ownerName": "Carl"}
ORDER = {"number": "PO-0007", "supplier": "HP", "state": "draft"}
ASKED = [
    ("en", "list my drafts"),
    ("en", "show me my drafts, please"),
    ("en", "what are my drafts"),
    ("en", "my drafts"),
    ("zh-CN", "列出我的草稿"),
    ("zh-CN", "我有哪些草稿"),
    ("zh-CN", "我的草稿"),
]
NAMED = [("en", "which reports are drafts?"), ("zh-CN", "哪些报销单是草稿？")]


def listing(locale: str, reports: list[Any], orders: list[Any]) -> Talk:
    """A house whose lists show these."""

    def done(**rows: Any) -> dict[str, Any]:
        return {"outcome": "done", "result": {**rows, "nextCursor": None}}

    return talk(
        locale,
        expense_report_list=done(reports=reports),
        inventory_order_list=done(orders=orders),
    )


@pytest.mark.requirement("RUN-107")
@pytest.mark.parametrize(("locale", "text"), [*ASKED, *NAMED])
def test_drafts_are_those_of_the_only_kind_that_has_some(locale: str, text: str) -> None:
    conversation = listing(locale, [MINE], [])

    [said] = conversation.tell(text)

    assert "EXP-2041" in said
    assert conversation.office.ran[-1] == (REPORTS, {"state": "draft"})
    assert conversation.questions == []


@pytest.mark.requirement("RUN-107")
@pytest.mark.parametrize(("locale", "text"), [*ASKED, *NAMED])
def test_a_catalogue_of_one_kind_leaves_nothing_to_ask(locale: str, text: str) -> None:
    conversation = listing(locale, [MINE, CARLS], [])
    conversation.commands = descriptors("expenses")

    [said] = conversation.tell(text)

    assert "EXP-2041" in said
    assert conversation.office.ran == [(REPORTS, {"state": "draft"})]
    assert ("EXP-2055" in said) == ((locale, text) in NAMED), "somebody else's are not mine"


@pytest.mark.requirement("RUN-107")
@pytest.mark.parametrize(("locale", "text"), ASKED)
def test_drafts_of_several_kinds_are_asked_about(locale: str, text: str) -> None:
    conversation = listing(locale, [MINE], [ORDER])

    conversation.tell(text)

    [question] = conversation.questions
    assert len(question["choices"]) == 2
    [said] = conversation.tell(question["choices"][1])
    assert "EXP-2041" in said or "PO-0007" in said


@pytest.mark.requirement("RUN-107")
def test_where_there_is_none_of_any_kind_nothing_is_asked() -> None:
    conversation = listing("en", [CARLS], [])

    [said] = conversation.tell("list my drafts")

    assert said == "There is none."


@pytest.mark.requirement("RUN-107")
@pytest.mark.parametrize(("locale", "text"), NAMED)
def test_the_kind_that_is_said_is_the_one(locale: str, text: str) -> None:
    conversation = listing(locale, [MINE], [ORDER])

    [said] = conversation.tell(text)

    assert "EXP-2041" in said
    assert "PO-0007" not in said


@pytest.mark.requirement("RUN-107")
@pytest.mark.parametrize("packs", [(), ("expenses",)])
@pytest.mark.parametrize(
    ("locale", "text", "given"),
    [
        ("zh-CN", "新建一张报销单", {}),
        ("zh-CN", "新建报销单", {}),
        ("zh-CN", "新建一张十月的报销单", {"period": "2026-10"}),
        ("en", "create a report", {}),
        ("en", "new expense report", {}),
    ],
)
def test_what_is_begun_asks_for_what_it_lacks(
    locale: str, text: str, given: dict[str, str], packs: tuple[str, ...]
) -> None:
    conversation = talk(locale)
    conversation.commands = descriptors(*packs)

    conversation.tell(text)

    [question] = conversation.questions
    expects = question["expects"]
    assert (expects["kind"], expects["code"]) == ("fields", "expense.report.create")
    assert {key: expects["values"].get(key) for key in given} == given
    assert conversation.office.ran == []


@pytest.mark.requirement("RUN-107")
@pytest.mark.parametrize("packs", [(), ("expenses",)])
@pytest.mark.parametrize(
    ("locale", "text", "title"),
    [
        ("zh-CN", "新建十月差旅报销单", "差旅"),
        ("en", "create an October travel report", "travel"),
    ],
)
def test_what_is_begun_with_all_it_needs_is_begun(
    locale: str, text: str, title: str, packs: tuple[str, ...]
) -> None:
    conversation = talk(locale)
    conversation.commands = descriptors(*packs)

    conversation.tell(text)

    begun = {"period": "2026-10", "title": title}
    assert conversation.office.ran == [("expense.report.create", begun)]
