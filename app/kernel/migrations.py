"""The schema: brought up to date at every start, once, however many processes start together."""

import logging
import re
from pathlib import Path

from sqlalchemy import Connection, inspect, text

from app.kernel.db import engine_for

ROOT = Path(__file__).parent.parent.parent
VERSIONS = ROOT / "migrations" / "versions"
LOCK = 0x617373656E74  # "assent", the key of PostgreSQL's advisory lock


class SchemaTooNew(Exception):
    """The database was written by a newer version of Assent than this one."""


def upgrade(url: str) -> bool:
    """Bring the database at `url` to the newest schema; returns whether anything was to do.

    The whole upgrade is one transaction: it is done or it is not. A second process waits for it.

    Raises:
        SchemaTooNew: this program is older than the database.
    """
    engine = engine_for(url)
    try:
        with engine.connect() as connection:
            if connection.dialect.name == "sqlite":
                connection.exec_driver_sql("PRAGMA busy_timeout=60000")
                connection.exec_driver_sql("PRAGMA foreign_keys=OFF")  # while tables are rebuilt
            connection.rollback()
            if current(connection) == head():
                return False
            connection.rollback()
            with connection.begin():
                if connection.dialect.name == "postgresql":
                    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": LOCK})
                return _upgrade_locked(connection)
    finally:
        engine.dispose()


def is_current(url: str) -> bool:
    """Whether the schema of the database at `url` is the newest."""
    engine = engine_for(url)
    try:
        with engine.connect() as connection:
            return current(connection) == head()
    finally:
        engine.dispose()


def current(connection: Connection) -> str | None:
    """The revision of this database, or None for an empty one."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def head() -> str:
    """The newest revision, read from the files without loading Alembic: that takes a while."""
    return next(iter(_revisions()[0]))


def _revisions() -> tuple[set[str], set[str]]:
    known, followed = set(), set()
    for path in VERSIONS.glob("*.py"):
        source = path.read_text(encoding="utf-8")
        known |= set(re.findall(r'^revision: str = "(\w+)"', source, re.MULTILINE))
        followed |= set(re.findall(r'^down_revision: str \| None = "(\w+)"', source, re.MULTILINE))
    return known - followed, known


def knows(revision: str) -> bool:
    """Whether this version has the schema `revision`."""
    return revision in _revisions()[1]


def upgrade_to(connection: Connection, revision: str) -> None:
    """Bring an older schema, or an empty database, to `revision`, in the caller's transaction."""
    logging.getLogger("alembic.runtime.plugins").setLevel(logging.WARNING)
    from alembic import command  # noqa: PLC0415 - a current database does not need it
    from alembic.config import Config  # noqa: PLC0415

    config = Config(toml_file=str(ROOT / "pyproject.toml"))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


def _upgrade_locked(connection: Connection) -> bool:
    heads, known = _revisions()
    have = current(connection)
    if have in heads:
        return False  # the other process was faster
    if have is not None and have not in known:
        raise SchemaTooNew(f"the database has revision {have}, which this version does not know")
    upgrade_to(connection, "head")
    return True
