"""Whole numbers: digits, and the small ones people write in Chinese characters."""

import re
from collections.abc import Iterator

from app.runs.models.planner.slots.said import Said

_DIGITS = re.compile(
    r"(?<![\w.-])(?<!\d,)([+-]?(?:\d{1,3}(?:,\d{3}){1,4}|\d{1,12}))(?![\d]|[.,]\d|[a-z-])|"
    r"(?<=[\u4e00-\u9fff\u00d7x*])([+-]?\d{1,12})(?![\d]|[.,]\d|[a-z-])",
    re.ASCII,
)
_HAN = re.compile(r"([一二两三四五六七八九十百]{1,5})(?=[个件箱台支盒卷根双包只把袋瓶桶张套])")
_VALUE = {"一": 1, "二": 2, "两": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9}
_UNIT = {"十": 10, "百": 100}
_LESS = re.compile(
    r"\b(?:missing|short|less|fewer|lost|minus|gone|broken|damaged)\b|少了?|缺|亏|损|丢"
)
_MORE = re.compile(r"\b(?:more|extra|found|plus|surplus|too many)\b|多了?|盈|找到")


def numbers(said: Said) -> Iterator[tuple[int, re.Match[str]]]:
    """Every whole number that is not part of something else."""
    for match in said.find(_DIGITS):
        yield int((match[1] or match[2]).replace(",", "")), match
    for match in said.find(_HAN):
        if (value := han(match[1])) is not None:
            yield value, match


def han(text: str) -> int | None:
    """`十二` is 12, `两百` is 200; None for what is no number."""
    total, digit = 0, 0
    for character in text:
        if character in _VALUE:
            digit = _VALUE[character]
        elif character in _UNIT:
            total += (digit or 1) * _UNIT[character]
            digit = 0
        else:
            return None
    return total + digit or None


def sign(folded: str) -> int:
    """What a change is said to be: more (1), less (-1), or it is not said (0)."""
    less, more = bool(_LESS.search(folded)), bool(_MORE.search(folded))
    return 0 if less == more else (-1 if less else 1)
