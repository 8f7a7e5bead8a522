"""Questions: which command, which record, which values; three at the most."""

import pytest

from app.runs.models.planner import clauses
from tests.runs.planner.house import ADD, APPROVE, DRAFT, OTHER, PAY, SUBMIT, talk


@pytest.mark.requirement("RUN-107")
@pytest.mark.parametrize("answer", ["2", "the second", "EXP-2050", "office supplies"])
def test_of_several_records_the_person_chooses(answer: str) -> None:
    conversation = talk()

    [question] = conversation.tell("submit my report")
    assert "EXP-2041" in question
    assert "EXP-2050" in question
    conversation.tell(answer)

    assert conversation.office.ran == [
        (SUBMIT, {"operationType": "UPDATE", "targetRecordId": OTHER})
    ]


@pytest.mark.requirement("RUN-107")
@pytest.mark.parametrize("answer", ["no", "never mind", "算了", "取消"])
def test_a_question_can_be_called_off(answer: str) -> None:
    conversation = talk()
    conversation.tell("submit my report")

    conversation.tell(answer)

    assert conversation.office.ran == []
    assert len(conversation.questions) == 1


@pytest.mark.requirement("RUN-107")
def test_an_answer_may_be_another_request() -> None:
    conversation = talk()
    conversation.tell("submit my report")

    conversation.tell("approve EXP-2060")

    assert [code for code, _ in conversation.office.ran] == [APPROVE]


@pytest.mark.requirement("RUN-107")
def test_one_record_that_is_called_otherwise_is_confirmed_first() -> None:
    conversation = talk()

    [question] = conversation.tell("submit my October hotel bill")
    assert "EXP-2041" in question
    assert conversation.office.ran == []
    conversation.tell("yes")

    assert conversation.office.ran[0][1]["targetRecordId"] == DRAFT


@pytest.mark.requirement("RUN-107")
def test_a_record_nobody_has_is_told() -> None:
    conversation = talk("zh-CN")

    [said] = conversation.tell("提交 EXP-9999")

    assert "EXP-9999" in said
    assert "没有找到" in said


@pytest.mark.requirement("RUN-107")
def test_up_to_five_records_are_done_in_order_and_no_more() -> None:
    conversation = talk()
    conversation.tell("approve EXP-2061 and 2060")
    assert [given["targetRecordId"][-2:] for _, given in conversation.office.ran] == ["A5", "A4"]

    [said] = conversation.tell("approve EXP-1, EXP-2, EXP-3, EXP-4, EXP-5 and EXP-6")

    assert len(conversation.office.ran) == 2
    assert "five at the most" in said


@pytest.mark.requirement("RUN-107")
def test_commands_that_are_close_are_offered_with_numbers() -> None:
    conversation = talk()

    conversation.tell("close October")

    [question] = conversation.questions
    assert question["choices"] == ["Close location", "Close period"]
    assert conversation.office.ran == []


@pytest.mark.requirement("RUN-107")
def test_after_three_questions_there_is_the_form() -> None:
    conversation = talk()
    conversation.tell("add a taxi to EXP-2041")
    for _ in range(2):
        conversation.tell("hm")

    [said] = conversation.tell("hm")

    assert len(conversation.questions) == 3
    assert "/commands/expense.line.add" in said


@pytest.mark.requirement("RUN-107")
@pytest.mark.parametrize(
    ("text", "asked", "answer", "field", "value"),
    [
        (
            "add a taxi, 86 yuan, 10/3, to EXP-2041",
            "two different days",
            "2026-10-03",
            "spentOn",
            "2026-10-03",
        ),
        (
            "add a taxi, 86.555 yuan, 3 Oct, to EXP-2041",
            "two decimal",
            "86.55",
            "amountMinor",
            8_655,
        ),
        ("add 86 yuan for parcels, 3 Oct, to EXP-2041", "Office", "other", "category", "other"),
        ("给 EXP-2041 添加 10月3日 快递 86 元", "办公", "其他", "category", "other"),
    ],
)
def test_what_is_ambiguous_or_does_not_fit_is_asked_for(
    text: str, asked: str, answer: str, field: str, value: object
) -> None:
    conversation = talk()

    [question] = conversation.tell(text)
    assert asked in question
    assert conversation.office.ran == []
    conversation.tell(answer)

    [(code, given)] = conversation.office.ran
    assert (code, given[field]) == (ADD, value)


@pytest.mark.requirement("RUN-107")
def test_an_amount_in_another_currency_is_not_written_down() -> None:
    conversation = talk()

    [said] = conversation.tell("add a taxi of $86 on 3 October to EXP-2041")

    assert conversation.office.ran == []
    assert "CNY" in said
    assert "USD" in said


@pytest.mark.requirement("RUN-107")
def test_before_what_nothing_takes_back_every_word_has_to_fit() -> None:
    conversation = talk()

    [question] = conversation.tell("delete the taxi receipt scan, EXP-2050")
    assert "Just to be sure" in question
    assert conversation.office.ran == []
    conversation.tell("yes")

    assert [code for code, _ in conversation.office.ran] == ["expense.report.discard"]


@pytest.mark.requirement("RUN-107")
@pytest.mark.parametrize("text", ["pay", "付款"])
def test_a_risky_command_is_not_run_on_a_record_nobody_named(text: str) -> None:
    conversation = talk()
    conversation.office.records[3]["may"] = [PAY]

    conversation.tell(text)

    assert conversation.office.ran == []


@pytest.mark.requirement("RUN-107")
def test_what_a_question_keeps_stays_small() -> None:
    conversation = talk()
    for each in conversation.office.records:
        each["fields"]["title"] = "很长的标题" * 400

    conversation.tell("submit my report " + "with many words " * 60)

    assert conversation.questions, "the world checks that `expects` has at most 4 kB"


