"""SQL for the platform's own hot rows: the driver gets it as it stands, without a compiler between.

A parameter is written `:name`. Aware times and JSON values are stored as the tables' models store
them, so that both ways read each other's rows (spec/performance.md, fact 2).
"""

import re
from collections import namedtuple
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, MultipleResultsFound, NoResultFound

from app.kernel import json

_PLAIN = frozenset({str, int, bool, type(None)})  # stored as they are
_PARAMETER = re.compile(r"(?<!:):([a-z_][a-z0-9_]*)")


class Found:
    """What a statement gave: its rows, with the columns by name, and how many it touched."""

    __slots__ = ("_rows", "rowcount")

    def __init__(self, rows: Sequence[Any], rowcount: int) -> None:
        self._rows = rows
        self.rowcount = rowcount

    def __iter__(self) -> Iterator[Any]:
        return iter(self._rows)

    def all(self) -> Sequence[Any]:
        """Every row."""
        return self._rows

    def first(self) -> Any:
        """The first row, None where there is none."""
        return self._rows[0] if self._rows else None

    def one(self) -> Any:
        """The only row.

        Raises:
            NoResultFound, MultipleResultsFound: there is none, or another.
        """
        if len(self._rows) != 1:
            raise MultipleResultsFound if self._rows else NoResultFound
        return self._rows[0]

    def scalar(self) -> Any:
        """The first column of the first row, None where there is none."""
        return self._rows[0][0] if self._rows else None


class Prepared:
    """One statement, in the words of both databases."""

    def __init__(self, sql: str) -> None:
        # by their places: the embedded driver takes three times as long to find many by name
        self._names = tuple(_PARAMETER.findall(sql))
        self._sqlite = _PARAMETER.sub("?", sql)
        self._postgresql = _PARAMETER.sub(r"%(\1)s", sql)
        self._row: Any = None
        self._gives_rows: bool | None = None  # not known before its first run

    def run(self, connection: Connection, **values: Any) -> Found:
        """Execute it with `values`."""
        return self.run_with(connection, values)

    def run_with(self, connection: Connection, values: Mapping[str, Any]) -> Found:
        """Execute it with the parameters of a mapping.

        Raises:
            DBAPIError: what the driver raises, as SQLAlchemy would.
        """
        if not connection.in_transaction():
            connection.begin()
        sql, stored = self._said(connection, values)
        driver: Any = connection.connection.driver_connection
        try:
            cursor = driver.execute(sql, stored)
            if self._gives_rows is None:  # asked once: psycopg makes the description anew each time
                self._gives_rows = cursor.description is not None
            rows = cursor.fetchall() if self._gives_rows else ()
        except driver_errors(connection) as fault:
            raise _told(connection, sql, fault) from fault
        if rows:
            rows = self._named(cursor, rows)
        return Found(rows, cursor.rowcount)

    def run_many(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Execute it once for each mapping, in one go; for statements that give no rows.

        Raises:
            DBAPIError: what the driver raises, as SQLAlchemy would.
        """
        if not connection.in_transaction():
            connection.begin()
        said = [self._said(connection, values) for values in rows]
        if not said:
            return
        sql = said[0][0]
        driver: Any = connection.connection.driver_connection
        try:
            driver.cursor().executemany(sql, [stored for _, stored in said])
        except driver_errors(connection) as fault:
            raise _told(connection, sql, fault) from fault

    def _said(self, connection: Connection, values: Mapping[str, Any]) -> tuple[str, Any]:
        """What the driver is told: the words, and the values as it takes them."""
        if connection.dialect.name == "sqlite":
            given = [values[name] for name in self._names]
            return self._sqlite, [
                value if type(value) in _PLAIN else _for_sqlite(value) for value in given
            ]
        return self._postgresql, {
            name: value if type(value) in _PLAIN else _for_postgresql(value)
            for name, value in values.items()
        }

    def _named(self, cursor: Any, rows: Sequence[Any]) -> Sequence[Any]:
        if self._row is None:
            names = [column[0] for column in cursor.description]
            self._row = namedtuple("Row", names, rename=True)  # type: ignore[misc]
        return list(map(self._row._make, rows))


class Locking(Prepared):
    """A SELECT that locks what it finds; on SQLite the writer is alone anyway.

    Rows that refer to it may still be written: whoever wrote one already, and locks it then, would
    otherwise wait for another who did the same.
    """

    def __init__(self, sql: str) -> None:
        super().__init__(sql)
        self._postgresql += " FOR NO KEY UPDATE"


class AtOnce:
    """Two statements on different tables, neither of which gives rows; the same values for both.

    PostgreSQL gets them in one: a round trip less while rows are locked.
    """

    def __init__(self, first: str, second: str) -> None:
        self._apart = (Prepared(first), Prepared(second))
        self._together = Prepared(f"WITH first AS ({first}) {second}")

    def run_with(self, connection: Connection, values: Mapping[str, Any]) -> None:
        """Execute both with the parameters of a mapping.

        Raises:
            DBAPIError: what the driver raises, as SQLAlchemy would.
        """
        for each in self._apart if is_sqlite(connection) else (self._together,):
            each.run_with(connection, values)


def is_sqlite(connection: Connection) -> bool:
    """Which of the two a connection leads to."""
    return connection.dialect.name == "sqlite"


def say(connection: Connection, sql: str) -> None:
    """Execute words of transactions, which have no parameters; SQLAlchemy would compile them.

    Raises:
        DBAPIError: what the driver raises, as SQLAlchemy would.
    """
    driver: Any = connection.connection.driver_connection
    try:
        driver.execute(sql).close()
    except driver_errors(connection) as fault:
        raise _told(connection, sql, fault) from fault


def driver_errors(connection: Connection) -> type[Exception]:
    """The base of what the driver of a connection raises."""
    dbapi: Any = connection.dialect.dbapi
    found: type[Exception] = dbapi.Error
    return found


def _told(connection: Connection, sql: str, fault: Exception) -> BaseException:
    return DBAPIError.instance(
        sql,
        None,  # parameters are nobody's to read
        fault,
        driver_errors(connection),
        hide_parameters=True,
        dialect=connection.dialect,
    )


def _for_sqlite(value: Any) -> Any:
    if isinstance(value, datetime):
        plain = value if value.tzinfo is UTC else value.astimezone(UTC)
        return plain.isoformat(" ", "microseconds")[:-6]  # without the +00:00
    return _for_postgresql(value)


def _for_postgresql(value: Any) -> Any:
    return json.dumps(value).decode() if isinstance(value, dict | list) else value
