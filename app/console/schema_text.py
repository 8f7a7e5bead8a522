"""Values of an input as people type them, and back.

Reading is lenient: what is not the number, amount or date it should be stays the text that was
typed. The pipeline refuses it at its place, and the form still shows it.
"""

import json
import re
import unicodedata
from datetime import datetime
from typing import Any

from app.console import zoned
from app.console.schema_shape import Kind, Shape
from app.kernel import json as strict
from app.kernel.errors import Invalid
from app.kernel.i18n import N_

HUNDREDTHS = 2  # decimal places of an amount; what is sent is a whole number of them
INTEGER = re.compile(r"[+-]?\d{1,19}", re.ASCII)
NUMBER = re.compile(r"[+-]?\d{1,19}(\.\d{1,12})?", re.ASCII)
AMOUNT = re.compile(r"([+-]?)(\d{1,17}|\d{1,3}(?:,\d{3}){1,4})(?:\.(\d{1,2}))?", re.ASCII)

# What a person reads where the text that was typed is not such a value.
EXPECTED: dict[Kind, str] = {
    "integer": N_("Write a whole number."),
    "number": N_("Write a number."),
    "money": N_("Write an amount, such as 3420.00."),
    "moment": N_("Write a date and a time, such as 2026-11-25 14:02."),
    "json": N_("This is not valid JSON."),
}


def read(shape: Shape, text: str) -> Any:
    """The value that was typed; the text itself where it is none of this shape."""
    match shape.kind:
        case "integer":
            plain = _plain(text)
            return int(plain) if INTEGER.fullmatch(plain) else text
        case "number":
            return _number(text)
        case "money":
            return _minor_units(text)
        case "moment":
            return _moment(text)
        case "choice" | "choices":
            return next((each for each in shape.choices if option(each) == text), text)
        case "json":
            return _json(text)
        case "email" | "uri" | "date" | "record":
            return text.strip()
        case _:
            return text


def write(shape: Shape, value: Any) -> str:
    """How a value stands in its field."""
    if value is None:
        return ""
    match shape.kind:
        case "json":
            return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        case "money" if type(value) is int:
            return amount(value)
        case "moment" if isinstance(value, str):
            return _typed(value)
        case _:
            return option(value)


def option(value: Any) -> str:
    """A value of a choice, as the form sends it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def amount(minor: int) -> str:
    """An amount in minor units as its decimal text: `342000` is `3420.00`."""
    whole, part = divmod(abs(minor), 10**HUNDREDTHS)
    return f"{'-' if minor < 0 else ''}{whole}.{part:0{HUNDREDTHS}}"


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).strip()  # digits of an input method may be wide


def _number(text: str) -> Any:
    plain = _plain(text)
    if not NUMBER.fullmatch(plain):
        return text
    return int(plain) if INTEGER.fullmatch(plain) else float(plain)


def _minor_units(text: str) -> Any:
    found = AMOUNT.fullmatch(_plain(text))
    if found is None:
        return text
    sign, whole, part = found.groups()
    minor = int(whole.replace(",", "") + (part or "").ljust(HUNDREDTHS, "0"))
    return -minor if sign == "-" else minor


def _moment(text: str) -> Any:
    try:
        return zoned.read(datetime.fromisoformat(text.strip())).isoformat().replace("+00:00", "Z")
    except ValueError:
        return text


def _typed(value: str) -> str:
    try:
        return zoned.typed(zoned.read(datetime.fromisoformat(value)))
    except ValueError:
        return value


def _json(text: str) -> Any:
    try:
        return strict.loads(text.encode(errors="surrogatepass"))
    except Invalid:
        return text
