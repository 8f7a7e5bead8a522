"""Text as it is searched: without regard to case, width and form, in any language.

Chinese has no spaces between words, so every part of a text is found, down to one character.
"""

import unicodedata
from typing import Any

from sqlalchemy import ColumnElement

TERMS_AT_MOST = 8
LONGEST = 200  # characters of a query; more is cut off


def fold(text: str) -> str:
    """`text` in NFKC and casefolded: full width and capitals make no difference."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def folded(*parts: str | None) -> str:
    """What a row is found by: its texts, folded, a line each."""
    return "\n".join(fold(part) for part in parts if part)


def matches(column: Any, query: str) -> list[ColumnElement[bool]]:
    """Conditions under which a folded `column` holds each word of `query`; none for no words."""
    return [column.contains(term, autoescape=True) for term in terms(query)]


def terms(query: str) -> list[str]:
    """The words of `query`, folded."""
    return fold(query[:LONGEST]).replace("\0", "").split()[:TERMS_AT_MOST]
