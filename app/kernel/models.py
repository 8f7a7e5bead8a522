"""Tables of the ground: the durable event log and the sealed keys."""

from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import Index
from sqlmodel import Field, SQLModel

from app.kernel.tables import json_field


class EventHead(SQLModel, table=True):
    """Where a tenant's event log stands. A new `epoch` means: the log was rebuilt, start over."""

    __tablename__: ClassVar[str] = "event_head"

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    epoch: str = Field(max_length=26)
    seq: int = 0  # of the newest event; 0 means none yet
    oldest_seq: int = 1  # events below it are gone (retention)


class LoggedEvent(SQLModel, table=True):
    """One event of a tenant, in the order of commits."""

    __tablename__: ClassVar[str] = "event"
    __table_args__ = (Index(None, "tenant_id", "at"),)

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    seq: int = Field(primary_key=True)
    at: datetime
    kind: str = Field(max_length=128)  # `user.updated`
    subject: str = Field(max_length=100)  # id of what it is about
    user_id: str | None = Field(default=None, max_length=26)  # set: for this user alone
    permission: str | None = Field(default=None, max_length=100)  # set: for whoever holds it
    org_id: str | None = Field(default=None, max_length=26)  # set: of a record, which it must reach
    owner_id: str | None = Field(default=None, max_length=26)
    topic: str | None = Field(default=None, max_length=26)  # set: for those who take part in it
    data: dict[str, Any] = json_field()


class SealedKey(SQLModel, table=True):
    """One symmetric key of a ring, sealed under the master key (SEC-80, SEC-82)."""

    __tablename__: ClassVar[str] = "sealed_key"

    purpose: str = Field(primary_key=True, max_length=100)  # `csrf`, `redaction:<tenant id>`
    number: int = Field(primary_key=True)
    sealed: bytes
    state: str = Field(max_length=10)  # `active` seals and opens, `retiring` opens
    created_at: datetime
    retired_at: datetime | None = None
