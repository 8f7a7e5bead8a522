"""The tables of messages: who is known by which name, who wrote what to whom, who has what."""

from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar

from sqlalchemy import BigInteger, Index, LargeBinary, Text, UniqueConstraint
from sqlmodel import Field, SQLModel

from app.kernel.tables import json_field, one_of, owned

AID_LENGTH = 200
ID_LENGTH = 128  # of what clients choose: message ids, devices, slots, topics


class IdentityKind(StrEnum):
    """Whose name an AID is."""

    USER = "user"
    AGENT = "agent"
    GROUP = "group"
    SYSTEM = "system"  # `connect.{issuer}`: listens to link codes, and to nothing else
    OUTSIDE = "outside"  # a client elsewhere holds the key


class IdentityStatus(StrEnum):
    """What an identity can still do; none is ever given to anyone else."""

    ACTIVE = "active"
    INACTIVE = "inactive"  # its user or agent is off: it sends nothing
    BLOCKED = "blocked"  # an administrator shut it out: revoked, disconnected


class ConversationKind(StrEnum):
    """Between whom."""

    DIRECT = "direct"
    GROUP = "group"


class Direction(StrEnum):
    """Why a message is in an inbox."""

    INBOUND = "inbound"
    OUTBOUND_SYNC = "outbound_sync"  # a copy for the sender's other devices


class CursorScope(StrEnum):
    """What a cursor counts."""

    PEER = "peer"
    GROUP = "group"
    GROUP_EVENT = "group_event"
    GLOBAL = "global"  # clients before 0.5.21


