"""What became of a call, by outcome and by advice: told in the person's language, or acted upon."""

from typing import Any

import pytest

from app.kernel import i18n
from app.packs.expenses import PACK
from app.runs.models.planner import wording
from app.runs.states import EntryKind
from tests.runs.planner.house import DRAFT, PAY, SUBMIT, talk
from tests.runs.planner.world import Talk, descriptors

DONE = {"outcome": "done", "result": {}}


def refused(advice: str, detail: str = "Not so.", **facts: Any) -> dict[str, Any]:
    return {
        "outcome": "refused",
        "stage": "assert",
        "reason": "r",
        "advice": advice,
        "detail": detail,
        **facts,
    }


def tools_of(conversation: Talk) -> list[str]:
    responses = [each for each in conversation.entries if each.kind == EntryKind.RESPONSE]
    return [call["tool"] for each in responses for call in each.body["calls"]]


@pytest.mark.requirement("RUN-107")
@pytest.mark.parametrize("advice", ["report_to_user", "do_not_retry", "ask_user"])
@pytest.mark.parametrize(
    ("locale", "text", "detail"),
    [
        ("en", "submit EXP-2041", "A report needs a line."),
        ("zh-CN", "提交 EXP-2041", "报销单至少要有一条明细。"),
    ],
)
def test_a_refusal_is_told_with_its_reason(
    advice: str, locale: str, text: str, detail: str
) -> None:
    conversation = talk(locale, expense_report_submit=refused(advice, detail))

    said = conversation.tell(text)

    assert detail in said[-1]
    assert "EXP-2041" in said[-1]
    assert len(conversation.office.ran) == 1


@pytest.mark.requirement("RUN-107")
@pytest.mark.parametrize(
    ("locale", "text", "words"),
    [
        ("en", "submit EXP-2041", "It stands at Submitted; this is possible from Draft."),
        ("en", "提交 EXP-2041", "当前状态为 已提交；仅可从 草稿 执行。"),
    ],
)
def test_a_state_is_told_in_the_language_of_the_request(locale: str, text: str, words: str) -> None:
    facts = {"currentState": "submitted", "allowedFrom": ["draft"]}
    answer = refused("report_to_user", "in the account's language", **facts)
    conversation = talk(locale, expense_report_submit=answer | {"reason": "illegal_state"})

    assert words in conversation.tell(text)[-1]


@pytest.mark.requirement("RUN-107")
def test_the_same_question_is_asked_in_other_words() -> None:
    conversation = talk()

    first, again, third = (conversation.tell("qwyx")[-1] for _ in range(3))

    assert again == f"Once more: {first}"
    assert third == f"Once more (2): {first}"


@pytest.mark.requirement("RUN-107")
def test_fields_that_do_not_fit_are_asked_for_again() -> None:
    fields = [{"field": "note", "problem": "From 5,000.00 on, add a note."}]
    answers = [refused("fix_arguments", fields=fields), DONE]
    conversation = talk(expense_report_submit=answers)

    said = conversation.tell("submit EXP-2041")
    assert "From 5,000.00 on, add a note." in said[-1]
    conversation.tell("client workshop")

    assert [given.get("note") for _, given in conversation.office.ran] == [None, "client workshop"]
    assert conversation.office.ran[1][1]["targetRecordId"] == DRAFT


@pytest.mark.requirement("RUN-107")
def test_what_is_under_way_is_looked_at_after_a_pause() -> None:
    conversation = talk(expense_report_submit=refused("wait_and_reread", "Still at work."))

    said = conversation.tell("submit EXP-2041")

    assert tools_of(conversation)[-3:] == ["await_timer", "read_record", "send_message"]
    assert "Still at work." in said[-1]
    assert "Draft" in said[-1]


@pytest.mark.requirement("RUN-107")
def test_what_changed_meanwhile_is_read_and_told_with_what_is_possible() -> None:
    conversation = talk(expense_report_submit=refused("reread_state", "It stands elsewhere."))

    said = conversation.tell("submit EXP-2041")

    assert tools_of(conversation)[-2:] == ["read_record", "send_message"]
    assert "It stands elsewhere." in said[-1]
    assert "“Add line”" in said[-1]


@pytest.mark.requirement("RUN-107")
def test_what_somebody_else_has_to_do_is_said() -> None:
    conversation = talk(expense_report_approve=refused("escalate_to_other_user"))

    assert "Somebody else has to do it" in conversation.tell("approve EXP-2060")[-1]


@pytest.mark.requirement("RUN-107")
def test_only_what_is_idempotent_is_tried_once_more() -> None:
    later = refused("retry_later", "Busy.")
    reading, writing = talk(expense_report_list=later), talk(expense_report_submit=later)

    told = reading.tell("which reports wait for me?"), writing.tell("submit EXP-2041")

    assert (len(reading.office.ran), len(writing.office.ran)) == (2, 1)
    assert all("a little later" in said[-1] for said in told)


