"""A PostgreSQL database that is handed out again cannot be told from a new copy."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from tests import databases, people, postgres, refilled

ADDED = """INSERT INTO tenant SELECT (jsonb_populate_record(t, '{"id": "x", "slug": "x"}')).*
FROM tenant t WHERE slug = 'acme'"""
MEMORY = """DO $$ BEGIN
EXECUTE format('ALTER DATABASE %I SET work_mem = 64', current_database()); END $$"""
FOLDER = Path()  # PostgreSQL needs none


@pytest.fixture(autouse=True)
def _empty_pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    mine = type(databases._left)(databases._left.default_factory)
    monkeypatch.setattr(databases, "_left", mine)
    yield
    for left in mine.values():
        for used in left:
            databases._give_up(used)


@contextmanager
def _copy() -> Iterator[tuple[str, psycopg.Connection[Any]]]:
    with people.peopled("postgresql", FOLDER) as url:
        libpq = url.replace(postgres.SCHEME, "postgresql://", 1)
        with psycopg.connect(libpq, autocommit=True) as connection:
            yield url, connection
        _wait_until_it_is_left(libpq)


def _wait_until_it_is_left(url: str) -> None:
    name = url.rpartition("/")[2].partition("?")[0]
    query = "SELECT 1 FROM pg_stat_activity WHERE datname = %s AND application_name <> %s LIMIT 1"
    while databases._postgresql().execute(query, (name, refilled.NAME)).fetchone():
        pass


def _content(connection: psycopg.Connection[Any]) -> dict[str, list[tuple[Any, ...]]]:
    tables = connection.execute(
        "SELECT relname FROM pg_class WHERE relkind = 'r'"
        " AND relnamespace = 'public'::regnamespace ORDER BY 1"
    ).fetchall()
    rows = sql.SQL("SELECT t::text FROM {} t ORDER BY 1")
    return {
        name: connection.execute(rows.format(sql.Identifier(name))).fetchall() for (name,) in tables
    }


def test_whatever_was_written_is_gone_and_whatever_was_deleted_is_back() -> None:
    with _copy() as (first, connection):
        before = _content(connection)
    assert len(before["user"]) == 9

    for statement in (
        "UPDATE \"user\" SET display_name = 'Mallory'",
        "UPDATE tenant SET name = name",
        "DELETE FROM session; SET session_replication_role = replica; DELETE FROM org",
        ADDED,
        "SET session_replication_role = replica; TRUNCATE session",
    ):
        with _copy() as (_, connection):
            connection.execute(statement.encode())
        with _copy() as (again, connection):
            assert _content(connection) == before, statement
        assert (again == first) == (
            "TRUNCATE" not in statement
        )  # TRUNCATE makes a new file, and its entry in the catalogue


def test_one_that_was_left_is_handed_out_again() -> None:
    with _copy() as (first, connection):
        connection.execute("UPDATE \"user\" SET display_name = 'Mallory'")

    with _copy() as (again, _):
        assert again == first


@pytest.mark.parametrize(
    "change",
    [
        "CREATE TABLE extra (id int)",
        'CREATE INDEX extra ON "user" (display_name)',
        "DROP INDEX ix_user_tenant_id_org_id",
        'ALTER TABLE "user" ADD COLUMN extra int',
        'ALTER TABLE "user" DISABLE TRIGGER ALL',
        "CREATE FUNCTION extra() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE SCHEMA extra",
        "CREATE SEQUENCE extra",
        "SELECT lo_create(0)",
        'ANALYZE "user"',
        MEMORY,
    ],
)
def test_one_with_another_catalogue_is_not_handed_out_again(change: str) -> None:
    with _copy() as (first, connection):
        connection.execute(change.encode())

    with _copy() as (again, _):
        assert again != first
