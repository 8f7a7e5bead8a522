"""Rules of schedules in words: which days at which time, or how far apart, in either language.

    daily 18:30, every day at 18:30    每天 18:30
    weekdays at 9, weekdays 9:00       工作日 9:00, 工作日上午9点
    weekends 10am                      周末 10:00
    mondays 8:00, every monday at 8    每周一 8:00
    mondays, fridays 8:00              每周一、周五 8:00
    monday to friday 8:00              周一到周五 8:00
    every 15 minutes, every hour       每15分钟, 每小时

Times are of the wall clock in the schedule's zone: what a change of summer time skips happens as
soon as it is over, and what it repeats happens once.
"""

import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

SHORTEST, LONGEST = timedelta(minutes=5), timedelta(days=7)
_NAMES = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DAYS = {name: number for number, name in enumerate(_NAMES)}
_SHORT = {name[:3]: name for name in _NAMES} | {
    "tues": "tuesday",
    "thur": "thursday",
    "thurs": "thursday",
}
_DAYS_ZH = "一二三四五六日"
_GROUPS = {
    **dict.fromkeys(("daily", "day", "everyday", "每天", "每日"), range(7)),
    **dict.fromkeys(("weekday", "workday", "working day", "工作日", "每个工作日"), range(5)),
    **dict.fromkeys(("weekend", "周末", "每个周末", "每周末"), (5, 6)),
}
_LATE = {"pm", "下午", "晚上"}
_AT = re.compile(
    r"(?P<days>\D+?)(?:\s+at\b|\s*在)?\s*(?P<part>上午|早上|下午|晚上)?\s*"
    r"(?P<hour>[01]?\d|2[0-3])(?:[:点](?P<minute>[0-5]\d)分?|点(?P<half>半)?)?"
    r"\s*(?P<half_day>am|pm)?"
)
_EVERY = re.compile(
    r"(?:every|each|每)\s*(?:(?P<number>\d{1,4})\s*)?个?(?P<unit>minutes?|hours?|分钟|小时)|hourly"
)
_AND = re.compile(r"\s*(?:,|、|\band\b|和)\s*")
_TO = re.compile(r"\s*(?:-|–|\bto\b|到|至)\s*")  # noqa: RUF001 - people write dashes of both kinds


@dataclass(frozen=True, slots=True)
class At:
    """On some days of the week (0 is Monday), at one time of the day."""

    days: frozenset[int]
    time: time


@dataclass(frozen=True, slots=True)
class Every:
    """Again and again, so far apart."""

    interval: timedelta


Rule = At | Every


def parse(text: str) -> Rule:
    """The rule that a text names.

    Raises:
        ValueError: none, or one that is too often or too seldom.
    """
    folded = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    if every := _EVERY.fullmatch(folded):
        return _every(int(every["number"] or 1), every["unit"] or "hour")
    if at := _AT.fullmatch(folded):
        hour = _hour(int(at["hour"]), at["half_day"] or at["part"] or "")
        return At(_days(at["days"]), time(hour, 30 if at["half"] else int(at["minute"] or 0)))
    raise ValueError("no rule")


def next_after(rule: Rule, zone: str, after: datetime) -> datetime:
    """The first time of a rule after a moment, in UTC."""
    if isinstance(rule, Every):
        return after + rule.interval
    local = after.astimezone(ZoneInfo(zone))
    for days in range(9):
        day = local.date() + timedelta(days=days)
        if day.weekday() in rule.days:
            at = datetime.combine(day, rule.time, tzinfo=ZoneInfo(zone)).astimezone(UTC)
            if at > after:
                return at
    raise AssertionError("unreachable: a week has every day")


def _every(number: int, unit: str) -> Every:
    is_hours = unit.startswith("hour") or unit == "小时"
    interval = timedelta(hours=number) if is_hours else timedelta(minutes=number)
    if not SHORTEST <= interval <= LONGEST:
        raise ValueError("not so often, or not so seldom")
    return Every(interval)


def _hour(hour: int, part: str) -> int:
    """The hour of a day of 24: of a half of it, or as it was written."""
    if part in {"am", "pm"}:
        if not 1 <= hour <= 12:
            raise ValueError("a half of a day has twelve hours")
        return hour % 12 + (12 if part == "pm" else 0)
    return hour + 12 if part in _LATE and hour < 12 else hour


def _days(text: str) -> frozenset[int]:
    found: set[int] = set()
    for number, part in enumerate(_AND.split(text)):
        first, *rest = (_group(each, is_first=number == 0) for each in _TO.split(part))
        match rest:
            case []:
                found |= set(first)
            case [last] if len(first) == len(last) == 1:
                found |= {day % 7 for day in range(first[0], last[0] + 7 * (last < first) + 1)}
            case _:
                raise ValueError("from one day to another")
    return frozenset(found)


def _group(text: str, *, is_first: bool) -> tuple[int, ...]:
    word = re.sub(r"^(?:every|each|on)\s+", "", text)
    for known in (word, word.removesuffix("s")):
        if known in _GROUPS:
            return tuple(_GROUPS[known])
    return (_day(word, is_first=is_first),)


def _day(word: str, *, is_first: bool) -> int:
    chinese = re.fullmatch(r"(每?个?(?:周|星期))?([一二三四五六日天])", word)
    if chinese is not None and (chinese[1] or not is_first):
        return _DAYS_ZH.index(chinese[2].replace("天", "日"))
    name = _SHORT.get(word, word.removesuffix("s"))
    if name not in _DAYS:
        raise ValueError("no day")
    return _DAYS[name]
