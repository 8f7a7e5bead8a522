"""Values in sentences: dates, amounts, numbers, codes; what is not said stays missing."""

from datetime import date

import pytest

from app.runs.models.planner.slots import amounts, codes, dates, numbers
from app.runs.models.planner.slots.said import Said

TODAY = date(2026, 11, 30)  # a Monday


@pytest.mark.requirement("RUN-107")
@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2026-10-03", "2026-10-03"),
        ("2026/10/3", "2026-10-03"),
        ("10月3日", "2026-10-03"),
        ("十月三号", "2026-10-03"),
        ("2025年12月24日", "2025-12-24"),
        ("3 October", "2026-10-03"),
        ("October 3rd", "2026-10-03"),
        ("Oct 3, 2025", "2025-10-03"),
        ("10/14", "2026-10-14"),
        ("today", "2026-11-30"),
        ("昨天", "2026-11-29"),
        ("前天", "2026-11-28"),
        ("last Friday", "2026-11-27"),
        ("上周五", "2026-11-27"),
        ("5 January", "2027-01-05"),
        ("10/3", None),
        ("this Friday", None),
    ],
)
def test_a_day_is_read_and_an_ambiguous_one_is_not_guessed(text: str, day: str | None) -> None:
    [found] = dates.days(Said(f"paid {text} ok"), TODAY)

    assert (found.value.isoformat() if found.value else None) == day


@pytest.mark.requirement("RUN-107")
@pytest.mark.parametrize("text", ["30 February", "13月40日", "2026-13-01"])
def test_a_day_that_does_not_exist_is_none(text: str) -> None:
    assert list(dates.days(Said(text), TODAY)) == []


@pytest.mark.requirement("RUN-107")
@pytest.mark.parametrize(
    ("text", "month"),
    [
        ("my October report", "2026-10"),
        ("十月的报销", "2026-10"),
        ("10月", "2026-10"),
        ("2025年3月", "2025-03"),
        ("2026-09", "2026-09"),
        ("last month", "2026-10"),
        ("上个月", "2026-10"),
        ("本月", "2026-11"),
        ("in May", "2026-05"),
        ("you may submit it", None),
    ],
)
def test_a_month_is_read(text: str, month: str | None) -> None:
    found = [each.value for each in dates.months(Said(text), TODAY)]

    assert found == ([month] if month else [])


@pytest.mark.requirement("RUN-107")
@pytest.mark.parametrize(
    ("text", "minor", "currency"),
    [
        ("¥86", 8_600, "CNY"),
        ("86 元", 8_600, "CNY"),
        ("86.5块钱", 8_650, "CNY"),
        ("1.2万元", 1_200_000, "CNY"),
        ("3万", 3_000_000, None),
        ("$1,234.50", 123_450, "USD"),
        ("EUR 20", 2_000, "EUR"),
        ("20 euros", 2_000, "EUR"),
        ("\uff11\uff12\uff10.50元", 12_050, "CNY"),
        ("86.555 yuan", None, "CNY"),
    ],
)
def test_amounts_are_exact(text: str, minor: int | None, currency: str | None) -> None:
    [found] = amounts.amounts(Said(f"taxi {text}"))

    assert (found.minor, found.currency) == (minor, currency)


@pytest.mark.requirement("RUN-107")
@pytest.mark.parametrize(
    ("text", "values"),
    [("40 boxes", [40]), ("5 箱", [5]), ("两箱", [2]), ("十二支", [12]), ("1,200 units", [1_200])],
)
def test_numbers_are_read_in_both_scripts(text: str, values: list[int]) -> None:
    assert [value for value, _ in numbers.numbers(Said(text))] == values


@pytest.mark.requirement("RUN-107")
@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("pay EXP-2041", ["EXP-2041"]),
        ("把exp-2041提交", ["EXP-2041"]),
        ("EXP-12 and 13", ["EXP-12", "EXP-13"]),
        ("EXP-12、EXP-13和14", ["EXP-12", "EXP-13", "EXP-14"]),
        ("PAPER-A4-80 at A-01-01", ["PAPER-A4-80", "A-01-01"]),
        ("GLOVE-L", ["GLOVE-L"]),
        ("a well-known e-mail", []),
        ("on 2026-10-03", []),
    ],
)
def test_codes_of_records_are_told_from_words(text: str, named: list[str]) -> None:
    assert sorted(code for code, _ in codes.codes(Said(text))) == sorted(named)
