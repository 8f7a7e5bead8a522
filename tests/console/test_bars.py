"""Bars stand for days, weeks or months, and every part of them is counted."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from app.console import bars
from app.console.bars import Chart

SHANGHAI = ZoneInfo("Asia/Shanghai")


def drawn(*days: tuple[date, str, int], locale: str = "en") -> Chart:
    counted = [
        (int(datetime(day.year, day.month, day.day, 12, tzinfo=UTC).timestamp()), kind, many)
        for day, kind, many in days
    ]
    made = bars.chart(counted, ("done", "refused"), UTC, locale)
    assert made is not None
    return made


def test_nothing_is_no_chart() -> None:
    assert bars.chart([], ("done",), UTC, "en") is None


def test_a_day_without_anything_is_there_and_empty() -> None:
    made = drawn((date(2026, 3, 1), "done", 3), (date(2026, 3, 3), "refused", 1))

    assert [(bar.first.day, bar.total) for bar in made.bars] == [(1, 3), (2, 0), (3, 1)]
    assert (made.least, made.most, made.total, made.step) == (0, 3, 4, "day")
    assert made.totals == {"done": 3, "refused": 1}


def test_a_day_is_that_of_the_zone() -> None:
    late = int(datetime(2026, 3, 1, 16, 30, tzinfo=UTC).timestamp())

    made = bars.chart([(late, "done", 1)], ("done",), SHANGHAI, "en")

    assert made is not None
    assert made.bars[0].first == date(2026, 3, 2)


@pytest.mark.parametrize(
    ("days", "step", "first"),
    [
        (44, "day", date(2026, 3, 4)),
        (45, "week", date(2026, 3, 2)),
        (500, "month", date(2026, 3, 1)),
    ],
)
def test_long_times_are_drawn_by_weeks_and_months(days: int, step: str, first: date) -> None:
    start = date(2026, 3, 4)  # a Wednesday

    made = drawn((start, "done", 1), (start + timedelta(days=days), "done", 2))

    assert (made.step, made.bars[0].first, made.total) == (step, first, 3)
    assert made.bars[-1].first <= start + timedelta(days=days) <= made.bars[-1].last
    assert len(made.bars) <= 61


def test_weeks_begin_as_in_the_readers_country() -> None:
    long = (date(2026, 3, 4), "done", 1), (date(2026, 6, 4), "done", 1)

    assert drawn(*long, locale="en_US").bars[0].first.weekday() == 6
    assert drawn(*long, locale="de").bars[0].first.weekday() == 0


@pytest.mark.parametrize("most", [1, 3, 7, 10, 49, 99, 1_234, 10_000])
def test_the_scale_is_round_and_above_every_bar(most: int) -> None:
    made = drawn((date(2026, 3, 1), "done", most))

    values = [value for value, _ in made.lines]
    assert values[0] == 0
    assert most <= values[-1] < 2 * most + 2
    assert 2 <= len(values) <= bars.LINES + 1
    [part] = made.bars[0].parts
    assert part.y >= bars.TOP
    assert part.y + part.height <= bars.HEIGHT - bars.BOTTOM


def test_parts_stand_on_each_other_in_their_order() -> None:
    made = drawn(*((date(2026, 3, 1), kind, 2) for kind in ("zeal", "refused", "done")))

    parts = made.bars[0].parts
    assert [part.series for part in parts] == ["done", "refused", "zeal"] == [*made.series]
    for below, above in pairwise(parts):
        assert above.y + above.height < below.y, "with a gap"
