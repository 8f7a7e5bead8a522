"""The governed rows of one call: read once, compared at the end, written by version (CMD-3).

Rows are what a handler works with; assigning to one is enough. `flush` writes what differs, each
row with its version in the WHERE clause, so that two writers cannot both win. Nothing here commits.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar, cast

from sqlalchemy import and_
from sqlalchemy import select as sql_select
from sqlalchemy.exc import IntegrityError
from sqlmodel import col

from app.access import prepared
from app.commands.changes import RowChange
from app.commands.errors import Rejected
from app.commands.governed import GovernedRecord
from app.commands.rows import Table, table_of
from app.identity.principal import Principal
from app.kernel import ids
from app.kernel.db import Work
from app.kernel.errors import FieldError
from app.kernel.i18n import N_

R = TypeVar("R", bound=GovernedRecord)
UNKNOWN = N_("There is no such record, or it is not yours to see.")
UNTRACKED = frozenset({"tenant_id", "id", "version", "created_at", "created_by"})
STAMPS = frozenset({"updated_at", "updated_by"})


@dataclass(slots=True)
class _Held:
    """A row in hand: as it was found (None: created here), as it is stored now."""

    row: GovernedRecord
    table: Table
    found: dict[str, Any] | None
    stored: dict[str, Any] | None
    is_deleted: bool = False
    automatic: set[str] = field(default_factory=set)
    rolled_up: set[str] = field(default_factory=set)


Snapshot = Mapping[tuple[str, str], dict[str, Any] | None]


class Records:
    """The rows of one transaction; a nested call works with those of the outer one."""

    def __init__(self, work: Work, principal: Principal, now: datetime) -> None:
        self._work = work
        self._principal = principal
        self._now = now
        self._held: dict[tuple[str, str], _Held] = {}

    def reached(self, model: type[R], id: str, permission: str, *, lock: bool = False) -> R | None:
        """The row with this id, if the caller's `permission` reaches it; locked on request."""
        statement = prepared.reachable(model, permission, lock=lock)
        values = prepared.values(self._principal, id=id, now=self._now)
        found = statement.run_with(self._work.connection, values).first()
        return self._hold(model, found, raw=True) if found else None

    def one(
        self, model: type[R], id: str, permission: str, *, pointer: str = "", lock: bool = True
    ) -> R:
        """The same, where the input names a row: another's id is as unknown as one nobody has.

        Raises:
            Rejected: `record_not_found`, with the input field that named it.
        """
        row = self.reached(model, id, permission, lock=lock)
        if row is None:
            errors = (FieldError(pointer.lstrip("/"), UNKNOWN),) if pointer else ()
            raise Rejected("record_not_found", *errors)
        return row

    def get(self, model: type[R], id: str | None, *, lock: bool = False) -> R | None:
        """The row of this tenant with this id, for what belongs to a row the caller reached."""
        if id is None:
            return None
        self.flush()
        table = table_of(model)
        row = table.by_id(lock).run(self._work.connection, tenant_id=self._tenant, id=id).first()
        return self._hold(model, row, raw=True) if row else None

    def all(self, model: type[R], *conditions: Any, lock: bool = False, **equal: Any) -> list[R]:
        """The tenant's rows with these values, by id: for what belongs to one that was reached."""
        self.flush()
        columns = [getattr(model, name) for name in table_of(model).columns]
        query = (
            sql_select(*columns)
            .where(
                col(model.tenant_id) == self._tenant,
                and_(True, *(getattr(model, name) == value for name, value in equal.items())),
                *conditions,
            )
            .order_by(col(model.id))
        )
        if lock:
            query = query.with_for_update(key_share=True)
        return [self._hold(model, row) for row in self._work.connection.execute(query)]

    def create(
        self, model: type[R], *, org_id: str, owner_id: str, id: str | None = None, **values: Any
    ) -> R:
        """A new row, version 1, written at the next `flush`."""
        user = self._principal.user_id
        table = table_of(model)
        row: R = table.made(
            {
                **table.defaults(),
                **values,
                "tenant_id": self._tenant,
                "id": id or ids.ulid(),
                "version": 1,
                "org_id": org_id,
                "owner_id": owner_id,
                "created_at": self._now,
                "updated_at": self._now,
                "created_by": user,
                "updated_by": user,
            }
        )
        self._held[(model.RECORD, row.id)] = _Held(row, table, None, None)
        return row

    def delete(self, row: GovernedRecord) -> None:
        """Delete a row at the next `flush`, if it is still as it was found."""
        self._held[(row.RECORD, row.id)].is_deleted = True

    def mark_automatic(self, row: GovernedRecord, *columns: str) -> None:
        """These values come by themselves (a time, a number), so they always differ (CMD-16)."""
        self._held[(row.RECORD, row.id)].automatic |= set(columns)

    def mark_rolled_up(self, row: GovernedRecord, *columns: str) -> None:
        """These values are sums of others; what counts about them is how much they change."""
        self._held[(row.RECORD, row.id)].rolled_up |= set(columns)

    def held(self, model: type[R]) -> list[R]:
        """The rows of a type that this transaction has in hand, deleted ones too."""
        return [each.row for each in self._held.values() if isinstance(each.row, model)]

    def found(self, row: GovernedRecord) -> dict[str, Any] | None:
        """A row's columns as this transaction found them; None when it created the row."""
        return self._held[(row.RECORD, row.id)].found

    def flush(self) -> None:
        """Write what differs from what is stored.

        Raises:
            Rejected: `version_conflict`, another writer was faster.
        """
        for held in list(self._held.values()):
            if held.is_deleted:
                self._write_deletion(held)
            elif held.stored is None:
                self._write_new(held)
            else:
                self._write_difference(held)

    def snapshot(self) -> Snapshot:
        """How every row stands now, for the changes of a nested call."""
        self.flush()
        return {
            key: None if held.stored is None else dict(held.stored)
            for key, held in self._held.items()
        }

    def changes(self, since: Snapshot | None = None) -> list[RowChange]:
        """What is different, row by row, from the beginning or from a snapshot."""
        made = []
        for key, held in self._held.items():
            before = held.found if since is None or key not in since else since[key]
            if change := _difference(held, before):
                made.append(change)
        return made

    @property
    def _tenant(self) -> str:
        return self._principal.tenant_id

    def _hold(self, model: type[R], values: Any, *, raw: bool = False) -> R:
        table = table_of(model)
        read = (
            table.read(self._work.connection, values)
            if raw
            else dict(zip(table.columns, values, strict=True))
        )
        key = (model.RECORD, read["id"])
        if (held := self._held.get(key)) is None:
            held = self._held[key] = _Held(table.made(read), table, dict(read), dict(read))
        elif held.stored == held.found and held.stored == table.values(held.row) != read:
            # somebody was faster, before the row was locked; nothing was done with it so far
            held.row.__dict__.update(read)
            held.found, held.stored = dict(read), dict(read)
        return cast(R, held.row)

    def _write_new(self, held: _Held) -> None:
        values = held.table.values(held.row)
        with _told_apart(held.row):
            held.table.insert(self._work.connection, values)
        held.stored = values

    def _write_difference(self, held: _Held) -> None:
        stored, now = held.stored or {}, held.table.values(held.row)
        changed = {name for name in now if now[name] != stored[name]} - UNTRACKED - STAMPS
        if not changed:
            return
        version = stored["version"]
        is_first = held.found is not None and version == held.found["version"]
        held.row.__dict__.update(  # no session watches it
            version=version + 1 if is_first else version,
            updated_at=self._now,
            updated_by=self._principal.user_id,
        )
        now = held.table.values(held.row)
        written = {name: now[name] for name in (*changed, *STAMPS, "version")}
        with _told_apart(held.row):
            is_ours = held.table.update(self._work.connection, held.row, written, version)
        if not is_ours:
            raise Rejected("version_conflict", record=held.row.RECORD, recordId=held.row.id)
        held.stored = now

    def _write_deletion(self, held: _Held) -> None:
        if held.stored is None:
            return
        version = held.stored["version"]
        with _told_apart(held.row):
            is_ours = held.table.delete(self._work.connection, held.row, version)
        if not is_ours:
            raise Rejected("version_conflict", record=held.row.RECORD, recordId=held.row.id)
        held.stored = None


