"""The whole story of an expense report, in both languages, as a person tells it to the planner."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.runs.planner.world import Office, Talk, descriptors, record

REPORT = "expense.report"
SUBMITTED, ADDED = "expense.report.submit", "expense.line.add"
DRAFT_MAY = (SUBMITTED, ADDED, "expense.report.get", "expense.report.discard")


def undo(code: str, given: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    target = {"targetRecordId": given["targetRecordId"], "operationType": "UPDATE"}
    return {"cmdCode": code, "input": {**target, **more}}


def submitted(given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "outcome": "done",
        "result": {"approverId": "0" * 26, "approverName": "Bob"},
        "record": {"id": given["targetRecordId"], "version": 2, "state": "submitted"},
        "undo": undo("expense.report.recall", given),
    }


def added(given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "outcome": "done",
        "result": {"lineId": "1" * 26, "totalMinor": 45_250},
        "record": {"id": given["targetRecordId"], "version": 2, "state": "draft"},
        "undo": undo("expense.line.remove", given, lineId="1" * 26),
    }


def recalled(given: Mapping[str, Any]) -> dict[str, Any]:
    record = {"id": given["targetRecordId"], "version": 3, "state": "draft"}
    return {"outcome": "done", "result": {}, "record": record}


def paid(given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "outcome": "done",
        "result": {"paymentId": "1" * 26, "reference": "PAY-EXP-2030", "payeeAccount": "6222 0210"},
        "record": {"id": given["targetRecordId"], "version": 4, "state": "paid"},
    }


@pytest.fixture
def office() -> Office:
    suzhou = {"title": "苏州客户拜访 Customer visit, Suzhou", "period": "2026-10"}
    supplies = {"title": "办公用品 Office supplies", "period": "2026-11"}
    fair = {"title": "杭州行业展会 Trade fair, Hangzhou", "period": "2026-09"}
    money = {"currency": "CNY", "total_minor": 36_650}
    return Office(
        records=[
            record(REPORT, "A1", "EXP-2041", "draft", DRAFT_MAY, **suzhou, **money),
            record(REPORT, "A2", "EXP-2050", "draft", DRAFT_MAY, **supplies, **money),
            record(REPORT, "A3", "EXP-2030", "approved", ["expense.payment.send"], **fair, **money),
        ],
        answers={
            SUBMITTED: [submitted],
            ADDED: [added],
            "expense.report.recall": [recalled],
            "expense.payment.send": [paid],
        },
    )


@pytest.fixture(params=[False, True], ids=["each a tool", "by run_command"])
def talk(office: Office, request: pytest.FixtureRequest) -> Talk:
    return Talk(office, descriptors(), is_large=request.param)


@pytest.mark.requirement("RUN-107")
@pytest.mark.parametrize(
    ("text", "brief", "reply"),
    [
        ("submit my October travel report", "If it turns out wrong", "It now stands at"),
        ("提交我十月的出差报销", "如果发现不对", "现在的状态是“已提交”"),
    ],
)
def test_a_report_is_found_by_words_told_of_and_submitted(
    office: Office, talk: Talk, text: str, brief: str, reply: str
) -> None:
    first, second = talk.tell(text)

    assert "EXP-2041" in first
    assert "Suzhou" in first
    assert brief in first
    assert "EXP-2041" in second
    assert reply in second
    assert "Bob" in second
    assert office.ran == [
        (SUBMITTED, {"operationType": "UPDATE", "targetRecordId": "A1".rjust(26, "0")})
    ]


@pytest.mark.requirement("RUN-107")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("submit EXP-2041", "recall it"),
        ("提交 EXP-2041", "撤回"),
        ("submit EXP-2041", "undo that"),
        ("提交 EXP-2041", "撤销"),
        ("submit EXP-2041", "please take that back"),
        ("提交 EXP-2041", "把它撤回吧"),
    ],
)
def test_what_was_submitted_last_is_taken_back_on_request(
    office: Office, talk: Talk, first: str, second: str
) -> None:
    talk.tell(first)

    said = talk.tell(second)

    assert [code for code, _ in office.ran] == [SUBMITTED, "expense.report.recall"]
    assert office.ran[1][1]["targetRecordId"] == "A1".rjust(26, "0")
    assert len(said) == 2, "nothing takes a recall back, so it is told before"


@pytest.mark.requirement("RUN-107")
@pytest.mark.parametrize(
    ("text", "described"),
    [
        ("add a taxi of 86 yuan on 3 October to EXP-2041", "taxi"),
        ("给 EXP-2041 添加 10月3日 打车 86 元", "打车"),
    ],
)
def test_a_line_is_added_with_every_value_that_was_said(
    office: Office, talk: Talk, text: str, described: str
) -> None:
    [reply] = talk.tell(text)

    assert office.ran == [
        (
            ADDED,
            {
                "operationType": "UPDATE",
                "targetRecordId": "A1".rjust(26, "0"),
                "spentOn": "2026-10-03",
                "category": "transport",
                "description": described,
                "amountMinor": 8_600,
            },
        )
    ]
    assert "EXP-2041" in reply
    assert "undo that" in reply or "撤销" in reply


@pytest.mark.requirement("RUN-107")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("add a taxi to EXP-2041", "86 yuan on 3 October"),
        ("给 EXP-2041 加一笔打车费", "10月3日，86元"),
    ],
)
def test_one_question_names_everything_that_is_missing(
    office: Office, talk: Talk, first: str, second: str
) -> None:
    [question] = talk.tell(first)
    assert office.ran == []
    assert len(question.splitlines()) == 3, "a head, the day and the amount"

    talk.tell(second)

    [(code, given)] = office.ran
    assert (code, given["spentOn"], given["amountMinor"]) == (ADDED, "2026-10-03", 8_600)
    assert given["category"] == "transport"


@pytest.mark.requirement("RUN-107")
@pytest.mark.parametrize("text", ["pay EXP-2030", "付款 EXP-2030"])
def test_a_payment_is_told_of_and_left_to_the_pipeline(
    office: Office, talk: Talk, text: str
) -> None:
    brief, reply = talk.tell(text)

    assert [code for code, _ in office.ran] == ["expense.payment.send"]
    assert "person has to agree" in brief or "要先有人" in brief
    assert "PAY-EXP-2030" in reply


@pytest.mark.requirement("RUN-107")
def test_it_is_the_record_that_was_talked_about_in_an_earlier_run(office: Office) -> None:
    talk = Talk(office, descriptors())
    talk.recent = [
        {
            "cmdCode": "expense.report.approve",
            "arguments": {"targetRecordId": "A3".rjust(26, "0")},
            "record": {"id": "A3".rjust(26, "0"), "version": 3, "state": "approved"},
            "undo": None,
        }
    ]

    talk.tell("pay it")

    assert office.ran[0][1]["targetRecordId"] == "A3".rjust(26, "0")
