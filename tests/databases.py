"""Fresh databases: empty ones, and copies of templates that are made once a run.

A statement is compiled once a process, as in the server, though each test has engines of its own.
"""

import itertools
import os
import shutil
import sqlite3
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import psycopg
from psycopg import sql
from sqlalchemy import Engine, make_url
from sqlmodel import create_engine

from app.kernel import db, ids, migrations
from app.kernel.notices import Notices
from tests import kept, postgres, session
from tests.refilled import Content, Used

Kind = Literal["sqlite", "postgresql"]
KINDS: tuple[Kind, ...] = ("sqlite", "postgresql")
Fill = Callable[[str], object]
NOTHING = "template0"
SPARE = 4  # databases that somebody may still be leaving
STATEMENTS = 5_000  # kept compiled


@dataclass(frozen=True)
class Template:
    """What databases are copied from; `fill(url)` makes it, of an empty one or a copy of `base`."""

    name: str
    fill: Fill
    base: "Template | None" = None


SCHEMA = Template("schema", migrations.upgrade)

_first: dict[str, Engine] = {}  # by driver
_contents: dict[str, Content] = {}  # of templates, by name
_left: defaultdict[str, deque[Used]] = defaultdict(deque)  # by template, the longest left first
_leaving: deque[str] = deque()  # databases whose connections may still be closing


def share_compiled() -> None:
    """Let the engines of this process share a dialect, and with it what they compiled."""
    db.create_engine = _sharing  # type: ignore[attr-defined, assignment]
    Notices._connected_now = kept.of_notices  # type: ignore[assignment, method-assign]


@contextmanager
def empty(kind: Kind, folder: Path) -> Iterator[str]:
    """The SQLAlchemy URL of a new database without tables; a SQLite file lies in `folder`."""
    if kind == "sqlite":
        yield sqlite_url(folder / "assent.db")
    else:
        with _postgresql_database() as name:
            yield _postgresql_url(name)


@contextmanager
def migrated(kind: Kind, folder: Path) -> Iterator[str]:
    """The SQLAlchemy URL of a new database with today's schema and no rows."""
    with copied(kind, folder, SCHEMA) as url:
        yield url


@contextmanager
def copied(kind: Kind, folder: Path, template: Template) -> Iterator[str]:
    """The SQLAlchemy URL of a new database like a template, which the first of the run makes."""
    if kind == "sqlite":
        target = folder / "assent.db"
        shutil.copyfile(_sqlite_template(template), target)
        yield sqlite_url(target)
    else:
        with _postgresql_database(_postgresql_template(template)) as copy:
            yield _postgresql_url(copy)


def sqlite_url(file: Path) -> str:
    """The SQLAlchemy URL of a SQLite file."""
    return f"sqlite:///{file.absolute()}"


def finish() -> None:
    """Let go of the server, after dropping what others left if it outlives this run."""
    for used in itertools.chain.from_iterable(_left.values()):
        used.close()
    _left.clear()
    kept.finish()
    owns_the_run = "PYTEST_XDIST_WORKER" not in os.environ
    made = any(session.folder().glob("*.postgresql"))
    if owns_the_run and postgres.VARIABLE in os.environ and made:
        for (name,) in _postgresql().execute(
            "SELECT datname FROM pg_database WHERE starts_with(datname, %s)", (_prefix(),)
        ):
            _drop(name)
    if _postgresql.cache_info().currsize:
        _postgresql().close()
        _postgresql.cache_clear()


def _sqlite_template(template: Template) -> Path:
    note = session.once(f"{template.name}.sqlite")
    with note.making() as known:
        if known is None:
            file = session.folder() / f"{template.name}.db"
            if template.base:
                shutil.copyfile(_sqlite_template(template.base), file)
            template.fill(sqlite_url(file))
            with sqlite3.connect(file) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.close()
            known = note.write(str(file))
    return Path(known)


def _postgresql_template(template: Template) -> str:
    note = session.once(f"{template.name}.postgresql")
    with note.making() as known:
        if known is None:
            name = f"{_prefix()}{template.name}"
            _create(name, _postgresql_template(template.base) if template.base else NOTHING)
            template.fill(_postgresql_url(name))
            known = note.write(name)
    return known


@contextmanager
def _postgresql_database(template: str = NOTHING) -> Iterator[str]:
    used = _refilled(template)
    name = used.name if used else _copy(template)
    try:
        yield name
    finally:
        if template == NOTHING:  # what a test makes in it stays
            _leaving.append(name)
        else:
            _left[template].append(used or Used(name, _contents[template]))
        while len(_leaving) > 1:  # a server that is still closing connections would wait for them
            _drop(_leaving.popleft())


def _refilled(template: str) -> Used | None:
    """One that nobody is connected to any more, like its template again."""
    left = _left[template]
    for used in list(left):
        if used.is_left(_postgresql()):
            left.remove(used)
            if used.refill(_libpq_url(used.name)):
                return used
            _give_up(used)
    while len(left) > SPARE:
        _give_up(left.popleft())
    return None


def _give_up(used: Used) -> None:
    used.close()
    kept.let_go(used.name)
    _leaving.append(used.name)


def _copy(template: str) -> str:
    name = f"{_prefix()}{ids.ulid().lower()}"
    _create(name, template)
    if template != NOTHING:
        kept.databases.add(name)
    if template != NOTHING and template not in _contents:
        with psycopg.connect(_libpq_url(name), autocommit=True) as copy:
            _contents[template] = Content(copy)
    return name


def _create(name: str, template: str = NOTHING) -> None:
    _postgresql().execute(
        sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy").format(
            sql.Identifier(name), sql.Identifier(template)
        )
    )


def _drop(name: str) -> None:
    _postgresql().execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _sharing(url: str, **options: Any) -> Engine:
    driver = make_url(url).drivername
    first = _first.get(driver)
    engine = create_engine(url, query_cache_size=STATEMENTS, **options)
    if first is None:
        first = _first[driver] = engine
    elif first.dialect.default_schema_name is not None:  # it knows the server, for all of them
        engine.dialect.initialize = _nothing  # type: ignore[assignment, method-assign]
    if driver.startswith("postgresql"):
        kept.share(engine)
    engine.dialect = engine.pool._dialect = first.dialect
    vars(first.dialect).pop("do_ping", None)  # else each engine would wrap that of the last
    engine._compiled_cache = first._compiled_cache
    return engine


def _nothing(_connection: Any) -> None:
    pass


def _prefix() -> str:
    """What every database of this run begins with, on a server others may use as well."""
    return session.folder().name.replace("-", "_").lower() + "_"


@cache
def _postgresql() -> psycopg.Connection[Any]:
    return psycopg.connect(postgres.server(), autocommit=True)


def _postgresql_url(name: str) -> str:
    url = make_url(postgres.server()).set(drivername="postgresql+psycopg", database=name)
    return url.render_as_string(hide_password=False)


def _libpq_url(name: str) -> str:
    return _postgresql_url(name).replace(postgres.SCHEME, "postgresql://", 1)
