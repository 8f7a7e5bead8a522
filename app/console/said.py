"""Values of records and answers as people read them: amounts, times, names instead of ids.

What a value is follows from its name and its form: `total_minor` is an amount, a text in RFC 3339
a point in time, an id of a person that person's name.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Literal

from babel.numbers import format_currency, format_decimal
from sqlmodel import Session, col, select

from app.console.schema_shape import said_name, snake
from app.console.schema_text import HUNDREDTHS
from app.identity.models import Org, User
from app.kernel import ids
from app.kernel.i18n import N_, gettext, locale_name

Kind = Literal["nothing", "text", "code", "number", "amount", "moment", "day", "list", "facts"]

NAMED = {  # what some names mean wherever they stand
    "q": N_("Words"),
    "org_id": N_("Organisation"),
    "user_id": N_("Person"),
    "email": N_("E-mail"),
    # of identity, as entries of the trail name them
    "status": N_("Status"),
    "name": N_("Name"),
    "display_name": N_("Display name"),
    "code": N_("Code"),
    "login": N_("Login"),
    "locale": N_("Language"),
    "time_zone": N_("Time zone"),
    "theme": N_("Theme"),
    "scopes": N_("Scopes"),
    "grants": N_("Grants"),
    "parent_id": N_("Organisation above"),
    "path": N_("Place among the organisations"),
    "expires_at": N_("Valid until"),
    "ends_at": N_("Valid until"),
    "subject": N_("Account at the provider"),
    "issuer": N_("Issuer"),
    "client_id": N_("Application"),
    "admin_user_id": N_("Administrator"),
    "slug": N_("Short name"),
    "release": N_("Release"),
    "description": N_("Description"),
    "draft": N_("Draft"),
}
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
DAY = re.compile(r"\d{4}-\d\d-\d\d")
WORD = re.compile(r"[a-z][a-z_]{0,39}")
CHOICES = ("state", "status", "kind", "type", "category", "reason")


@dataclass(frozen=True, slots=True)
class Said:
    """A value and how to draw it; `parts` are those of a list, or of facts with their names."""

    kind: Kind
    value: Any = None
    parts: "tuple[tuple[str, Said], ...]" = ()


@dataclass(slots=True)
class Names:
    """What ids of people and organisations are called; one that is not known is what it is."""

    known: dict[str, str] = field(default_factory=dict)

    @classmethod
    def among(cls, session: Session, tenant_id: str, values: Any) -> "Names":
        """The names of every id that stands somewhere in `values`."""
        found = set(_ids(values))
        made = cls()
        for table, name in ((User, User.display_name), (Org, Org.name)):
            if found:
                query = select(table.id, name).where(
                    table.tenant_id == tenant_id, col(table.id).in_(found)
                )
                made.known |= dict(session.exec(query).all())
        return made


def label_of(name: str) -> str:
    """How a name of the wire or of a column reads where nobody gave it a better one."""
    return gettext(NAMED.get(snake(name)) or said_name(name))


def say(name: str, value: Any, names: Names, *, currency: str = "") -> Said:
    """`value` of the field `name`."""
    match value:
        case None | "" | [] | {}:
            return Said("nothing")
        case bool():
            return Said("text", gettext("Yes") if value else gettext("No"))
        case int() if name.lower().endswith("minor"):
            return Said("amount", amount(value, currency))
        case int() | float():
            return Said("number", value)
        case Mapping():
            return Said("facts", parts=tuple(facts(value, names)))
        case str():
            return _text(name, value, names)
        case Iterable():
            return Said("list", parts=tuple(("", say(name, each, names)) for each in value))
    return Said("text", str(value))


def facts(values: Mapping[str, Any], names: Names) -> Iterator[tuple[str, Said]]:
    """Name and value of each field; an id beside the name of the same thing is left out."""
    currency = str(values.get("currency") or "")
    for name, value in values.items():
        if _is_told_by_name(name, values):
            continue
        yield label_of(name), say(name, value, names, currency=currency)


def amount(minor: int, currency: str = "") -> str:
    """An amount in minor units, with the separators of the reader."""
    value = Decimal(minor).scaleb(-HUNDREDTHS)
    if len(currency) == 3:
        return str(format_currency(value, currency, locale=locale_name()))
    return str(format_decimal(value, "#,##0.00", locale=locale_name()))


def columns(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """The columns of a table of rows, without ids that a name stands for."""
    listed = [dict(row) for row in rows]
    merged: dict[str, Any] = {}
    for row in listed:
        merged |= {name: value for name, value in row.items() if name not in merged}
    return [name for name in merged if name != "id" and not _is_told_by_name(name, merged)]


def _text(name: str, value: str, names: Names) -> Said:
    if known := names.known.get(value):
        return Said("text", known)
    if ids.is_ulid(value):
        return Said("code", value)
    try:
        if MOMENT.fullmatch(value):
            return Said("moment", datetime.fromisoformat(value))
        if DAY.fullmatch(value):
            return Said("day", date.fromisoformat(value))
    except ValueError:  # written like one, and none
        return Said("text", value)
    if name.rpartition("_")[2].lower() in CHOICES and WORD.fullmatch(value):
        return Said("text", gettext(said_name(value)))
    return Said("text", value)


def _is_told_by_name(name: str, values: Mapping[str, Any]) -> bool:
    for ending, other in (("Id", "Name"), ("_id", "_name")):
        if name.endswith(ending) and values.get(name.removesuffix(ending) + other):
            return True
    return False


def _ids(values: Any) -> Iterator[str]:
    match values:
        case str():
            if ids.is_ulid(values):
                yield values
        case Mapping():
            for each in values.values():
                yield from _ids(each)
        case Iterable():
            for each in values:
                yield from _ids(each)