@pytest.mark.requirement("RUN-107")
@pytest.mark.parametrize(
    ("locale", "text", "words"),
    [
        ("en", "pay EXP-2030", ("Frank said no", "“Wrong account”", "Nothing was changed")),
        ("zh-CN", "付款 EXP-2030", ("Frank没有同意", "“Wrong account”", "未作任何变更")),
    ],
)
def test_a_no_is_repeated_with_its_reason_and_nothing_more_is_done(
    locale: str, text: str, words: tuple[str, ...]
) -> None:
    no = {"outcome": "denied", "by": "Frank", "reason": "Wrong account"}
    conversation = talk(locale, expense_payment_send=no)

    said = conversation.tell(text)

    assert all(each in said[-1] for each in words)
    assert [code for code, _ in conversation.office.ran] == [PAY]


@pytest.mark.requirement("RUN-107")
@pytest.mark.parametrize(
    ("result", "words"),
    [
        ({"outcome": "expired"}, "ask again"),
        ({"outcome": "not_started", "reason": "stopped"}, "was not started"),
        ({"outcome": "interrupted", "took_effect": False}, "before anything happened"),
        ({"outcome": "unknown"}, "cannot tell"),
    ],
)
def test_each_other_way_to_end_has_its_own_words(result: dict[str, Any], words: str) -> None:
    conversation = talk(expense_payment_send=result)

    assert words in conversation.tell("pay EXP-2030")[-1]


@pytest.mark.requirement("RUN-107")
def test_what_is_read_is_told_in_lines_and_without_ids() -> None:
    row = {
        "id": DRAFT,
        "number": "EXP-2041",
        "title": "Suzhou",
        "state": "submitted",
        "currency": "CNY",
        "totalMinor": 36_650,
        "ownerId": DRAFT,
        "ownerName": "Carl",
    }
    mine = {**row, "number": "EXP-2050", "ownerName": "Alice"}
    listed = {"outcome": "done", "result": {"reports": [row, mine], "nextCursor": None}}
    conversation = talk(expense_report_list=listed)

    [said] = conversation.tell("which reports wait for me?")

    assert "EXP-2041" in said
    assert "CN¥366.50" in said
    assert "Carl" in said
    assert DRAFT not in said
    assert "EXP-2050" not in said, "nobody waits for oneself"


@pytest.mark.requirement("RUN-107")
def test_a_brief_the_loop_did_not_count_is_said_again() -> None:
    first = {
        "outcome": "refused",
        "reason": "brief_first",
        "advice": "fix_arguments",
        "detail": "…",
    }
    conversation = talk(expense_report_submit=[first, DONE])

    said = conversation.tell("submit EXP-2041")

    assert len(said) == 3
    assert [code for code, _ in conversation.office.ran] == [SUBMIT, SUBMIT]


@pytest.mark.requirement("RUN-107")
@pytest.mark.parametrize("text", ["undo that", "撤销"])
def test_where_nothing_can_be_taken_back_it_says_so(text: str) -> None:
    conversation = talk()
    conversation.recent = [{"cmdCode": PAY, "record": {"id": DRAFT}, "undo": None}]

    [said] = conversation.tell(text)

    assert conversation.office.ran == []
    assert "take back" in said or "可以撤销" in said


@pytest.mark.requirement("RUN-107")
def test_a_command_that_is_done_is_never_run_again_by_the_same_message() -> None:
    conversation = talk()
    conversation.add("submit EXP-2041")
    while not conversation.office.ran:
        conversation._batch(conversation.turn())
    conversation.add("and quickly please")

    conversation.work()

    assert len(conversation.office.ran) == 1


@pytest.mark.requirement("RUN-107")
def test_people_are_known_by_the_names_that_were_shown() -> None:
    row = {"id": DRAFT, "number": "EXP-2041", "ownerId": "C".rjust(26, "0"), "ownerName": "Carl"}
    mine = {**row, "number": "EXP-2050", "ownerName": "Alice"}
    listed = {"outcome": "done", "result": {"reports": [row, mine], "nextCursor": None}}
    conversation = talk(expense_report_list=listed)
    [first] = conversation.tell("list the expense reports of Carl")

    conversation.tell("list the rejected expense reports of Carl")

    assert "EXP-2041" in first
    assert "EXP-2050" not in first
    assert conversation.office.ran[1][1] == {"ownerId": "C".rjust(26, "0"), "state": "rejected"}


@pytest.mark.requirement("UI-31", "RUN-108")
@pytest.mark.parametrize("code", PACK.samples)
def test_every_request_that_is_offered_to_try_is_understood(code: str) -> None:
    for locale in ("en", "zh-CN"):
        conversation = talk(locale)

        conversation.tell(PACK.samples[code].in_(locale))

        assert conversation.office.ran, "it acts at once, and asks nothing first"


@pytest.mark.requirement("RUN-107")
@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", "Budget limit: CN¥40,000.00 · Left: CN¥33,174.20"),
        ("zh-CN", "预算额度：¥40,000.00 · 剩余：¥33,174.20"),
    ],
)
def test_of_several_amounts_in_a_row_each_says_which(language: str, words: str) -> None:
    shown = {each.code: each for each in descriptors("expenses")}["expense.report.get"]
    row = {"period": "2026-10", "currency": "CNY", "limitMinor": 4_000_000, "leftMinor": 3_317_420}

    with i18n.speaking(language):
        line = wording.row_line(shown, row, "UTC")

    assert line == f"**2026-10** · {words}"
