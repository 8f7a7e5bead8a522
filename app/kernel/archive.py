"""Everything in one archive: rows as JSON lines, whatever database they come from or go to.

The archive is a gzipped tar: `manifest.json` first, then `tables/<name>.jsonl`, then the signed
checkpoints. It is read at one moment of the database while others go on writing. Tables are read
as the database describes them, so that an archive belongs to its schema revision alone.
"""

import base64
import hashlib
import io
import json
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from sqlalchemy import (
    Boolean,
    Connection,
    DateTime,
    LargeBinary,
    MetaData,
    Table,
    func,
    select,
    text,
    update,
)
from sqlalchemy.types import JSON

from app.kernel import clock, db, ids, migrations

FORMAT = 1
ROWS_AT_ONCE = 1_000
REVISION_TABLE = "alembic_version"
MANIFEST = "manifest.json"


class ArchiveProblem(Exception):
    """The archive or the database will not do; the message says why."""


def write(url: str, target: Path, checkpoints: Path) -> dict[str, int]:
    """Write the database at `url` to the new file `target` (mode 0600); rows by table.

    Raises:
        ArchiveProblem: `target` exists.
    """
    if target.exists():
        raise ArchiveProblem(f"{target} exists already.")
    engine = db.engine_for(url, read_only=True)
    try:
        with (
            engine.connect() as connection,
            tempfile.TemporaryDirectory(dir=target.parent, prefix=".backup-") as folder,
        ):
            made = _tables(connection, Path(folder))
            manifest = {
                "format": FORMAT,
                "revision": migrations.current(connection),
                "made_at": clock.rfc3339(clock.now()),
                "tables": made,
            }
            unfinished = Path(folder) / "archive"
            unfinished.touch(0o600)
            with tarfile.open(unfinished, "w:gz") as tar:
                _add(tar, MANIFEST, json.dumps(manifest, indent=1).encode())
                for name in made:
                    tar.add(Path(folder) / f"{name}.jsonl", f"tables/{name}.jsonl")
                for path in sorted(checkpoints.glob("*.jsonl")):
                    tar.add(path, f"checkpoints/{path.name}")
            unfinished.rename(target)
    finally:
        engine.dispose()
    return {name: table["rows"] for name, table in made.items()}


def read(url: str, source: Path, checkpoints: Path) -> dict[str, int]:
    """Fill the empty database at `url` from `source`; rows by table.

    Event logs get a new epoch, so that whoever follows them starts over. All or nothing.

    Raises:
        ArchiveProblem: the database is not empty, or the archive is damaged or too new.
    """
    with tempfile.TemporaryDirectory(prefix="assent-restore-") as folder:
        manifest = _unpack(source, Path(folder))
        engine = db.engine_for(url)
        try:
            with engine.connect() as connection:
                if connection.dialect.name == "sqlite":
                    connection.exec_driver_sql("PRAGMA foreign_keys=OFF")
                    connection.rollback()
                with connection.begin():
                    if migrations.current(connection) is not None and _has_rows(connection):
                        raise ArchiveProblem("The database is not empty; restore into a new one.")
                    migrations.upgrade_to(connection, manifest["revision"])
                    _fill(connection, Path(folder), manifest["tables"])
                    _begin_epochs(connection)
        finally:
            engine.dispose()
        checkpoints.mkdir(parents=True, exist_ok=True)
        for path in sorted((Path(folder) / "checkpoints").glob("*.jsonl")):
            (checkpoints / path.name).write_bytes(path.read_bytes())
    migrations.upgrade(url)
    return {name: table["rows"] for name, table in manifest["tables"].items()}


def _reflected(connection: Connection) -> list[Table]:
    metadata = MetaData()
    metadata.reflect(connection)
    return [table for table in metadata.sorted_tables if table.name != REVISION_TABLE]


