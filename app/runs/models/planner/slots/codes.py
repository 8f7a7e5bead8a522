"""Ids and numbers by which people name records: `EXP-2041`, `A-01-01`, also "12 and 13"."""

import re
from collections.abc import Iterator

from app.runs.models.planner.slots.said import Said

ULID = re.compile(r"(?<![0-9A-Za-z])[0-9A-HJKMNP-TV-Z]{26}(?![0-9A-Za-z])")
_CODE = re.compile(
    r"(?<![A-Za-z0-9-])(?:[A-Za-z]{1,10}(?:-[A-Za-z0-9]{1,12}){1,4}|[A-Z]{2,6}\d{2,})(?![A-Za-z0-9-])"
)
_SERIES = re.compile(
    r"(?P<first>(?<![a-z0-9-])[a-z]{1,10}-?\d{1,8})(?P<more>(?:\s*(?:,|、|，|"
    r"and|&|和|与|及|以及)\s*\d{1,8}(?![\d.\w-]))+)"
)
_BARE = re.compile(
    r"(?<![\w.¥$€-])(?<!\d,)#?(\d{1,8})(?:号)?(?![\w.,-]*\d|[年月日元块%])(?!\s*(?:yuan|"
    r"rmb|cny|usd|eur|元|块))"
)


def ids(said: Said) -> Iterator[tuple[str, re.Match[str]]]:
    """Every id of a record."""
    for match in said.find(ULID, cased=True):
        yield match[0], match


def codes(said: Said) -> Iterator[tuple[str, re.Match[str]]]:
    """Every code with a digit, or in capitals; each of a series takes the prefix of the first."""
    for match in list(said.find(_SERIES)):
        prefix = re.sub(r"\d+$", "", match["first"]).upper()
        yield match["first"].upper(), match
        for number in re.findall(r"\d+", match["more"]):
            yield f"{prefix}{number}", match
        said.take(match)
    for match in list(said.find(_CODE, cased=True)):
        if any(each.isdigit() for each in match[0]) or match[0].isupper():
            yield match[0].upper(), match


def without(text: str) -> str:
    """A text without the ids and codes in it."""
    said = Said(text)
    for match in (*(match for _, match in ids(said)), *(match for _, match in codes(said))):
        said.take(match)
    return said.rest()


def bare(said: Said) -> Iterator[tuple[str, re.Match[str]]]:
    """Plain numbers, which name records where nothing else is counted."""
    for match in said.find(_BARE):
        yield match[1], match
