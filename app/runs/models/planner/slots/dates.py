"""Days and months as people write them, in the user's own zone; an ambiguous one is asked for."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from app.runs.models.planner.slots.numbers import han
from app.runs.models.planner.slots.said import Said

_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NAME = "|".join(f"{name}|{name[:3]}\\.?" for name in _MONTHS) + r"|sept\.?"
_DAY = "|".join(f"{name}|{name[:3]}" for name in _DAYS)
_ISO = re.compile(r"(?<![\d-])(20\d{2})[-/.](\d{1,2})[-/.](\d{1,2})(?![\d-])")
_HAN = re.compile(
    r"(?:(20\d{2})年)?(?:(\d{1,2})|([一二三四五六七八九十]{1,2}))月(\d{1,2}|[一二三四五六七八九十]{1,3})[日号]?(?!\d)(?![个份])"
)
_DAY_FIRST = re.compile(
    rf"(?<![\w-])(\d{{1,2}})(?:st|nd|rd|th)?(?: of)?[ -]({_NAME})(?:,?[ -](20\d{{2}}))?(?![\w-])"
)
_NAME_FIRST = re.compile(
    rf"(?<![\w-])({_NAME})[ -](\d{{1,2}})(?:st|nd|rd|th)?(?:,? (20\d{{2}}))?(?![\w-])"
)
_SLASHED = re.compile(r"(?<![\d/-])(\d{1,2})/(\d{1,2})(?:/(20\d{2}))?(?![\d/-])")
_RELATIVE = re.compile(
    r"\b(day before yesterday|yesterday|today|tomorrow)\b|"
    r"(大前天|前天|昨天|昨日|今天|今日|明天|后天)"
)
_AWAY = {
    "day before yesterday": -2,
    "yesterday": -1,
    "today": 0,
    "tomorrow": 1,
    "大前天": -3,
    "前天": -2,
    "昨天": -1,
    "昨日": -1,
    "今天": 0,
    "今日": 0,
    "明天": 1,
    "后天": 2,
}
_WEEKDAY = re.compile(
    rf"\b(last|this|on|next)\s+({_DAY})\b|(上|这|本|下)?(?:个)?(?:周|星期|礼拜)([一二三四五六日天])"
)
_MONTH_ISO = re.compile(
    r"(?<![\d-])(20\d{2})[-/.](0[1-9]|1[0-2])(?![\d-])|(20\d{2})年(?:(1[0-2]|"
    r"0?[1-9])|([一二三四五六七八九十]{1,2}))月"
)
_MONTH_HAN = re.compile(r"(?<!\d)(?:(1[0-2]|0?[1-9])|([一二三四五六七八九十]{1,2}))月份?")
_MONTH_NAME = re.compile(
    r"(?<![\w-])(january|february|april|june|july|august|september|october|november|december|"
    r"jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|(?<=in )may|(?<=for )may|"
    r"(?<=my )may|(?<=of )may|(?<=in )march|(?<=for )march|"
    r"(?<=my )march|(?<=of )march)(?:['\u2019]s)?(?:,? (20\d{2}))?(?![\w-])"
)
_MONTH_RELATIVE = re.compile(
    r"\b(last|this|the current|next) month(?:'s)?\b|(上个?|这个?|本|当|下个?)月份?"
)
_CLOCK = r"(?:\s*(?:at )?\d{1,2}[:：]\d{2})"
_PLURAL = r"(?:mon|tues|wednes|thurs|fri|satur|sun)days"
_OFTEN = re.compile(
    rf"^\s*(?:daily|(?:on )?(?:weekdays|weekends|{_PLURAL}(?:(?:,| and|, and) {_PLURAL})*)|"
    rf"工作日|周末)?{_CLOCK}?\s*[:：,，]\s*|"
    r"\b(?:every|each) (?:\d{1,3} )?(?:minutes?|hours?|days?|weekdays?|weekends?|weeks?|months?|"
    rf"morning|evening|{'|'.join(_DAYS)})\b{_CLOCK}?|"
    r"每(?:隔|过)?(?:\d{1,3}\s*)?个?(?:分钟|小时|天|日|工作日|周末|早上|晚上|"
    rf"(?:周|星期)[一二三四五六日天]?|月(?:\d{{1,2}}[日号])?){_CLOCK}?",
    re.IGNORECASE,
)
SOON = 62  # days ahead
_HAN_DAYS = "一二三四五六日"


@dataclass(frozen=True, slots=True)
class Day:
    """A day of the calendar; None if it could be two of them."""

    value: date | None
    match: re.Match[str]


@dataclass(frozen=True, slots=True)
class Month:
    """A month as `2026-10`."""

    value: str
    match: re.Match[str]


def days(said: Said, today: date) -> Iterator[Day]:
    """Every day that is named."""
    for pattern, read in (
        (_ISO, _iso),
        (_HAN, _han),
        (_DAY_FIRST, _day_first),
        (_NAME_FIRST, _name_first),
        (_SLASHED, _slashed),
        (_RELATIVE, _relative),
        (_WEEKDAY, _weekday),
    ):
        for match in list(said.find(pattern)):
            found, is_day = read(match, today)
            if is_day:
                yield Day(found, match)


def months(said: Said, today: date) -> Iterator[Month]:
    """Every month that is named without a day."""
    ends: list[tuple[int, int]] = []
    for pattern, read in (
        (_MONTH_ISO, _iso_month),
        (_MONTH_RELATIVE, _months_away),
        (_MONTH_HAN, _han_month),
        (_MONTH_NAME, _named_month),
    ):
        for match in said.find(pattern):
            begin, end = match.span()
            if (found := read(match, today)) and all(end <= b or e <= begin for b, e in ends):
                ends.append((begin, end))
                yield Month(found, match)


def without_times(text: str) -> str:
    """An instruction without the words that say how often it is carried out."""
    return _OFTEN.sub(" ", text).strip(" ,:，：") or text


def repeats(folded: str) -> bool:
    """Whether it is to be done again and again: every Monday, 每天."""
    return any(found[0].strip(" :：,，") for found in _OFTEN.finditer(folded))


def _iso_month(match: re.Match[str], _today: date) -> str:
    month = int(match[2] or match[4] or han(match[5]) or 0)
    return f"{match[1] or match[3]}-{month:02}" if 1 <= month <= 12 else ""


def _han_month(match: re.Match[str], today: date) -> str:
    month = int(match[1] or han(match[2]) or 0)
    return f"{_year(today, month, 15)}-{month:02}" if 1 <= month <= 12 else ""


def _named_month(match: re.Match[str], today: date) -> str:
    month = _number(match[1])
    return f"{match[2] or _year(today, month, 15)}-{month:02}"


_Read = tuple[date | None, bool]


def _iso(match: re.Match[str], today: date) -> _Read:
    return _made(int(match[1]), int(match[2]), int(match[3]))


def _han(match: re.Match[str], today: date) -> _Read:
    month = int(match[2]) if match[2] else han(match[3]) or 0
    day = int(match[4]) if match[4].isdigit() else han(match[4]) or 0
    return _made(int(match[1]) if match[1] else _year(today, month, day), month, day)


def _day_first(match: re.Match[str], today: date) -> _Read:
    month, day = _number(match[2]), int(match[1])
    return _made(int(match[3]) if match[3] else _year(today, month, day), month, day)


def _name_first(match: re.Match[str], today: date) -> _Read:
    month, day = _number(match[1]), int(match[2])
    return _made(int(match[3]) if match[3] else _year(today, month, day), month, day)


def _slashed(match: re.Match[str], today: date) -> _Read:
    """10/3 is two days, 10/14 is one."""
    first, second = int(match[1]), int(match[2])
    if first <= 12 and second <= 12 and first != second:
        return None, first >= 1 and second >= 1
    month, day = (first, second) if first <= 12 else (second, first)
    return _made(int(match[3]) if match[3] else _year(today, month, day), month, day)


def _relative(match: re.Match[str], today: date) -> _Read:
    return today + timedelta(days=_AWAY[match[0]]), True


def _weekday(match: re.Match[str], today: date) -> _Read:
    """Last Friday is that of the week before only in Chinese; "on Friday" is the last one."""
    if match[4]:
        wanted = _HAN_DAYS.index("日" if match[4] == "天" else match[4])
        weeks = {"上": -1, "下": 1}.get(match[3] or "", 0)
        return today + timedelta(days=wanted - today.weekday() + 7 * weeks), True
    wanted = next(place for place, name in enumerate(_DAYS) if name.startswith(match[2][:3]))
    if match[1] in {"this", "next"}:
        ahead = (wanted - today.weekday()) % 7
        return (None, True) if match[1] == "this" else (today + timedelta(days=ahead or 7), True)
    return today - timedelta(days=(today.weekday() - wanted) % 7 or 7), True


def _made(year: int, month: int, day: int) -> _Read:
    try:
        return date(year, month, day), True
    except ValueError:
        return None, False


def _year(today: date, month: int, day: int) -> int:
    """The year of a date without one: soon to come, else the last there was."""
    middle = min(max(day, 1), 28)
    month = min(max(month, 1), 12)
    ahead = (today.year - 1, today.year, today.year + 1)
    return max(y for y in ahead if (date(y, month, middle) - today).days <= SOON)


def _number(name: str) -> int:
    return next(place for place, each in enumerate(_MONTHS, 1) if each.startswith(name[:3]))


def _months_away(match: re.Match[str], today: date) -> str:
    word = (match[1] or match[2]).removesuffix("个")
    away = {"last": -1, "上": -1, "next": 1, "下": 1}.get(word, 0)
    place = today.year * 12 + today.month - 1 + away
    return f"{place // 12}-{place % 12 + 1:02}"