def _tables(connection: Connection, folder: Path) -> dict[str, dict[str, Any]]:
    made = {}
    for table in _reflected(connection):
        digest, rows = hashlib.sha256(), 0
        with (folder / f"{table.name}.jsonl").open("wb") as file:
            for row in connection.execute(select(table)).yield_per(ROWS_AT_ONCE).mappings():
                line = json.dumps(_plain(dict(row)), ensure_ascii=False).encode() + b"\n"
                file.write(line)
                digest.update(line)
                rows += 1
        made[table.name] = {"rows": rows, "sha256": digest.hexdigest()}
    return made


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: _plain_value(value) for name, value in row.items()}


def _plain_value(value: Any) -> Any:
    match value:
        case datetime():
            aware = value if value.tzinfo else value.replace(tzinfo=UTC)
            return clock.rfc3339(aware)
        case bytes() | memoryview():
            return base64.b64encode(bytes(value)).decode()
        case _:
            return value


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    member.mtime = clock.epoch_s()
    tar.addfile(member, io.BytesIO(content))


def _unpack(source: Path, folder: Path) -> dict[str, Any]:
    try:
        with tarfile.open(source, "r:gz") as tar:
            tar.extractall(folder, filter="data")
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, EOFError, ValueError, KeyError, zlib.error, tarfile.TarError) as fault:
        raise ArchiveProblem(f"{source} is no archive of Assent, or is damaged.") from fault
    if manifest["format"] > FORMAT or not migrations.knows(manifest["revision"]):
        raise ArchiveProblem("The archive was written by a newer version of Assent.")
    for name, table in manifest["tables"].items():
        with (folder / "tables" / f"{name}.jsonl").open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != table["sha256"]:
                raise ArchiveProblem(f"The table {name} in the archive is damaged.")
    return manifest


def _has_rows(connection: Connection) -> bool:
    return any(
        connection.execute(select(func.count()).select_from(table)).scalar_one()
        for table in _reflected(connection)
    )


def _fill(connection: Connection, folder: Path, tables: dict[str, Any]) -> None:
    for table in _reflected(connection):
        if table.name not in tables:
            continue
        own = _columns_to_itself(table)
        with (folder / "tables" / f"{table.name}.jsonl").open("rb") as file:
            for rows in _batches(file, table):
                first = [{**row, **dict.fromkeys(own)} for row in rows] if own else rows
                connection.execute(table.insert(), first)
        if own:
            with (folder / "tables" / f"{table.name}.jsonl").open("rb") as file:
                _point(connection, table, own, file)


def _columns_to_itself(table: Table) -> list[str]:
    keys = {column.name for column in table.primary_key}
    return [
        element.parent.name
        for constraint in table.foreign_key_constraints
        if constraint.referred_table is table
        for element in constraint.elements
        if element.parent.name not in keys
    ]


def _point(connection: Connection, table: Table, own: list[str], file: IO[bytes]) -> None:
    for rows in _batches(file, table):
        for row in rows:
            values = {name: row[name] for name in own if row[name] is not None}
            if values:
                keys = [column == row[column.name] for column in table.primary_key]
                connection.execute(update(table).where(*keys).values(values))


def _batches(file: IO[bytes], table: Table) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    for line in file:
        batch.append(_typed(json.loads(line), table))
        if len(batch) == ROWS_AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch


def _typed(row: dict[str, Any], table: Table) -> dict[str, Any]:
    return {name: _typed_value(value, table.columns[name].type) for name, value in row.items()}


def _typed_value(value: Any, kind: Any) -> Any:
    if value is None or isinstance(kind, JSON):
        return value
    if isinstance(kind, DateTime):
        moment = datetime.fromisoformat(value)
        return moment if kind.timezone else moment.astimezone(UTC).replace(tzinfo=None)
    if isinstance(kind, LargeBinary):
        return base64.b64decode(value)
    return bool(value) if isinstance(kind, Boolean) else value


def _begin_epochs(connection: Connection) -> None:
    heads = connection.execute(text("SELECT tenant_id FROM event_head")).scalars().all()
    for tenant_id in heads:
        connection.execute(
            text("UPDATE event_head SET epoch = :epoch WHERE tenant_id = :tenant_id"),
            {"epoch": ids.ulid(), "tenant_id": tenant_id},
        )
