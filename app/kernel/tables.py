"""Pieces that table models share: keys that start with the tenant, choices, JSON columns."""

from enum import StrEnum
from typing import Any

from sqlalchemy import JSON, CheckConstraint, ForeignKeyConstraint, Index, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

SQLModel.metadata.naming_convention = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}

JSON_VALUE = JSON().with_variant(JSONB(), "postgresql")


def json_field(**kwargs: Any) -> Any:
    """A JSON column; give it a new value, a change inside one goes unseen."""
    return Field(sa_type=JSON_VALUE, **kwargs)


def owned(column: str, table: str, *, target: str = "id") -> ForeignKeyConstraint:
    """A foreign key inside the tenant: (tenant_id, `column`) names a row of `table`."""
    return ForeignKeyConstraint(["tenant_id", column], [f"{table}.tenant_id", f"{table}.{target}"])


def one_of(column: str, choices: type[StrEnum]) -> CheckConstraint:
    """The database, too, holds `column` to the values of `choices`."""
    listed = ", ".join(f"'{choice.value}'" for choice in choices)
    return CheckConstraint(f"{column} IN ({listed})", name=column)


def unique_while_null(name: str, *columns: str, null: str) -> Index:
    """At most one row with these columns among those whose column `null` is null."""
    live = text(f"{null} IS NULL")
    return Index(name, *columns, unique=True, sqlite_where=live, postgresql_where=live)
