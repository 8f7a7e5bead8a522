"""Rows of governed tables in prepared SQL: how one is read, made, inserted, updated, deleted.

The types' own processors convert values, so that models and queries read the same rows.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

from sqlalchemy import Connection, Dialect, inspect
from sqlalchemy.orm import attributes
from sqlmodel._compat import init_pydantic_private_attrs

from app.commands.governed import GovernedRecord
from app.kernel.prepared import Locking, Prepared

R = TypeVar("R", bound=GovernedRecord)
Processor = Callable[[Any], Any] | None


class Table:
    """The statements of one record type."""

    def __init__(self, model: type[GovernedRecord]) -> None:
        self.model = model
        self.columns = tuple(attribute.key for attribute in inspect(model).column_attrs)
        self._name = str(model.__tablename__)
        self._types = {name: model.__table__.c[name].type for name in self.columns}  # type: ignore[attr-defined]
        self._manager = attributes.manager_of_class(model)
        self._insert = Prepared(
            f"INSERT INTO {self._name} ({', '.join(self.columns)}) "  # noqa: S608 - our columns
            f"VALUES ({', '.join(f':{name}' for name in self.columns)})"
        )
        self._delete = Prepared(f"DELETE FROM {self._name} WHERE {_KEY}")  # noqa: S608
        select = f"SELECT {', '.join(self.columns)} FROM {self._name} "  # noqa: S608
        self._select = Prepared(f"{select}WHERE tenant_id = :tenant_id AND id = :id")
        self._lock = Locking(f"{select}WHERE tenant_id = :tenant_id AND id = :id")
        self._updates: dict[tuple[str, ...], Prepared] = {}
        self._processors: dict[str, tuple[dict[str, Processor], list[Processor]]] = {}

    def made(self, values: Mapping[str, Any]) -> Any:
        """A row object with these values, which no session knows."""
        row = self._manager.new_instance()
        init_pydantic_private_attrs(row)
        row.__dict__.update(values)
        return row

    def defaults(self) -> dict[str, Any]:
        """What a new row holds where nothing is said."""
        fields = self.model.model_fields
        return {
            name: None
            if fields[name].is_required()
            else fields[name].get_default(call_default_factory=True)
            for name in self.columns
            if name in fields
        }

    def values(self, row: GovernedRecord) -> dict[str, Any]:
        """The row's columns as they stand."""
        held = row.__dict__
        return {name: held[name] for name in self.columns}

    def by_id(self, lock: bool) -> Prepared:
        """The statement that reads one row of a tenant."""
        return self._lock if lock else self._select

    def read(self, connection: Connection, row: Sequence[Any]) -> dict[str, Any]:
        """A row of `by_id` as the model's types read it."""
        reading = self._processors_of(connection.dialect)[1]
        return {
            name: process(value) if process and value is not None else value
            for name, process, value in zip(self.columns, reading, row, strict=True)
        }

    def insert(self, connection: Connection, values: Mapping[str, Any]) -> None:
        """Write a new row."""
        self._insert.run_with(connection, self._bound(connection, values))

    def update(
        self, connection: Connection, row: GovernedRecord, values: Mapping[str, Any], version: int
    ) -> bool:
        """Write `values`, if the row still has `version`."""
        names = tuple(sorted(values))
        if (statement := self._updates.get(names)) is None:
            assigned = ", ".join(f"{name} = :{name}" for name in names)
            statement = Prepared(f"UPDATE {self._name} SET {assigned} WHERE {_KEY}")  # noqa: S608
            self._updates[names] = statement
        key = {"key_tenant": row.tenant_id, "key_id": row.id, "key_version": version}
        bound = self._bound(connection, values)
        return statement.run_with(connection, {**bound, **key}).rowcount == 1

    def delete(self, connection: Connection, row: GovernedRecord, version: int) -> bool:
        """Delete the row, if it still has `version`."""
        key = {"key_tenant": row.tenant_id, "key_id": row.id, "key_version": version}
        return self._delete.run_with(connection, key).rowcount == 1

    def _bound(self, connection: Connection, values: Mapping[str, Any]) -> dict[str, Any]:
        binding = self._processors_of(connection.dialect)[0]
        return {
            name: process(value) if (process := binding[name]) else value
            for name, value in values.items()
        }

    def _processors_of(self, dialect: Dialect) -> tuple[dict[str, Processor], list[Processor]]:
        if (found := self._processors.get(dialect.name)) is None:
            impls = {name: type_.dialect_impl(dialect) for name, type_ in self._types.items()}
            found = self._processors[dialect.name] = (
                {name: impl.bind_processor(dialect) for name, impl in impls.items()},
                [impls[name].result_processor(dialect, None) for name in self.columns],
            )
        return found


_KEY = "tenant_id = :key_tenant AND id = :key_id AND version = :key_version"


@cache
def table_of(model: type[GovernedRecord]) -> Table:
    """The statements of a record type, made once."""
    return Table(model)
