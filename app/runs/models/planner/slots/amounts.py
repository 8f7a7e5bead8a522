"""Amounts of money: exact decimals, with a currency where one is named."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from app.runs.models.planner.slots.said import Said

HUNDREDTHS = 2  # decimal places of an amount; commands take a whole number of them

_NUMBER = r"(?:\d{1,3}(?:,\d{3}){1,4}|\d{1,12})(?:\.\d{1,12})?"
_MARKS = {
    "¥": "CNY",
    "元": "CNY",
    "块": "CNY",
    "人民币": "CNY",
    "yuan": "CNY",
    "rmb": "CNY",
    "cny": "CNY",
    "$": "USD",
    "usd": "USD",
    "dollar": "USD",
    "美元": "USD",
    "us$": "USD",
    "€": "EUR",
    "eur": "EUR",
    "euro": "EUR",
    "欧元": "EUR",
    "£": "GBP",
    "gbp": "GBP",
    "英镑": "GBP",
    "hk$": "HKD",
    "hkd": "HKD",
    "港币": "HKD",
    "jpy": "JPY",
    "日元": "JPY",
}
_BEFORE = r"us\$|hk\$|[¥$€£]|(?:rmb|cny|usd|eur|gbp|hkd|jpy|人民币)"
_AFTER = (
    r"元|块钱?|人民币|美元|欧元|英镑|港币|日元|yuan|rmb|cny|usd|dollars?|euros?|eur|gbp|hkd|jpy"
)
_AMOUNT = re.compile(
    rf"(?<![a-z0-9.-])(?<!\d,)(?:(?P<before>{_BEFORE})\s*(?P<first>{_NUMBER})\s*(?P<wan1>万)?|"
    rf"(?P<second>{_NUMBER})\s*(?P<wan2>万)?\s*(?P<after>{_AFTER})|(?P<third>{_NUMBER})\s*(?P<wan3>万))"
    r"(?![a-z0-9])"
)
_PLAIN = re.compile(rf"(?<![a-z0-9.-])(?<!\d,){_NUMBER}(?![a-z0-9.,-]*\d)(?![a-z-])")
_CURRENCY = re.compile(
    r"(?<![a-z])(?:in |currency:? )?(cny|rmb|usd|eur|gbp|hkd|jpy|euros?|dollars?|"
    r"yuan)(?![a-z])|(人民币|美元|欧元|英镑|港币|日元)"
)


@dataclass(frozen=True, slots=True)
class Amount:
    """A number of a currency; None where none is named."""

    value: Decimal
    currency: str | None
    match: re.Match[str]

    @property
    def minor(self) -> int | None:
        """In hundredths; None if it has more decimal places than money has."""
        scaled = self.value.scaleb(HUNDREDTHS)
        return int(scaled) if scaled == scaled.to_integral_value() else None


def amounts(said: Said) -> Iterator[Amount]:
    """Every number with a mark of money."""
    for match in said.find(_AMOUNT):
        digits = match["first"] or match["second"] or match["third"]
        value = Decimal(digits.replace(",", ""))
        if match["wan1"] or match["wan2"] or match["wan3"]:
            value *= 10_000
        mark = (match["before"] or match["after"] or "").strip()
        yield Amount(value, _currency(mark), match)


def plain(said: Said, *, decimals_only: bool) -> Iterator[Amount]:
    """Numbers without a mark of money, where nothing else can be meant."""
    for match in said.find(_PLAIN):
        if not decimals_only or "." in match[0]:
            yield Amount(Decimal(match[0].replace(",", "")), None, match)


def currency(said: Said) -> str | None:
    """A currency that is named without an amount."""
    for match in said.find(_CURRENCY):
        said.take(match)
        return _currency(match[1] or match[2])
    return None


def _currency(mark: str) -> str | None:
    return _MARKS.get(mark) or _MARKS.get(mark.rstrip("s")) or _MARKS.get(mark.removesuffix("钱"))
