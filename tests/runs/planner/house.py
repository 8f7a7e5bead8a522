"""A house with a few reports, as the tests of the planner share it."""

from collections.abc import Mapping
from typing import Any

from tests.runs.planner.world import Answer, Office, Talk, descriptors, record

REPORT = "expense.report"
SUBMIT, ADD, PAY = "expense.report.submit", "expense.line.add", "expense.payment.send"
APPROVE = "expense.report.approve"
DRAFT, APPROVED, OTHER = (id.rjust(26, "0") for id in ("A1", "A3", "A2"))


def office() -> Office:
    """Two drafts, one approved report, two submitted ones."""
    own = [SUBMIT, ADD, "expense.report.get", "expense.report.discard"]
    suzhou = {"title": "苏州客户拜访 Customer visit, Suzhou", "period": "2026-10"}
    supplies = {"title": "办公用品 Office supplies", "period": "2026-11"}
    fair = {"title": "杭州行业展会 Trade fair, Hangzhou", "period": "2026-09"}
    money = {"currency": "CNY", "total_minor": 36_650}
    return Office(
        records=[
            record(REPORT, "A1", "EXP-2041", "draft", own, **suzhou, **money),
            record(REPORT, "A2", "EXP-2050", "draft", own, **supplies, **money),
            record(REPORT, "A3", "EXP-2030", "approved", [PAY], **fair, **money),
            record(REPORT, "A4", "EXP-2060", "submitted", [APPROVE], **fair, **money),
            record(REPORT, "A5", "EXP-2061", "submitted", [APPROVE], **fair, **money),
        ]
    )


def _always(answer: Mapping[str, Any]) -> Answer:
    return lambda _given: answer


def talk(locale: str = "en", **answers: Any) -> Talk:
    """A conversation with that house; `answers` by the code with `_` for `.`, in order."""
    house = office()
    for name, answer in answers.items():
        told = answer if isinstance(answer, list) else [answer]
        house.answers[name.replace("_", ".")] = [_always(each) for each in told]
    return Talk(house, descriptors(), locale=locale)
