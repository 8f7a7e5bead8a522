"""Connections that outlive the engine of a test, for the next test in the same PostgreSQL database.

A connection costs the server more than most tests ask of it: a process, and all it has to read of
the catalogue. What a session may have set, locked, listened to or made for itself is undone first.
"""

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import ExecStatus, TransactionStatus
from sqlalchemy import Engine, event

from app.kernel import db
from app.kernel.notices import PATIENCE, Notices

AS_NEW = b"RESET ALL; RESET SESSION AUTHORIZATION; UNLISTEN *; DISCARD TEMP; DISCARD SEQUENCES;\
 SELECT pg_advisory_unlock_all()"
MOST = 5  # of a database: the server has to have room for everybody

Connection = psycopg.Connection[Any]
Key = tuple[tuple[str, str], ...]

databases: set[str] = set()  # of which connections are kept
_keys: WeakKeyDictionary[Connection, Key] = WeakKeyDictionary()
_taking = threading.Lock()
_idle: defaultdict[str, list[Connection]] = defaultdict(list)  # by database


def share(engine: Engine) -> None:
    """Let an engine connect, and close its connections, as above."""
    event.listen(engine, "do_connect", _connect)
    engine.dialect.do_close = close  # type: ignore[assignment, method-assign]


@contextmanager
def of_notices(notices: Notices) -> Iterator[Connection]:
    """The same for what listens, and for what wakes it."""
    options = {**conninfo_to_dict(notices._url), **PATIENCE, "autocommit": True}
    connection = _connected(psycopg.connect, [], options)
    try:
        yield connection
    finally:
        close(connection)


def close(connection: Connection) -> None:
    """Keep it for the next one, if it can be like new; else close it."""
    name = "" if connection.closed else connection.info.dbname
    may_stay = connection in _keys and name in databases and len(_idle[name]) < MOST
    if may_stay and _is_as_new(connection):
        _idle[name].append(connection)
    else:
        connection.close()


def pids(database: str) -> list[int]:
    """The server's processes of the connections that wait for the next test."""
    return [each.info.backend_pid for each in _idle[database]]


def let_go(database: str) -> None:
    """Close what waits, and keep no more of it."""
    databases.discard(database)
    for connection in _idle.pop(database, []):
        connection.close()


def finish() -> None:
    """Close all that wait."""
    for database in list(_idle):
        let_go(database)


def _connect(dialect: Any, _record: Any, args: list[Any], options: dict[str, Any]) -> Connection:
    return _connected(dialect.connect, args, options)


def _connected(connect: Any, args: list[Any], options: dict[str, Any]) -> Connection:
    said = {name: str(value) for name, value in options.items() if name != "context"}
    key = tuple(sorted(said.items()))  # each dialect has a context, all of them alike
    with _taking:
        waiting = _idle[str(options.get("dbname"))]
        found = next((each for each in reversed(waiting) if _keys[each] == key), None)
        if found is not None:
            waiting.remove(found)
    if found is not None:
        if db._is_quiet(found):
            return found
        found.close()  # the server ended it
    made: Connection = connect(*args, **options)
    _keys[made] = key
    return made


def _is_as_new(connection: Connection) -> bool:
    if connection.info.transaction_status != TransactionStatus.IDLE:
        return False
    try:
        done = connection.pgconn.exec_(AS_NEW)
    except psycopg.Error:
        return False
    while connection.pgconn.notifies():
        pass
    if connection._notifies_backlog:
        connection._notifies_backlog.clear()
    return done.status == ExecStatus.TUPLES_OK