NEW_REQUESTS = [
    ("submit my report", "Approve EXP-2060 and pay it", "pay it"),
    ("submit my October hotel bill", "Approve EXP-2060 and pay it", "pay it"),
    ("add a taxi to EXP-2041", "please approve EXP-2060, and then pay it", "pay it"),
    ("reject EXP-2060", "Approve EXP-2060 and pay it", "pay it"),
    ("close October", "Approve EXP-2060 and pay it", "pay it"),
    ("提交我的报销单", "批准 EXP-2060 并付款", "付款"),
    ("给 EXP-2041 添加打车", "批准 EXP-2060，然后付款", "付款"),
    ("驳回 EXP-2060", "把 EXP-2060 批准了，再付款", "付款"),
]


@pytest.mark.requirement("RUN-107")
@pytest.mark.parametrize(("text", "answer", "rest"), NEW_REQUESTS)
def test_an_answer_that_orders_something_else_is_done_for_itself(
    text: str, answer: str, rest: str
) -> None:
    """Its first part; what it asks for besides is named, and left."""
    conversation = talk("zh-CN" if rest == "付款" else "en")
    conversation.tell(text)
    assert conversation.questions

    said = conversation.tell(answer)

    fixed = {"operationType": "UPDATE", "targetRecordId": "A4".rjust(26, "0")}
    assert conversation.office.ran == [(APPROVE, fixed)]
    assert f"“{rest}”" in said[-1]
    assert "one thing at a time" in said[-1] or "一次只办一件事" in said[-1]


@pytest.mark.requirement("RUN-107")
@pytest.mark.parametrize(
    ("text", "answer", "code", "rest"),
    [
        ("add a taxi to EXP-2041", "86 yuan on 3 October and submit it", ADD, "submit it"),
        ("给 EXP-2041 添加打车", "10月3日，86元，然后提交", ADD, "提交"),
        ("submit my report", "the first, and then pay it", SUBMIT, "pay it"),
        ("submit my report", "EXP-2041 and submit it", SUBMIT, ""),
    ],
)
def test_an_answer_counts_also_where_more_is_asked_for(
    text: str, answer: str, code: str, rest: str
) -> None:
    conversation = talk("en" if text.isascii() else "zh-CN")
    conversation.tell(text)

    said = conversation.tell(answer)

    [(ran, given)] = conversation.office.ran
    assert (ran, given["targetRecordId"]) == (code, DRAFT)
    assert ("afterwards" in said[-1] or "先不办" in said[-1]) == bool(rest)
    assert rest in said[-1]


@pytest.mark.requirement("RUN-107")
def test_an_answer_that_shows_something_is_no_choice_of_it() -> None:
    conversation = talk()
    conversation.tell("submit my report")

    conversation.tell("show EXP-2050")

    assert [code for code, _ in conversation.office.ran] == ["expense.report.get"]


@pytest.mark.requirement("RUN-107")
@pytest.mark.parametrize(
    "reason", ["The receipts are missing", "Add the receipts and submit it again", "补上发票再提交"]
)
def test_a_reason_may_sound_like_an_order(reason: str) -> None:
    conversation = talk()
    conversation.tell("reject EXP-2060")

    conversation.tell(reason)

    [(code, given)] = conversation.office.ran
    assert (code, given["reason"]) == ("expense.report.reject", reason)


@pytest.mark.requirement("RUN-107")
@pytest.mark.parametrize(
    ("text", "first", "rest"),
    [
        ("approve EXP-1 and pay it", "approve EXP-1", "pay it"),
        ("approve and pay EXP-1", "approve EXP-1", "pay EXP-1"),
        ("Submit EXP-1. Then approve EXP-2.", "Submit EXP-1", "approve EXP-2"),
        ("批准并付款 EXP-1", "批准 EXP-1", "付款 EXP-1"),
        ("把 EXP-1 提交，然后提醒经理", "把 EXP-1 提交", "提醒经理"),
        ("approve EXP-1 and 2", "approve EXP-1 and 2", ""),
        ("approve EXP-1 and tell me", "approve EXP-1 and tell me", ""),
        ("delete EXP-1 and discard it", "delete EXP-1 and discard it", ""),
        ("add lunch and transfer fees", "add lunch and transfer fees", ""),
        ("reject it because of the taxi and pay slips", "", ""),
        ('create a report "approve and pay it"', "", ""),
        ("新建报销单，名为提交和付款", "", ""),
    ],
)
def test_a_sentence_is_parted_where_another_order_begins(text: str, first: str, rest: str) -> None:
    parts = clauses.of(text)

    assert (parts.first, parts.rest) == (first or text, rest)


@pytest.mark.requirement("RUN-107")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("submit EXP-9999", "I found no expense report called “EXP-9999”"),
        ("show EXP-9999", "I found nothing called “EXP-9999”"),
        ("what is the state of EXP-9999?", "I found nothing called “EXP-9999”"),
        ("EXP-9999", "I found nothing called “EXP-9999”"),
        ("delete EXP-9999", "I found nothing called “EXP-9999”"),
        ("how much PAPER-X-1 is left", "I found nothing called “PAPER-X-1”"),
        ("move 5 PAPER-X-1 from A-01-01 to A-01-02", "I found nothing called “PAPER-X-1”"),
        ("删除 EXP-9999", "没有找到名为“EXP-9999”"),
        ("EXP-9999 到哪一步了", "没有找到名为“EXP-9999”"),
    ],
)
def test_a_number_that_nothing_has_is_said_before_anything_else(text: str, words: str) -> None:
    conversation = talk("en" if text.isascii() else "zh-CN")

    [said] = conversation.tell(text)

    assert words in said
    assert (conversation.questions, conversation.office.ran) == ([], [])
