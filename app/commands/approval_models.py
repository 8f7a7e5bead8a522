"""The table of approvals: one person's word on one exact call (commands.md, 6)."""

from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar

from sqlalchemy import Index, text
from sqlmodel import Field, SQLModel

from app.kernel.tables import json_field, one_of, owned

_OPEN = text("state = 'open'")
_LIVE = text("state IN ('open', 'approved')")


class ApprovalState(StrEnum):
    """Where an approval stands; only `open` and `approved` ever change (CMD-11)."""

    OPEN = "open"
    APPROVED = "approved"
    CONSUMED = "consumed"
    FAILED = "failed"
    DENIED = "denied"
    EXPIRED = "expired"
    SUPERSEDED = "superseded"
    CANCELLED = "cancelled"


class Approval(SQLModel, table=True):
    """One call that waits for a person, or waited.

    Attributes:
        ask_key: SHA-256 of what was asked for where; while it is open nothing else has the same.
        digest: what the person assents to; `arguments` are the bytes in it, secrets as marks.
        sealed_input: the arguments with their secrets, sealed, where there are any.
        target_versions: record id -> its version when this was asked for.
        preview: what the call would change and send, as it was shown.
        approver_permission: who decides holds it; None: the requester does.
        requesters: who may not decide under an approvers rule, ids between blanks.
        rev: goes up with every change, so that no older drawing replaces a newer one.
        carried_at: when the server began to make a person's own call.
    """

    __tablename__: ClassVar[str] = "approval"
    __table_args__ = (
        owned("user_id", "user"),
        owned("decided_by", "user"),
        one_of("state", ApprovalState),
        Index(
            "uq_approval_asked",
            "tenant_id",
            "ask_key",
            unique=True,
            sqlite_where=_OPEN,
            postgresql_where=_OPEN,
        ),
        Index(
            "ix_approval_live",
            "tenant_id",
            "expires_at",
            sqlite_where=_LIVE,
            postgresql_where=_LIVE,
        ),
        Index(None, "tenant_id", "user_id", "opened_at"),
        Index(None, "tenant_id", "decided_by", "opened_at"),
        Index(None, "tenant_id", "opened_at"),
        Index(None, "tenant_id", "run_id"),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    id: str = Field(primary_key=True, max_length=26)
    rev: int = 1
    state: str = Field(default=ApprovalState.OPEN, max_length=12)
    ask_key: str = Field(max_length=64)
    digest: str = Field(max_length=64)

    command: str = Field(max_length=128)
    version: int
    risk: str = Field(max_length=2)
    idempotent: bool
    reversible: bool
    arguments: dict[str, Any] = json_field()
    sealed_input: bytes | None = None
    expected_version: int | None = None
    idempotency_key: str | None = Field(default=None, max_length=500)
    target_type: str | None = Field(default=None, max_length=64)
    target_id: str | None = Field(default=None, max_length=26)
    target_label: str | None = Field(default=None, max_length=500)
    target_versions: dict[str, int] = json_field()
    preview: dict[str, Any] = json_field()
    preview_digest: str = Field(max_length=64)
    previewed_at: datetime

    user_id: str = Field(max_length=26)
    org_id: str = Field(max_length=26)
    agent_id: str | None = Field(default=None, max_length=26)
    agent_release_id: str | None = Field(default=None, max_length=26)
    delegation_id: str | None = Field(default=None, max_length=26)
    session_id: str | None = Field(default=None, max_length=64)
    channel: str = Field(max_length=10)
    actors: list[str] = json_field(default_factory=list)
    call_id: str = Field(max_length=64)
    run_id: str | None = Field(default=None, max_length=26)
    turn: int | None = None
    tool_call_id: str | None = Field(default=None, max_length=200)
    origin: dict[str, Any] = json_field(default_factory=dict)

    approver_permission: str | None = Field(default=None, max_length=100)
    requesters: str = Field(default="", max_length=1_000)
    opened_at: datetime
    expires_at: datetime

    decided_by: str | None = Field(default=None, max_length=26)
    decided_at: datetime | None = None
    decision_session_id: str | None = Field(default=None, max_length=64)
    surface: str | None = Field(default=None, max_length=20)
    user_agent: str | None = Field(default=None, max_length=500)
    typed: str | None = Field(default=None, max_length=500)
    assertion: str | None = Field(default=None, max_length=20_000)
    reason: str | None = Field(default=None, max_length=500)

    closed_at: datetime | None = None
    closed_by: str | None = Field(default=None, max_length=26)
    closed_why: str | None = Field(default=None, max_length=64)
    failed_stage: str | None = Field(default=None, max_length=40)
    failed_reason: str | None = Field(default=None, max_length=64)
    consumed_by_call: str | None = Field(default=None, max_length=64)
    carried_at: datetime | None = None
    replaces: str | None = Field(default=None, max_length=26)
    superseded_by: str | None = Field(default=None, max_length=26)
    changed_by: str | None = Field(default=None, max_length=26)
    original: dict[str, Any] | None = json_field(default=None)  # the arguments before the change
