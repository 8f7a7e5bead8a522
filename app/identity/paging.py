"""Pages of a list by keyset: a place in a stable order, never an offset.

A cursor is a place and a direction, signed (SEC-82); it opens nothing, because the list's own
conditions hold on every page. One that is not ours is the first page.
"""

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

import orjson
from sqlalchemy import ColumnElement, Select, literal, tuple_
from sqlmodel import Session
from sqlmodel.sql.sqltypes import UTCDateTime

from app.kernel import clock, keyring

PURPOSE = "cursor"  # ring of keys
SIZE = 50
LONGEST = 2_000  # characters of a cursor
BACK, ON = "b", "n"

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Order:
    """What a list is sorted by: a column of texts or times, then the id, in one direction."""

    column: Any
    id: Any
    is_descending: bool = False

    @property
    def keys(self) -> tuple[Any, Any]:
        """Both columns; together they are unique."""
        return self.column, self.id


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """Rows of one page, and the cursors of its neighbours, None where there is none."""

    rows: Sequence[Row]
    previous: str | None = None
    next: str | None = None
    total: int = 0


@dataclass(frozen=True, slots=True)
class _Place:
    direction: str
    values: tuple[Any, ...]


def page(
    session: Session,
    query: Select[Any],
    order: Order,
    cursor: str | None,
    make: Callable[[Any], Row],
    *,
    size: int = SIZE,
) -> Page[Row]:
    """The rows of `query` at `cursor`; `make` gets each as it was selected."""
    place = _parsed(cursor, order)
    back = place is not None and place.direction == BACK
    wanted = query.add_columns(*order.keys)
    if place is not None:
        wanted = wanted.where(_beyond(order, place, back))
    descending = order.is_descending != back
    wanted = wanted.order_by(*(key.desc() if descending else key.asc() for key in order.keys))
    found = list(session.execute(wanted.limit(size + 1)).all())
    has_more = len(found) > size
    found = found[:size]
    if back:
        found.reverse()
    has_previous = has_more if back else place is not None and bool(found)
    has_next = bool(found) if back else has_more
    return Page(
        rows=[make(row[:-2]) for row in found],
        previous=_cursor(BACK, found[0][-2:]) if has_previous else None,
        next=_cursor(ON, found[-1][-2:]) if has_next else None,
    )


def _beyond(order: Order, place: _Place, back: bool) -> ColumnElement[bool]:
    here = tuple_(*order.keys)
    there = tuple_(
        *(literal(value, key.type) for value, key in zip(place.values, order.keys, strict=True))
    )
    return here < there if order.is_descending != back else here > there


def _cursor(direction: str, values: Sequence[Any]) -> str:
    plain = [clock.rfc3339(value) if isinstance(value, datetime) else value for value in values]
    place = base64.urlsafe_b64encode(orjson.dumps([direction, *plain])).decode().rstrip("=")
    return f"{place}.{keyring.sign(PURPOSE, place)}"


def _parsed(cursor: str | None, order: Order) -> _Place | None:
    if not cursor or len(cursor) > LONGEST:
        return None
    signed, _, mac = cursor.rpartition(".")
    if not keyring.verifies(PURPOSE, signed, mac):
        return None
    try:
        padded = signed.encode("ascii") + b"=" * (-len(signed) % 4)
        direction, *values = orjson.loads(base64.b64decode(padded, b"-_", validate=True))
        typed = tuple(
            _typed(value, isinstance(key.type, UTCDateTime))
            for value, key in zip(values, order.keys, strict=True)
        )
    except (binascii.Error, ValueError, TypeError, OverflowError):
        return None
    return _Place(direction, typed) if direction in {BACK, ON} else None


def _typed(value: Any, is_moment: bool) -> Any:
    if not isinstance(value, str) or "\0" in value:
        raise ValueError("another type")
    if not is_moment:
        return value
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is None:
        raise ValueError("a moment without its zone")
    return moment.astimezone(UTC)  # overflows near the ends of time
