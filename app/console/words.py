"""What a refusal or a field error says, in the reader's language."""

from typing import Any

from app.kernel.errors import AppError, FieldError
from app.kernel.i18n import gettext


def of(error: AppError | FieldError) -> str:
    """The translated sentence with its facts filled in."""
    return fill(error.says, error.facts)


def fill(says: str, facts: dict[str, Any]) -> str:
    """`says` translated, `%(fact)s` replaced; a sentence without its facts is still a sentence.

    A fact that is a marked text itself is translated too (`by=N_("people hold this role")`).
    """
    try:
        return gettext(says) % {name: _said(value) for name, value in facts.items()}
    except (KeyError, TypeError, ValueError):
        return gettext(says)


def _said(fact: Any) -> Any:
    return gettext(fact) if isinstance(fact, str) and fact else fact
