"""Rules of schedules: words of both languages, times of the person's own clock."""

from datetime import UTC, datetime, timedelta

import pytest

from app.runs import schedule_rules
from app.runs.schedule_rules import At, Every


@pytest.mark.parametrize(
    ("text", "days", "at"),
    [
        ("daily 18:30", {0, 1, 2, 3, 4, 5, 6}, "18:30"),
        ("weekdays 9:00", {0, 1, 2, 3, 4}, "09:00"),
        ("Weekends  10:00", {5, 6}, "10:00"),
        ("mondays 8:00", {0}, "08:00"),
        ("mondays, thursdays and fridays 8:05", {0, 3, 4}, "08:05"),
        ("每天 18:30", {0, 1, 2, 3, 4, 5, 6}, "18:30"),
        ("工作日9：00", {0, 1, 2, 3, 4}, "09:00"),
        ("每周一 8:00", {0}, "08:00"),
        ("每周一、周五 8:00", {0, 4}, "08:00"),
        ("星期天 23:59", {6}, "23:59"),
        ("every day 9:00", {0, 1, 2, 3, 4, 5, 6}, "09:00"),
        ("daily at 9", {0, 1, 2, 3, 4, 5, 6}, "09:00"),
        ("weekdays at 9:00", {0, 1, 2, 3, 4}, "09:00"),
        ("every weekday at 9am", {0, 1, 2, 3, 4}, "09:00"),
        ("on weekends at 12 pm", {5, 6}, "12:00"),
        ("every monday at 9:00", {0}, "09:00"),
        ("every monday and every friday 9", {0, 4}, "09:00"),
        ("mon, thurs 10pm", {0, 3}, "22:00"),
        ("monday to friday 9:00", {0, 1, 2, 3, 4}, "09:00"),
        ("friday-monday 9:00", {4, 5, 6, 0}, "09:00"),
        ("daily at 12am", {0, 1, 2, 3, 4, 5, 6}, "00:00"),
        ("每天 9:00", {0, 1, 2, 3, 4, 5, 6}, "09:00"),
        ("每周一上午9点半", {0}, "09:30"),
        ("每周一、三、五 下午3点", {0, 2, 4}, "15:00"),
        ("周一到周五 9点15分", {0, 1, 2, 3, 4}, "09:15"),
    ],
)
def test_a_rule_names_days_and_a_time(text: str, days: set[int], at: str) -> None:
    rule = schedule_rules.parse(text)

    assert isinstance(rule, At)
    assert (rule.days, rule.time.strftime("%H:%M")) == (frozenset(days), at)


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        *(("every 15 minutes", 15), ("every 2 hours", 120), ("每15分钟", 15), ("每 2 小时", 120)),
        *(("every hour", 60), ("hourly", 60), ("每小时", 60), ("每2个小时", 120)),
    ],
)
def test_a_rule_says_how_far_apart(text: str, minutes: int) -> None:
    assert schedule_rules.parse(text) == Every(timedelta(minutes=minutes))


@pytest.mark.parametrize(
    "text",
    [
        *("", "sometimes", "daily", "daily 24:00", "daily 9:60", "someday 9:00", "0 9 * * *"),
        *("daily at 13pm", "weekdays to friday 9:00", "monday to 9:00", "every 9:00", "一 9:00"),
        *("every 1 minutes", "every 999 hours", "every minute", "mondays, 9:00", "周八 9:00"),
    ],
)
def test_what_is_no_rule_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        schedule_rules.parse(text)


@pytest.mark.parametrize(
    ("rule", "zone", "after", "then"),
    [
        ("weekdays 9:00", "UTC", "2026-03-06T09:00", "2026-03-09T09:00"),
        ("daily 9:00", "Asia/Shanghai", "2026-03-02T00:30", "2026-03-02T01:00"),
        ("mondays 8:00", "UTC", "2026-03-02T08:00", "2026-03-09T08:00"),
        # summer time begins on 29 March 2026 at 2:00 in Berlin: 2:30 is skipped
        ("daily 2:30", "Europe/Berlin", "2026-03-28T12:00", "2026-03-29T01:30"),
        ("daily 9:00", "Europe/Berlin", "2026-03-28T12:00", "2026-03-29T07:00"),
        # and ends on 25 October at 3:00: 2:30 comes twice, and counts once
        ("daily 2:30", "Europe/Berlin", "2026-10-24T12:00", "2026-10-25T00:30"),
        ("daily 2:30", "Europe/Berlin", "2026-10-25T00:30", "2026-10-26T01:30"),
        ("every 15 minutes", "UTC", "2026-03-02T09:07", "2026-03-02T09:22"),
    ],
)
def test_the_next_time_is_of_the_wall_clock_of_its_zone(
    rule: str, zone: str, after: str, then: str
) -> None:
    found = schedule_rules.next_after(
        schedule_rules.parse(rule), zone, datetime.fromisoformat(after).replace(tzinfo=UTC)
    )

    assert found == datetime.fromisoformat(then).replace(tzinfo=UTC)
