"""Values and records as people read them, in the language that is spoken."""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from babel.dates import format_date, format_datetime
from babel.numbers import format_currency, format_decimal

from app.commands.descriptors import Descriptor
from app.kernel import i18n
from app.kernel.i18n import gettext
from app.runs.models.planner.records import Found
from app.runs.models.planner.slots import schema
from app.runs.models.planner.slots.amounts import HUNDREDTHS

_ULID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT.*")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_WORD = re.compile(r"[a-z][a-z_]{0,39}")
ROWS, LONGEST = 10, 200
_SAID_AS_WORDS = ("state", "status", "kind", "type", "category", "reason")


def listed(items: Iterable[str]) -> str:
    """Several things in a row."""
    return gettext(", ").join(items)


def quoted(text: str) -> str:
    """A text in the quotation marks of the language."""
    return gettext("“%(text)s”") % {"text": text}


def word(value: str) -> str:
    """A value of a choice or a state."""
    return gettext(value.replace("_", " ").capitalize())


def amount(minor: int, currency: str = "") -> str:
    """An amount with its currency."""
    number = Decimal(minor).scaleb(-HUNDREDTHS)
    if len(currency) == 3:
        return str(format_currency(number, currency, locale=i18n.locale_name()))
    return str(format_decimal(number, "#,##0.00", locale=i18n.locale_name()))


def value(name: str, told: Any, currency: str = "", zone: str = "UTC") -> str:
    """A value of the field `name`; empty for what says nothing to a person."""
    match told:
        case None | "" | [] | {}:
            return ""
        case bool():
            return gettext("yes") if told else gettext("no")
        case int() if name.lower().endswith("minor"):
            return amount(told, currency)
        case int() | float():
            return str(format_decimal(told, locale=i18n.locale_name()))
        case str():
            return _text(name, told, zone)
    return ""


def record(found: Found) -> str:
    """A record in a few words: number, title, month or amount."""
    parts = [f"**{plain(found.label)}**" if found.label else "", plain(found.title)]
    period = found.fields.get("period")
    parts.append(str(period) if isinstance(period, str) and period != found.label else "")
    for name, told in found.fields.items():
        if name.lower().endswith(("total_minor", "totalminor")) and isinstance(told, int):
            parts.append(amount(told, found.currency))
    return " · ".join(part for part in parts if part)


def short(found: Found) -> str:
    """A record by its number and its title."""
    label = f"**{plain(found.label)}**" if found.label else ""
    return " · ".join(part for part in (label, plain(found.title)) if part)


def plain(text: str) -> str:
    """A text of somebody, which shall not format ours."""
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", " ".join(text.split()))[:LONGEST]


def values(command: Descriptor, told: Mapping[str, Any], currency: str, zone: str) -> list[str]:
    """The values of an input, each with its name."""
    made = []
    for each in schema.fields(command):
        if each.kind in {schema.Kind.TARGET, schema.Kind.FIXED, schema.Kind.REFERENCE}:
            continue
        shown = value(each.name, told.get(each.name), currency, zone)
        if each.kind is schema.Kind.CHOICE and shown:
            shown = word(str(told[each.name]))
        if shown:
            label = schema.label(command, each.name)
            made.append(gettext("%(label)s: %(value)s") % {"label": label, "value": plain(shown)})
    return made


def answer(command: Descriptor, result: Any, zone: str, currency: str = "") -> list[str]:
    """The lines of a result of a command that reads: rows, or facts."""
    if not isinstance(result, Mapping):
        return []
    rows = next((each for each in result.values() if _is_rows(each)), None)
    if (
        rows is not None
        and len([v for v in result.values() if _is_rows(v)]) == 1
        and "id" not in result
    ):
        return [f"- {row_line(command, row, zone)}" for row in rows[:ROWS]]
    return list(
        _facts(command, {"currency": currency, **result}, zone, is_shown="currency" in result)
    )


def rows_of(result: Any) -> list[Mapping[str, Any]] | None:
    """The rows of a list; None if it is none."""
    if not isinstance(result, Mapping) or "id" in result:
        return None
    found = [each for each in result.values() if isinstance(each, list)]
    return (
        list(found[0])
        if len(found) == 1 and all(isinstance(r, Mapping) for r in found[0])
        else None
    )


def row_line(command: Descriptor, row: Mapping[str, Any], zone: str) -> str:
    """One row of a list in a line; what is a mere number says which, and so do several amounts."""
    currency = str(row.get("currency") or "")
    has_several = sum(_is_amount(name, told) for name, told in row.items()) > 1
    parts: list[str] = []
    for name, told in row.items():
        if name in {"id", "version", "currency"} or _is_told_by_name(name, row):
            continue
        if isinstance(told, str) and (_ULID.fullmatch(told) or _MOMENT.fullmatch(told)):
            continue
        shown = value(name, told, currency, zone)
        if not shown:
            continue
        if isinstance(told, bool | int) and (has_several or not _is_amount(name, told)):
            label = schema.label(command, name)
            shown = gettext("%(label)s: %(value)s") % {"label": label, "value": shown}
        parts.append(f"**{plain(shown)}**" if not parts else plain(shown))
    return " · ".join(parts)


def _facts(
    command: Descriptor, told: Mapping[str, Any], zone: str, *, is_shown: bool
) -> Iterator[str]:
    currency = str(told.get("currency") or "")
    for name, each in told.items():
        if name in {"id", "version"} or _is_told_by_name(name, told):
            continue
        if name == "currency" and not is_shown:
            continue
        label = schema.label(command, name)
        if _is_rows(each):
            yield f"- {label}:"
            for row in each[:ROWS]:
                yield f"  - {row_line(command, {'currency': currency, **row}, zone)}"
        elif isinstance(each, Mapping):
            inner = row_line(command, {"currency": currency, **each}, zone)
            if inner:
                yield f"- {label}: {inner}"
        elif not (isinstance(each, str) and _ULID.fullmatch(each)):
            shown = value(name, each, currency, zone)
            if shown:
                yield "- " + gettext("%(label)s: %(value)s") % {
                    "label": label,
                    "value": plain(shown),
                }


def _is_rows(told: Any) -> bool:
    return isinstance(told, list) and bool(told) and all(isinstance(each, Mapping) for each in told)


def _text(name: str, told: str, zone: str) -> str:
    if _ULID.fullmatch(told):
        return ""
    try:
        if _MOMENT.fullmatch(told):
            at = datetime.fromisoformat(told).astimezone(ZoneInfo(zone))
            return str(format_datetime(at, "medium", locale=i18n.locale_name()))
        if _DAY.fullmatch(told):
            return str(format_date(date.fromisoformat(told), "long", locale=i18n.locale_name()))
    except (ValueError, KeyError):
        return told
    last = schema.snake(name).rpartition("_")[2]
    return word(told) if last in _SAID_AS_WORDS and _WORD.fullmatch(told) else told


def _is_amount(name: str, told: Any) -> bool:
    return isinstance(told, int) and name.lower().endswith("minor")


def _is_told_by_name(name: str, told: Mapping[str, Any]) -> bool:
    return any(
        name.endswith(ending) and told.get(name.removesuffix(ending) + other)
        for ending, other in (("Id", "Name"), ("_id", "_name"))
    )