class Identity(SQLModel, table=True):
    """An AID. `key_sealed` is there where the server is the client: users, agents, their groups."""

    __tablename__: ClassVar[str] = "aun_identity"
    __table_args__ = (
        one_of("kind", IdentityKind),
        one_of("status", IdentityStatus),
        Index(None, "tenant_id", "owner_id"),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    aid: str = Field(primary_key=True, max_length=AID_LENGTH)
    kind: str = Field(max_length=10)
    owner_id: str | None = Field(default=None, max_length=AID_LENGTH)  # user, agent or owner's AID
    status: str = Field(default=IdentityStatus.ACTIVE, max_length=10)
    key_sealed: bytes | None = Field(default=None, sa_type=LargeBinary)
    tokens_from: datetime | None = None  # access tokens made before are refused
    card: str | None = Field(default=None, sa_type=Text)  # agent.md as uploaded, or as we signed it
    card_etag: str | None = Field(default=None, max_length=64)
    card_at: datetime | None = None
    created_at: datetime


class Conversation(SQLModel, table=True):
    """A pair of AIDs, or a group; it has no state "answered" (aun.md, 14)."""

    __tablename__: ClassVar[str] = "conversation"
    __table_args__ = (
        one_of("kind", ConversationKind),
        UniqueConstraint("tenant_id", "first_aid", "second_aid"),
        UniqueConstraint("tenant_id", "group_id"),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    id: str = Field(primary_key=True, max_length=26)
    kind: str = Field(max_length=10)
    first_aid: str | None = Field(default=None, max_length=AID_LENGTH)  # the lower of the pair
    second_aid: str | None = Field(default=None, max_length=AID_LENGTH)
    group_id: str | None = Field(default=None, max_length=AID_LENGTH)
    started_by: str = Field(max_length=AID_LENGTH)
    last_seq: int = Field(default=0, sa_type=BigInteger)  # of the event log: its newest message
    last_message_id: str | None = Field(default=None, max_length=26)
    created_at: datetime


class Participant(SQLModel, table=True):
    """Who is in a conversation, and how far they have read; a title or a pin is theirs alone."""

    __tablename__: ClassVar[str] = "conversation_participant"
    __table_args__ = (
        owned("conversation_id", "conversation"),
        Index(None, "tenant_id", "aid"),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    conversation_id: str = Field(primary_key=True, max_length=26)
    aid: str = Field(primary_key=True, max_length=AID_LENGTH)
    from_seq: int = Field(default=0, sa_type=BigInteger)  # sees messages after this one alone
    read_seq: int = Field(default=0, sa_type=BigInteger)  # of the event log
    title: str | None = Field(default=None, max_length=200)
    pinned_at: datetime | None = None
    left_at: datetime | None = None  # of a group: reads and hears nothing more


class Message(SQLModel, table=True):
    """One message, whatever the number of its readers.

    `payload` is there where a hosted party reads it, `envelope` where it came or went encrypted:
    with the envelope alone nobody here can read it. `seq` is the place in its group, `log_seq` the
    place in the tenant's event log, which orders every conversation of the console.
    """

    __tablename__: ClassVar[str] = "message"
    __table_args__ = (
        owned("conversation_id", "conversation"),
        UniqueConstraint("tenant_id", "sender_aid", "message_id"),
        UniqueConstraint("tenant_id", "group_id", "seq"),
        Index(None, "tenant_id", "conversation_id", "log_seq"),
        Index("ix_message_reply", "tenant_id", "conversation_id", "in_reply_to"),
        Index("ix_message_expires", "expires_at"),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    id: str = Field(primary_key=True, max_length=26)
    conversation_id: str = Field(max_length=26)
    sender_aid: str = Field(max_length=AID_LENGTH)
    sender_device: str = Field(default="", max_length=ID_LENGTH)
    message_id: str = Field(max_length=ID_LENGTH)  # the sender's, unique with it
    receiver_aid: str | None = Field(default=None, max_length=AID_LENGTH)
    group_id: str | None = Field(default=None, max_length=AID_LENGTH)
    seq: int | None = Field(default=None, sa_type=BigInteger)
    log_seq: int = Field(sa_type=BigInteger)
    type: str = Field(default="", max_length=ID_LENGTH)
    payload: dict[str, Any] | None = json_field(default=None)
    envelope: str | None = Field(default=None, sa_type=Text)  # JSON, exactly as it came
    unreadable: str | None = Field(default=None, max_length=40)  # why a hosted party cannot
    html: str | None = Field(default=None, sa_type=Text)  # of the text, rendered once (UI-57)
    need_render: bool = True
    mention_mode: str | None = Field(default=None, max_length=20)  # the label of its group then
    in_reply_to: str | None = Field(default=None, max_length=ID_LENGTH)  # a `message_id`: display
    thread_id: str | None = Field(default=None, max_length=ID_LENGTH)
    to_device: str | None = Field(default=None, max_length=ID_LENGTH)
    sent_at: datetime
    sent_ms: int = Field(sa_type=BigInteger)  # the same, as clients count
    expires_at: datetime | None = None
    recalled_at: datetime | None = None
    version: int = 1  # of the row: a recall is the next one


class InboxCounter(SQLModel, table=True):
    """The last number of an inbox; taken under its row's lock (aun.md, 5.2)."""

    __tablename__: ClassVar[str] = "inbox_counter"

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    aid: str = Field(primary_key=True, max_length=AID_LENGTH)
    seq: int = Field(default=0, sa_type=BigInteger)


class InboxPeer(SQLModel, table=True):
    """One sender in one inbox: its newest number, the one before, and what reached a device."""

    __tablename__: ClassVar[str] = "inbox_peer"

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    aid: str = Field(primary_key=True, max_length=AID_LENGTH)
    sender_aid: str = Field(primary_key=True, max_length=AID_LENGTH)
    head_seq: int = Field(sa_type=BigInteger)
    prev_seq: int = Field(default=0, sa_type=BigInteger)
    floor_seq: int = Field(default=0, sa_type=BigInteger)  # kept are those above
    delivered_seq: int = Field(default=0, sa_type=BigInteger)


class InboxEntry(SQLModel, table=True):
    """A message in an inbox."""

    __tablename__: ClassVar[str] = "inbox_entry"
    __table_args__ = (
        Index("ix_inbox_entry_peer", "tenant_id", "aid", "sender_aid", "seq"),
        Index("ix_inbox_entry_message", "tenant_id", "message"),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    aid: str = Field(primary_key=True, max_length=AID_LENGTH)
    seq: int = Field(primary_key=True, sa_type=BigInteger)
    message: str = Field(max_length=26)  # `message.id`
    sender_aid: str = Field(max_length=AID_LENGTH)
    prev_peer_seq: int = Field(default=0, sa_type=BigInteger)
    direction: str = Field(default=Direction.INBOUND, max_length=15)


class VolatileHead(SQLModel, table=True):
    """The last number of a receiver's volatile messages; not logged, so lost with them."""

    __tablename__: ClassVar[str] = "aun_volatile_head"

    tenant_id: str = Field(primary_key=True, max_length=26)
    aid: str = Field(primary_key=True, max_length=AID_LENGTH)
    epoch: str = Field(max_length=26)
    number: int = Field(default=0, sa_type=BigInteger)


class Volatile(SQLModel, table=True):
    """A message that lives for seconds; on PostgreSQL alone, in a table that is not logged."""

    __tablename__: ClassVar[str] = "aun_volatile"
    __table_args__ = (
        UniqueConstraint("tenant_id", "sender_aid", "message_id"),
        Index("ix_aun_volatile_expires", "expires_ms"),
    )

    tenant_id: str = Field(primary_key=True, max_length=26)
    receiver_aid: str = Field(primary_key=True, max_length=AID_LENGTH)
    number: int = Field(primary_key=True, sa_type=BigInteger)
    epoch: str = Field(max_length=26)
    sender_aid: str = Field(max_length=AID_LENGTH)
    sender_device: str = Field(default="", max_length=ID_LENGTH)
    message_id: str = Field(max_length=ID_LENGTH)
    type: str = Field(default="", max_length=ID_LENGTH)
    payload: dict[str, Any] | None = json_field(default=None)
    envelope: str | None = Field(default=None, sa_type=Text)
    need_render: bool = True
    to_device: str | None = Field(default=None, max_length=ID_LENGTH)
    sent_ms: int = Field(sa_type=BigInteger)
    expires_ms: int = Field(sa_type=BigInteger)
    size: int
    has: list[str] = json_field(default_factory=list)  # devices and slots that acknowledged it


class Cursor(SQLModel, table=True):
    """What one slot of one device has acknowledged: cumulative, forward only."""

    __tablename__: ClassVar[str] = "aun_cursor"
    __table_args__ = (one_of("scope", CursorScope),)

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    aid: str = Field(primary_key=True, max_length=AID_LENGTH)
    device_id: str = Field(primary_key=True, max_length=ID_LENGTH)
    slot_key: str = Field(primary_key=True, max_length=ID_LENGTH)
    scope: str = Field(primary_key=True, max_length=15)
    subject: str = Field(primary_key=True, max_length=AID_LENGTH)  # a sender or a group; or empty
    ack_seq: int = Field(default=0, sa_type=BigInteger)
    updated_at: datetime


class ReadPosition(SQLModel, table=True):
    """How far an AID has read a topic of its own naming, over all its devices."""

    __tablename__: ClassVar[str] = "read_position"

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    aid: str = Field(primary_key=True, max_length=AID_LENGTH)
    scope: str = Field(primary_key=True, max_length=AID_LENGTH)  # `p2p`, or a group's id
    topic: str = Field(primary_key=True, max_length=ID_LENGTH)
    message_id: str = Field(max_length=ID_LENGTH)
    order: int = Field(sa_type=BigInteger)  # of the inbox, or the group
    updated_at: datetime


class ThoughtHead(SQLModel, table=True):
    """What one party thought, for one other party to see, under one heading."""

    __tablename__: ClassVar[str] = "thought_head"
    __table_args__ = (
        UniqueConstraint("tenant_id", "sender_aid", "peer", "context_type", "context_id"),
        Index(None, "tenant_id", "sender_aid", "peer", "updated_at"),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    id: str = Field(primary_key=True, max_length=26)
    sender_aid: str = Field(max_length=AID_LENGTH)
    peer: str = Field(max_length=AID_LENGTH)  # an AID or a group's id
    context_type: str = Field(max_length=ID_LENGTH)
    context_id: str = Field(max_length=ID_LENGTH)
    count: int = 0
    updated_at: datetime


class Thought(SQLModel, table=True):
    """One item under a heading: display only, never a message."""

    __tablename__: ClassVar[str] = "thought"
    __table_args__ = (owned("head_id", "thought_head"),)

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    head_id: str = Field(primary_key=True, max_length=26)
    number: int = Field(primary_key=True)
    thought_id: str = Field(max_length=ID_LENGTH)
    payload: dict[str, Any] = json_field()  # or the envelope
    is_encrypted: bool = False
    created_ms: int = Field(sa_type=BigInteger)


class LiveConnection(SQLModel, table=True):
    """A connection that is open now, at the replica that holds it; presence is read from here."""

    __tablename__: ClassVar[str] = "aun_connection"
    __table_args__ = (Index(None, "tenant_id", "aid"), Index(None, "replica"))

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    id: str = Field(primary_key=True, max_length=26)
    aid: str = Field(max_length=AID_LENGTH)
    device_id: str = Field(max_length=ID_LENGTH)
    slot_key: str = Field(max_length=ID_LENGTH)
    kind: str = Field(max_length=10)  # long, short, console
    delivery_mode: str = Field(default="fanout", max_length=10)
    replica: str = Field(max_length=26)
    connected_at: datetime
    seen_at: datetime
