"""The filter of `conditions`, built once for each question and asked with other values each time.

Building one condition costs more than asking it; a governed call asks several (performance.md, C6).
"""

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import Connection, Select, String, bindparam, exists
from sqlalchemy import select as sql_select
from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.postgresql import psycopg
from sqlmodel import SQLModel

from app.access import conditions
from app.access.conditions import ANYONE
from app.identity.principal import Principal
from app.kernel.prepared import Found, Prepared

GIVEN = frozenset({"tenant_id", "user_id", "now", "id", "owner", "org"})  # by whoever asks


def values(principal: Principal, *, now: datetime, **more: Any) -> dict[str, Any]:
    """The parameters of a statement of this module."""
    return {"tenant_id": principal.tenant_id, "user_id": principal.user_id, "now": now, **more}


class Question(Prepared):
    """A SELECT whose text was made once, in the words of both databases."""

    def __init__(self, query: Select[Any]) -> None:
        named = query.compile(dialect=sqlite.dialect(paramstyle="named"))
        super().__init__(str(named))
        self._postgresql = str(query.compile(dialect=psycopg.dialect()))  # type: ignore[no-untyped-call]
        self._constants = {name: value for name, value in named.params.items() if name not in GIVEN}

    def run_with(self, connection: Connection, values: Mapping[str, Any]) -> Found:
        """Ask it with the parameters of `values`."""
        return super().run_with(connection, {**self._constants, **values})


@cache
def reachable(model: type[SQLModel], permission: str, *, lock: bool = False) -> Question:
    """The columns of the row `:id` of `model`, if `permission` reaches it; locked on request."""
    table = model.__table__  # type: ignore[attr-defined]
    query = (
        sql_select(*table.columns)
        .select_from(model)
        .where(
            table.c.id == bindparam("id", type_=String),
            conditions.build_within(ANYONE, permission, model),
        )
    )
    return Question(query.with_for_update(of=table, key_share=True) if lock else query)


@cache
def holds(permission: str) -> Question:
    """Whether `permission` is held for anything at all."""
    return Question(sql_select(exists(conditions.grants_of(ANYONE, permission))))


@cache
def covers(permission: str) -> Question:
    """Whether `permission` reaches a record of owner `:owner` in organisation `:org`."""
    condition = conditions.build(
        ANYONE,
        permission,
        owner=bindparam("owner", type_=String),
        org=bindparam("org", type_=String),
        tenant=bindparam("tenant_id", type_=String),
    )
    return Question(sql_select(condition))


@cache
def held() -> Question:
    """Everything a principal holds: permission, data scope and organisation."""
    return Question(conditions.held(ANYONE))
