"""Tables of the write path: versions of commands, outcomes of calls, number sequences."""

from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar

from sqlalchemy import Index, UniqueConstraint
from sqlmodel import Field, SQLModel

from app.kernel.tables import json_field, one_of


class VersionStatus(StrEnum):
    """Where a version stands; only published ones are called."""

    DRAFT = "draft"
    PUBLISHED = "published"
    RETIRED = "retired"


class CommandVersion(SQLModel, table=True):
    """One version of a command; once published, its content never changes."""

    __tablename__: ClassVar[str] = "command_version"
    __table_args__ = (
        UniqueConstraint("tenant_id", "code", "version"),
        one_of("status", VersionStatus),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    id: str = Field(primary_key=True, max_length=26)
    code: str = Field(max_length=128)
    version: int
    status: str = Field(default=VersionStatus.DRAFT, max_length=10)
    pack: str = Field(max_length=64)
    content_hash: str = Field(max_length=64)
    definition: dict[str, Any] = json_field()
    is_override: bool = False  # authored in the console, on top of a pack's
    created_at: datetime
    created_by: str | None = Field(default=None, max_length=26)
    published_at: datetime | None = None
    published_by: str | None = Field(default=None, max_length=26)
    retired_at: datetime | None = None
    retired_by: str | None = Field(default=None, max_length=26)  # None: no pack declares it


class CommandOutcome(SQLModel, table=True):
    """What a call came to, for its caller and for the repeat of its key; kept 24 h (CMD-9)."""

    __tablename__: ClassVar[str] = "command_outcome"
    __table_args__ = (UniqueConstraint("tenant_id", "call_id"), Index(None, "expires_at"))

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    key_digest: str = Field(primary_key=True, max_length=64)
    call_id: str = Field(max_length=64)
    user_id: str = Field(max_length=26)
    agent_id: str | None = Field(default=None, max_length=26)
    code: str = Field(max_length=128)
    input_digest: str = Field(max_length=64)
    outcome: dict[str, Any] | None = json_field(default=None)
    created_at: datetime
    expires_at: datetime


class CommandNumber(SQLModel, table=True):
    """The last number that was given out of a sequence."""

    __tablename__: ClassVar[str] = "command_number"

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    name: str = Field(primary_key=True, max_length=40)
    value: int = 0
