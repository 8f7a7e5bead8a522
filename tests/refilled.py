"""A PostgreSQL database that a test has used, made like its template again.

That costs the server a fraction of a new copy. PostgreSQL never changes a row in place: it writes
a new version, which bears the number of its transaction, and those only grow. So a table with as
many versions as the template's, and none with a higher number, holds the very rows of the copy;
any other is emptied and filled with the template's. The same numbers tell whether anything of the
catalogue (tables, columns, indexes, constraints, triggers, functions …) is not as it was: then,
or while anybody is connected, the database is of no further use.
"""

from typing import Any, NamedTuple

import psycopg
from psycopg import sql

from tests import kept

NAME = "tests.refilled"  # what the server calls its connections
MANY = 2_000  # rows in a table: a new copy is cheaper
USES = 40  # then what was deleted takes too much room
CATALOGUE = (
    "attrdef",
    "attribute",
    "class",
    "collation",
    "constraint",
    "default_acl",
    "enum",
    "event_trigger",
    "extension",
    "index",
    "inherits",
    "largeobject_metadata",
    "namespace",
    "opclass",
    "operator",
    "policy",
    "proc",
    "publication",
    "rewrite",
    "sequence",
    "statistic",
    "statistic_ext",
    "trigger",
    "type",
)

Connection = psycopg.Connection[Any]


class Mark(NamedTuple):
    """What tells a table from one with other rows in it."""

    rows: int
    newest: int  # the number of the transaction that wrote the newest of them


class Content:
    """What a copy holds when it is handed out; read from a new one, by the first who needs it."""

    def __init__(self, copy: Connection) -> None:
        tables = _names(copy, "r")
        self.query = (
            sql.SQL(" UNION ALL ")
            .join(
                [
                    *(
                        _mark(f"pg_{name}", sql.Identifier("pg_catalog", f"pg_{name}"))
                        for name in CATALOGUE
                    ),
                    *(_sequence(name) for name in _names(copy, "S")),
                    sql.SQL(
                        "SELECT 'settings', count(*), 0 FROM pg_db_role_setting WHERE setdatabase ="
                        " (SELECT oid FROM pg_database WHERE datname = current_database())"
                    ),
                    *(_mark(name, sql.Identifier("public", name)) for name in tables),
                ]
            )
            .as_bytes(copy)
        )
        self.marks = marks(copy, self.query)
        self.rows = {name: _copy_out(copy, name) for name in tables}


class Used:
    """One database, between two tests."""

    def __init__(self, name: str, template: Content) -> None:
        self.name = name
        self._template = template
        self._marks = dict(template.marks)
        self._uses = 0
        self._connection: Connection | None = None

    def close(self) -> None:
        """Let go of it."""
        if self._connection:
            self._connection.close()

    def is_left(self, server: Connection) -> bool:
        """Nobody is connected to it any more."""
        mine = kept.pids(self.name)
        if self._connection:
            mine.append(self._connection.info.backend_pid)
        others = server.execute(
            "SELECT 1 FROM pg_stat_activity WHERE datname = %s AND pid <> ALL(%s) LIMIT 1",
            (self.name, mine),
        )
        return others.fetchone() is None

    def refill(self, url: str) -> bool:
        """Make it like the template; False: it cannot be, or not cheaply."""
        self._uses += 1
        if self._uses > USES:
            return False
        try:
            connection = self._connection or psycopg.connect(
                url, autocommit=True, application_name=NAME
            )
            self._connection = connection
            found = marks(connection, self._template.query)
            changed = [name for name, mark in found.items() if mark != self._marks[name]]
            if any(name not in self._template.rows or found[name].rows > MANY for name in changed):
                return False
            if changed:
                self._fill(connection, changed)
        except psycopg.Error:
            return False
        return True

    def _fill(self, connection: Connection, tables: list[str]) -> None:
        with connection.transaction():
            connection.execute("SET LOCAL session_replication_role = replica")  # no trigger fires
            number = connection.execute("SELECT pg_current_xact_id()::text::bigint").fetchone()
            for name in tables:
                table = sql.Identifier("public", name)
                connection.execute(sql.SQL("DELETE FROM {}").format(table))
                if text := self._template.rows[name]:
                    into = sql.SQL("COPY {} FROM STDIN").format(table)
                    with connection.cursor().copy(into) as copy:
                        copy.write(text)
        assert number
        for name in tables:
            rows = self._template.marks[name].rows
            self._marks[name] = Mark(rows, number[0] if rows else 0)


def marks(connection: Connection, query: bytes) -> dict[str, Mark]:
    """The mark of each table, by its name."""
    answer = connection.execute(query, prepare=True)
    return {name: Mark(rows, newest) for name, rows, newest in answer}


def _names(connection: Connection, kind: str) -> list[str]:
    found = connection.execute(
        "SELECT relname FROM pg_class WHERE relkind = %s"
        " AND relnamespace = 'public'::regnamespace ORDER BY relname",
        (kind,),
    )
    return [name for (name,) in found]


def _mark(name: str, table: sql.Identifier) -> sql.Composed:
    # by age, which costs a third of reading the number; a row of the first days has the greatest
    newest = "coalesce(age('3'::xid) + 3 - nullif(min(age(xmin)), 2147483647), 0)"
    return sql.SQL(f"SELECT {{}}, count(*), {newest} FROM {{}}").format(name, table)  # noqa: S608 - ours


def _sequence(name: str) -> sql.Composed:
    return sql.SQL("SELECT {}, last_value, is_called::int FROM {}").format(
        name, sql.Identifier("public", name)
    )


def _copy_out(connection: Connection, name: str) -> bytes:
    out = sql.SQL("COPY {} TO STDOUT").format(sql.Identifier("public", name))
    with connection.cursor().copy(out) as copy:
        return b"".join(copy)
