"""Governed records: rows that change only inside the pipeline (commands.md, 2).

A pack's tables are subclasses of `GovernedRecord`. Rows are read and written by
`records.Records`; the mapper refuses every other way to write one (CMD-6).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import event
from sqlalchemy.orm import Mapper, object_session
from sqlmodel import Field, SQLModel

from app.kernel.i18n import N_

#: Columns that every governed row has and no input maps to.
PLATFORM_COLUMNS = frozenset(
    {
        *("tenant_id", "id", "org_id", "owner_id", "state", "version"),
        *("created_at", "updated_at", "created_by", "updated_by"),
    }
)


@dataclass(frozen=True, slots=True)
class Related:
    """A list of other rows that rules may read as `related.<name>`.

    `record` is their type, `by` their column that holds this row's id; with `of`, this row's column
    that holds theirs.
    """

    record: str
    by: str = "id"
    of: str = "id"


class UngovernedWrite(RuntimeError):
    """Code outside the pipeline tried to write a governed row."""


class GovernedRecord(SQLModel):
    """What every governed row has.

    Class attributes of a record type:
        RECORD: its name on the wire and in definitions: `expense.report`.
        NAMES: what people call one, in both languages.
        LABEL: the column that people know a row by (`number`).
        STATES: state -> the states it may change to; empty where rows have no life cycle.
        RELATED: lists by name, for rules.
        FIELDS: column -> what people call it (English source text, translated by gettext).
    """

    RECORD: ClassVar[str] = ""
    NAMES: ClassVar[Mapping[str, str]] = {}
    LABEL: ClassVar[str] = "id"
    STATES: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    RELATED: ClassVar[Mapping[str, Related]] = {}
    FIELDS: ClassVar[Mapping[str, str]] = {}
    COMMON_FIELDS: ClassVar[Mapping[str, str]] = {
        "org_id": N_("Organisation"),
        "owner_id": N_("Owner"),
        "state": N_("State"),
    }

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    id: str = Field(primary_key=True, max_length=26)
    org_id: str = Field(max_length=26)
    owner_id: str = Field(max_length=26)
    state: str = Field(default="", max_length=40)
    version: int = 1
    created_at: datetime
    updated_at: datetime
    created_by: str = Field(max_length=26)
    updated_by: str = Field(max_length=26)

    @property
    def label(self) -> str:
        """What people know this row by."""
        return str(getattr(self, self.LABEL))


def field_name(model: type[GovernedRecord], column: str) -> str:
    """What people call a column, English source text; the column itself where nobody named it."""
    named = model.FIELDS.get(column) or GovernedRecord.COMMON_FIELDS.get(column)
    return named or column.replace("_", " ").capitalize()


def _refuse(_mapper: Mapper[Any], _connection: Any, target: GovernedRecord) -> None:
    raise UngovernedWrite(f"{type(target).__name__}, in {object_session(target)}")


for moment in ("before_insert", "before_update", "before_delete"):
    event.listen(GovernedRecord, moment, _refuse, propagate=True)