@contextmanager
def _told_apart(row: GovernedRecord) -> Iterator[None]:
    """What the database refuses to store, in our words: a value is taken, a row is gone."""
    try:
        yield
    except IntegrityError as fault:
        text = f"{getattr(fault.orig, 'sqlstate', '')} {fault.orig}"
        if text.startswith("23505") or "UNIQUE constraint failed" in text:
            raise Rejected("duplicate_value", record=row.RECORD) from fault
        if text.startswith("23503") or "FOREIGN KEY constraint failed" in text:
            raise Rejected("record_not_found", record=row.RECORD) from fault
        if text.startswith("23514") or "CHECK constraint failed" in text:
            raise Rejected("invariant_failed", record=row.RECORD) from fault
        raise


def _difference(held: _Held, before: dict[str, Any] | None) -> RowChange | None:
    after = None if held.is_deleted else held.table.values(held.row)
    if before is None and after is None:
        return None
    fields = dict(_changed(before or {}, after or {}))
    if not fields:
        return None
    return RowChange(
        record=held.row.RECORD,
        id=held.row.id,
        label=held.row.label,
        operation="create" if before is None else "delete" if after is None else "update",
        version=held.row.version,
        fields=fields,
        automatic=frozenset(held.automatic & set(fields)),
        rolled_up=frozenset(held.rolled_up & set(fields)),
    )


def _changed(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[tuple[str, tuple[Any, Any]]]:
    names: Sequence[str] = list(after or before)
    for name in names:
        was, is_ = before.get(name), after.get(name)
        if was != is_ and name not in UNTRACKED and name not in STAMPS:
            yield name, (was, is_)
