"""A connection that a later test gets again cannot be told from a new one."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sqlmodel import Session, text

from app.kernel import db
from app.kernel.db import Work
from tests import databases

FOLDER = Path()  # PostgreSQL needs none
LEFT = (
    "SET lock_timeout = 1",
    "SET search_path = pg_catalog",
    "SELECT pg_advisory_lock(7)",
    "CREATE TEMP TABLE mine (id int)",
    "LISTEN assent",
)
LOOK = """SELECT current_setting('lock_timeout'), current_setting('search_path'),
 (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()),
 to_regclass('mine'), (SELECT count(*) FROM pg_listening_channels())"""


@pytest.fixture
def copy(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A database of which connections are kept, and that nobody had before."""
    mine = type(databases._left)(databases._left.default_factory)
    monkeypatch.setattr(databases, "_left", mine)
    with databases.migrated("postgresql", FOLDER) as url:
        yield url
    for used in mine["schema"]:
        databases._give_up(used)


def _pid(session: Session) -> int:
    found: int = session.connection().exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
    return found


def _state(work: Work) -> tuple[int, tuple[object, ...]]:
    return _pid(work.session), tuple(work.connection.execute(text(LOOK)).one())


def _leave(work: Work) -> None:
    for statement in LEFT:
        work.connection.exec_driver_sql(statement)


def test_it_is_the_same_one_and_nothing_of_its_last_session_is_left(copy: str) -> None:
    db.open(copy)
    first, new = db.transact_now(_state)
    db.transact_now(_leave)
    assert db.transact_now(_state) != (first, new)
    db.close()

    db.open(copy)
    try:
        assert db.transact_now(_state) == (first, new)
    finally:
        db.close()


def test_one_that_the_server_ended_is_not_handed_out(copy: str) -> None:
    db.open(copy)
    first = db.read_now(_pid)
    db.close()
    outside = psycopg.connect(copy.replace("+psycopg", ""), autocommit=True)
    with outside:
        outside.execute("SELECT pg_terminate_backend(%s, 20000)", (first,))

    db.open(copy)
    try:
        assert db.read_now(_pid) != first
    finally:
        db.close()
