"""Two languages: which one this request speaks, and its words.

English is the source; the catalogues of another language are the `*.po` files of its folder in
`app/locales`, read at first use and kept.
"""

import gettext as stdlib_gettext
import io
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

LOCALES = Path(__file__).parent.parent / "locales"
DEFAULT = "en"
LANGUAGES = {"en": "English", "zh-CN": "简体中文"}  # tag → its own name for itself

_language: ContextVar[str] = ContextVar("language", default=DEFAULT)


def N_(text: str) -> str:  # noqa: N802 - gettext's own name for "mark, translate later"
    """Mark a text for translation; a door translates it when it is shown."""
    return text


def language() -> str:
    """The language tag of the current request: `en` or `zh-CN`."""
    return _language.get()


def locale_name() -> str:
    """The same for Babel: `en` or `zh_CN`."""
    return _language.get().replace("-", "_")


@contextmanager
def speaking(tag: str) -> Iterator[None]:
    """Speak `tag` inside the block; an unknown one means English."""
    token = _language.set(tag if tag in LANGUAGES else DEFAULT)
    try:
        yield
    finally:
        _language.reset(token)


def gettext(text: str) -> str:
    """`text` in the language of the request."""
    return _catalogue(language()).gettext(text)


def ngettext(one: str, many: str, count: int) -> str:
    """The form of the sentence for `count`, in the language of the request."""
    return _catalogue(language()).ngettext(one, many, count)


def pgettext(context: str, text: str) -> str:
    """`text` in the sense of `context`, in the language of the request."""
    return _catalogue(language()).pgettext(context, text)


def best_match(accept_language: str) -> str | None:
    """The language of ours that an `Accept-Language` header likes best, if any."""
    ranked = sorted(map(_weighed, accept_language[:500].split(",")), key=lambda pair: -pair[1])
    for tag, weight in ranked:
        if weight > 0 and (known := _known(tag)):
            return known
    return None


def po_files(tag: str) -> list[Path]:
    """The catalogues of a language, one a slice."""
    return sorted((LOCALES / tag.replace("-", "_")).glob("*.po"))


def _known(tag: str) -> str | None:
    primary = tag.lower().partition("-")[0]
    return {"en": "en", "zh": "zh-CN"}.get(primary)


def _weighed(part: str) -> tuple[str, float]:
    tag, _, parameter = part.strip().partition(";")
    _, _, weight = parameter.partition("=")
    try:
        return tag.strip(), float(weight) if weight else 1.0
    except ValueError:
        return tag.strip(), 0.0


@cache
def _catalogue(tag: str) -> stdlib_gettext.NullTranslations:
    files = po_files(tag)
    if not files:
        return stdlib_gettext.NullTranslations()
    merged = Catalog(locale=tag.replace("-", "_"), charset="utf-8")
    for path in files:
        with path.open("rb") as file:
            for message in read_po(file, locale=tag.replace("-", "_")):
                if message.id and not message.fuzzy:
                    merged[message.id] = message
    compiled = io.BytesIO()
    write_mo(compiled, merged)
    compiled.seek(0)
    return stdlib_gettext.GNUTranslations(compiled)
