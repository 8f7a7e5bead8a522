"""Tables of what is told after the commit: outbox, receivers, deliveries, effects, snapshots."""

from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar

from sqlalchemy import Index, text
from sqlmodel import Field, SQLModel

from app.kernel.tables import json_field, one_of, owned


class Waiting(StrEnum):
    """Whether a row still waits for its turn."""

    PENDING = "pending"
    DONE = "done"
    DEAD = "dead"  # given up: a person looks at it, and may send it again


class ReceiverState(StrEnum):
    """Whether a receiver gets anything."""

    ACTIVE = "active"
    PAUSED = "paused"  # what is told meanwhile waits
    GONE = "gone"  # it answered 410: it wants no more


class EffectState(StrEnum):
    """What became of an effect outside (CMD-27)."""

    WAITING = "waiting"
    STARTED = "started"  # written down before anything is sent
    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"  # sent, and nobody knows


def _while_pending(name: str, *columns: str, state: str = "state = 'pending'") -> Index:
    where = text(state)
    return Index(name, *columns, sqlite_where=where, postgresql_where=where)


class OutboxEvent(SQLModel, table=True):
    """One thing that a call has to tell, written in the call's own transaction (CMD-24).

    `seq` is the number of the call's audit entry and `place` counts inside the call: together they
    are the order of commits. `line` is what must stay in that order: the record, or the call.
    """

    __tablename__: ClassVar[str] = "outbox_event"
    __table_args__ = (
        one_of("state", Waiting),
        _while_pending("ix_outbox_event_due", "due_at"),
        _while_pending("ix_outbox_event_line", "tenant_id", "line", "seq", "place"),
        Index(None, "tenant_id", "call_id"),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    id: str = Field(primary_key=True, max_length=26)  # the event's id, whoever hears of it
    kind: str = Field(max_length=20)  # the stage that tells it: `domain_event`, `webhook`, …
    name: str = Field(max_length=128)  # the event's type, or the name of the API call
    line: str = Field(max_length=64)
    seq: int
    place: int
    call_id: str = Field(max_length=64)
    record_type: str | None = Field(default=None, max_length=64)
    record_id: str | None = Field(default=None, max_length=26)
    org_id: str = Field(max_length=26)  # of the record, or of who called
    owner_id: str = Field(max_length=26)
    permission: str = Field(max_length=100)  # that reaches the record: who may hear of it
    is_for_receivers: bool = True  # False: another row of the call tells them
    data: dict[str, Any] = json_field()
    at: datetime
    state: str = Field(default=Waiting.PENDING, max_length=10)
    attempts: int = 0
    due_at: datetime
    done_at: datetime | None = None
    last_error: str = Field(default="", max_length=200)


class WebhookSubscription(SQLModel, table=True):
    """A receiver: an address, what it is told, and the secret that signs it.

    With `api_call` it is the address of the API calls of that name, and told nothing else. Its
    older secret signs as well until `old_until` (SEC-82).
    """

    __tablename__: ClassVar[str] = "webhook_subscription"
    __table_args__ = (one_of("state", ReceiverState),)

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    id: str = Field(primary_key=True, max_length=26)
    url: str = Field(max_length=2_000)
    description: str = Field(default="", max_length=200)
    event_types: list[str] = json_field()
    api_call: str | None = Field(default=None, max_length=128)
    state: str = Field(default=ReceiverState.ACTIVE, max_length=10)
    sealed: bytes
    old_sealed: bytes | None = None
    old_until: datetime | None = None
    down_since: datetime | None = None  # it gives no answer
    down_tries: int = 0
    resting_until: datetime | None = None
    created_at: datetime
    created_by: str = Field(max_length=26)


class WebhookDelivery(SQLModel, table=True):
    """One message to one receiver; its bytes never change, so that a repeat is a repeat."""

    __tablename__: ClassVar[str] = "webhook_delivery"
    __table_args__ = (
        owned("subscription_id", "webhook_subscription"),
        one_of("state", Waiting),
        _while_pending("ix_webhook_delivery_due", "tenant_id", "subscription_id", "due_at"),
        _while_pending("ix_webhook_delivery_line", "tenant_id", "line", "seq", "place"),
        Index(None, "tenant_id", "subscription_id", "id"),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    id: str = Field(primary_key=True, max_length=26)
    subscription_id: str = Field(max_length=26)
    event_id: str = Field(max_length=26)
    type: str = Field(max_length=128)
    line: str = Field(max_length=100)  # receiver and record: what must stay in order
    seq: int
    place: int
    body: str
    state: str = Field(default=Waiting.PENDING, max_length=10)
    attempts: int = 0  # every try; also the fence of who holds the lease
    refusals: int = 0  # tries that were answered with a no: ten are enough
    waits_since: datetime  # told, or sent again by a person
    due_at: datetime
    leased_until: datetime | None = None
    response_status: int | None = None
    last_error: str = Field(default="", max_length=200)
    took_ms: int | None = None
    created_at: datetime
    settled_at: datetime | None = None


class ExternalEffect(SQLModel, table=True):
    """An effect outside that a committed call ordered, and what came of it (CMD-27)."""

    __tablename__: ClassVar[str] = "external_effect"
    __table_args__ = (
        one_of("state", EffectState),
        _while_pending(
            "ix_external_effect_open", "due_at", state="state IN ('waiting', 'started')"
        ),
        Index(None, "tenant_id", "state", "created_at"),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    call_id: str = Field(primary_key=True, max_length=64)
    code: str = Field(max_length=128)
    performer: str = Field(max_length=128)
    is_idempotent: bool
    user_id: str = Field(max_length=26)
    record_type: str | None = Field(default=None, max_length=64)
    record_id: str | None = Field(default=None, max_length=26)
    sealed: bytes  # what is asked for, secrets included; only its performer reads it
    state: str = Field(default=EffectState.WAITING, max_length=10)
    attempts: int = 0
    due_at: datetime
    leased_until: datetime | None = None
    result: dict[str, Any] | None = json_field(default=None)
    last_error: str = Field(default="", max_length=200)
    created_at: datetime
    settled_at: datetime | None = None


class GovernanceSnapshot(SQLModel, table=True):
    """What was in force when a call wrote: definition, release, grants, rules that passed.

    Grants were read when the trail stood at `as_of_seq`; an entry of identity between `seq` and it
    tells of a change in between.
    """

    __tablename__: ClassVar[str] = "governance_snapshot"
    __table_args__ = (Index(None, "tenant_id", "seq"),)

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    call_id: str = Field(primary_key=True, max_length=64)
    seq: int
    at: datetime
    command: str = Field(max_length=128)
    version: int
    content_hash: str = Field(max_length=64)
    agent_release: str | None = Field(default=None, max_length=26)
    permission: str = Field(max_length=100)
    grants: list[dict[str, Any]] = json_field()
    rules: dict[str, Any] = json_field()
    as_of_seq: int


class GovernanceCursor(SQLModel, table=True):
    """Up to which entry of a tenant's trail snapshots were taken."""

    __tablename__: ClassVar[str] = "governance_cursor"

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    seq: int = 0
