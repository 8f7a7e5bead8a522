"""The tables of the trail: entries, the head of each chain, and views of it that people kept."""

from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import CheckConstraint, Index, UniqueConstraint, text
from sqlmodel import Field, SQLModel

from app.kernel.tables import json_field, owned

# What many entries do not have is indexed where they do: such an index costs the others nothing.
# Each ends with the time, in whose order entries are listed; `queries` says which one leads.
OFTEN = ("user_id", "command", "channel")
SELDOM = (
    *("run_id", "conversation_id", "prompt_ref", "target_id", "approved_by", "agent_id"),
    *("agent_release", "model", "model_version", "stage", "reason", "risk"),
)
SINGLED_OUT = {"by_agent": "agent_id IS NOT NULL", "consented": "approved_by IS NOT NULL"}


def _where(name: str | None, condition: str, *columns: str) -> Index:
    only = text(condition)
    return Index(name, *columns, sqlite_where=only, postgresql_where=only)


class AuditHead(SQLModel, table=True):
    """The last entry of a tenant's chain; taking the next `seq` locks it (SEC-75)."""

    __tablename__: ClassVar[str] = "audit_head"

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    seq: int = 0
    hash: str = Field(max_length=64)


class AuditEntry(SQLModel, table=True):
    """One fact of the trail (CMD-17). Never updated, never deleted; `hash` chains it."""

    __tablename__: ClassVar[str] = "audit_entry"
    __table_args__ = (
        CheckConstraint(
            "NOT (risk = 'L4' AND outcome IN ('done', 'dispatched') AND approved_by IS NULL)",
            name="l4_has_an_approver",
        ),
        Index(None, "tenant_id", "call_id"),
        Index(None, "tenant_id", "at"),
        *(Index(None, "tenant_id", column, "at") for column in OFTEN),
        *(_where(None, f"{column} IS NOT NULL", "tenant_id", column, "at") for column in SELDOM),
        _where(None, "approval_id IS NOT NULL", "tenant_id", "approval_id"),
        _where(None, "outcome <> 'done'", "tenant_id", "outcome", "at"),
        Index(
            "ix_audit_entry_irreversible",
            "tenant_id",
            "at",
            sqlite_where=text("reversible IS 0"),
            postgresql_where=text("reversible IS false"),
        ),
        *(
            _where(f"ix_audit_entry_{name}", condition, "tenant_id", "at")
            for name, condition in SINGLED_OUT.items()
        ),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    seq: int = Field(primary_key=True)
    prev_hash: str = Field(max_length=64)
    hash: str = Field(max_length=64)
    at: datetime
    call_id: str = Field(max_length=64)
    parent_call_id: str | None = Field(default=None, max_length=64)
    command: str = Field(max_length=128)
    version: int | None = None
    risk: str | None = Field(default=None, max_length=2)
    idempotent: bool | None = None
    reversible: bool | None = None
    outcome: str = Field(max_length=12)
    stage: str | None = Field(default=None, max_length=40)
    reason: str | None = Field(default=None, max_length=64)
    user_id: str | None = Field(default=None, max_length=26)
    org_id: str | None = Field(default=None, max_length=26)
    agent_id: str | None = Field(default=None, max_length=26)
    agent_release: str | None = Field(default=None, max_length=26)
    model: str | None = Field(default=None, max_length=200)
    model_version: str | None = Field(default=None, max_length=200)
    channel: str = Field(max_length=10)
    session_id: str | None = Field(default=None, max_length=64)
    conversation_id: str | None = Field(default=None, max_length=64)
    run_id: str | None = Field(default=None, max_length=26)
    turn: int | None = None
    prompt_digest: str | None = Field(default=None, max_length=64)
    prompt_ref: str | None = Field(default=None, max_length=200)
    approval_id: str | None = Field(default=None, max_length=26)
    approved_by: str | None = Field(default=None, max_length=26)
    approved_at: datetime | None = None
    brief: str | None = Field(default=None, max_length=64)
    idempotency_key_digest: str | None = Field(default=None, max_length=64)
    input_digest: str | None = Field(default=None, max_length=64)
    input_redacted: dict[str, Any] | None = json_field(default=None)
    target_type: str | None = Field(default=None, max_length=64)
    target_id: str | None = Field(default=None, max_length=500)
    changes: list[dict[str, Any]] | None = json_field(default=None)
    timings: dict[str, Any] | None = json_field(default=None)
    trace_id: str | None = Field(default=None, max_length=32)


class AuditRepeat(SQLModel, table=True):
    """How often the same refusal came again in its minute, while only few of them are entries."""

    __tablename__: ClassVar[str] = "audit_repeat"
    __table_args__ = (Index(None, "began_at"),)

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    key_sha256: str = Field(primary_key=True, max_length=64)
    began_at: datetime
    seen: int
    entry: dict[str, Any] = json_field()  # what the one entry about the rest will say


class SavedView(SQLModel, table=True):
    """The filters of a list that a person gave a name, to come back to."""

    __tablename__: ClassVar[str] = "saved_view"
    __table_args__ = (
        owned("user_id", "user"),
        UniqueConstraint("tenant_id", "user_id", "page", "name"),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    id: str = Field(primary_key=True, max_length=26)
    user_id: str = Field(max_length=26)
    page: str = Field(max_length=40)  # `audit`
    name: str = Field(max_length=100)
    query: str = Field(max_length=4_000)  # of the address, without `?`
    created_at: datetime
