"""Patterns of AIDs that come in without being asked after: globs, matched in linear time.

Administrators write them and strangers' names are matched, so no regular expression runs here:
`^…$` is accepted where nothing but literal characters, `.` and `.*` stands between, and anything
without an anchor is read as the narrower of the two.
"""

import re
from collections.abc import Iterable

LONGEST = 200
MOST = 50
_GLOB = re.compile(r"[a-z0-9_.*?-]+")
_EXPRESSION = re.compile(r"\^((?:\\\.|\.\*|[a-z0-9_-]|\.)+)\$")
_PART = re.compile(r"\\\.|\.\*|\.|[a-z0-9_-]")
_AS_GLOB = {r"\.": ".", ".*": "*", ".": "?"}


def understood(text: str) -> str:
    """A pattern as a glob of `*` and `?`.

    Raises:
        ValueError: it is none, or an expression that is more than a glob.
    """
    if len(text) > LONGEST:
        raise ValueError("a pattern has at most 200 characters")
    if _GLOB.fullmatch(text):
        return text
    found = _EXPRESSION.fullmatch(text)
    if found is None:
        raise ValueError("a pattern is a glob such as *-sales.example.org")
    return "".join(_AS_GLOB.get(part, part) for part in _PART.findall(found[1]))


def any_matches(patterns: Iterable[str], aid: str) -> bool:
    """Whether an AID fits one of `patterns`, which `understood` accepted before."""
    return any(_matches(understood(pattern), aid) for pattern in patterns)


def _matches(glob: str, text: str) -> bool:
    """Greedy with one place to go back to: never more than len(glob) x len(text) steps."""
    at, place, star, resume = 0, 0, -1, 0
    while at < len(text):
        if place < len(glob) and glob[place] == "*":
            star, resume = place, at
            place += 1
        elif place < len(glob) and glob[place] in {"?", text[at]}:
            at, place = at + 1, place + 1
        elif star >= 0:
            resume += 1
            at, place = resume, star + 1
        else:
            return False
    return not glob[place:].strip("*")
