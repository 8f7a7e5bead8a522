"""The tables of groups."""

from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar

from sqlalchemy import BigInteger, Index, Text
from sqlmodel import Field, SQLModel

from app.aun.models import AID_LENGTH, ID_LENGTH
from app.kernel.tables import json_field, one_of, owned


class Role(StrEnum):
    """What a member may do; each may what the next may."""

    OWNER = "owner"
    ADMIN = "admin"
    MEMBER = "member"


class Visibility(StrEnum):
    """Whether strangers find it."""

    PUBLIC = "public"
    PRIVATE = "private"


class GroupStatus(StrEnum):
    """Whether anything happens in it."""

    ACTIVE = "active"
    SUSPENDED = "suspended"  # owner and administrators send
    DISSOLVED = "dissolved"


class JoinMode(StrEnum):
    """How one comes in."""

    OPEN = "open"
    APPROVAL = "approval"
    INVITE_ONLY = "invite_only"
    CLOSED = "closed"


class MentionMode(StrEnum):
    """What reaches the models of receiving agents; the server labels, and filters nothing."""

    DISABLED = "disabled"
    MENTION_ONLY = "mention-only"


class InviteStatus(StrEnum):
    """What became of an invitation; all but the first are ends."""

    PENDING = "pending"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    REVOKED = "revoked"
    EXPIRED = "expired"


class RequestStatus(StrEnum):
    """What became of a wish to join."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"


class Group(SQLModel, table=True):
    """A group. Its id is its AID; `message_seq` and `event_seq` are taken under its row's lock."""

    __tablename__: ClassVar[str] = "aun_group"
    __table_args__ = (
        one_of("visibility", Visibility),
        one_of("status", GroupStatus),
        one_of("join_mode", JoinMode),
        one_of("mention_mode", MentionMode),
        Index("ix_aun_group_request", "tenant_id", "creator_aid", "create_request_id"),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    id: str = Field(primary_key=True, max_length=AID_LENGTH)
    name: str = Field(max_length=200)
    description: str = Field(default="", max_length=2000)
    owner_aid: str = Field(max_length=AID_LENGTH)
    creator_aid: str = Field(max_length=AID_LENGTH)
    create_request_id: str | None = Field(default=None, max_length=ID_LENGTH)
    is_named: bool = False  # has a key and a certificate of its own
    visibility: str = Field(default=Visibility.PRIVATE, max_length=10)
    status: str = Field(default=GroupStatus.ACTIVE, max_length=10)
    join_mode: str = Field(default=JoinMode.APPROVAL, max_length=15)
    mention_mode: str = Field(default=MentionMode.DISABLED, max_length=15)
    settings: dict[str, Any] = json_field(default_factory=dict)  # keys with a dot in them
    details: dict[str, Any] = json_field(default_factory=dict)  # `metadata` of whoever made it
    shut_out: list[str] = json_field(default_factory=list)  # left while banned: not by themselves
    message_seq: int = Field(default=0, sa_type=BigInteger)
    event_seq: int = Field(default=0, sa_type=BigInteger)
    member_count: int = 0
    transfer_to: str | None = Field(default=None, max_length=AID_LENGTH)
    created_at: datetime
    updated_at: datetime
    version: int = 1


class Member(SQLModel, table=True):
    """Who is in a group now; who left has no row."""

    __tablename__: ClassVar[str] = "aun_group_member"
    __table_args__ = (
        owned("group_id", "aun_group"),
        one_of("role", Role),
        Index(None, "tenant_id", "aid"),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    group_id: str = Field(primary_key=True, max_length=AID_LENGTH)
    aid: str = Field(primary_key=True, max_length=AID_LENGTH)
    role: str = Field(default=Role.MEMBER, max_length=10)
    member_type: str = Field(default="", max_length=20)
    joined_at: datetime
    join_seq: int = Field(default=0, sa_type=BigInteger)  # sees messages after this one
    join_event_seq: int = Field(default=0, sa_type=BigInteger)  # and changes after this one
    banned_at: datetime | None = None  # receives, may not send
    ban_reason: str = Field(default="", max_length=500)
    blocked_at: datetime | None = None  # by itself: sends, receives nothing
    said: dict[str, Any] = json_field(default_factory=dict)  # `group.report_status`: display only


class GroupEvent(SQLModel, table=True):
    """A change of a group, numbered without a gap."""

    __tablename__: ClassVar[str] = "aun_group_event"
    __table_args__ = (owned("group_id", "aun_group"),)

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    group_id: str = Field(primary_key=True, max_length=AID_LENGTH)
    event_seq: int = Field(primary_key=True, sa_type=BigInteger)
    action: str = Field(max_length=40)
    actor_aid: str = Field(max_length=AID_LENGTH)
    data: dict[str, Any] = json_field(default_factory=dict)
    created_at: datetime


class Invite(SQLModel, table=True):
    """An invitation of one AID; several inviters share it."""

    __tablename__: ClassVar[str] = "aun_group_invite"
    __table_args__ = (
        owned("group_id", "aun_group"),
        one_of("status", InviteStatus),
        Index(None, "tenant_id", "invitee_aid", "status"),
        Index("ix_aun_group_invite_group", "tenant_id", "group_id", "invitee_aid"),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    id: str = Field(primary_key=True, max_length=26)
    group_id: str = Field(max_length=AID_LENGTH)
    invitee_aid: str = Field(max_length=AID_LENGTH)
    inviter_aids: list[str] = json_field()
    status: str = Field(default=InviteStatus.PENDING, max_length=10)
    created_at: datetime
    expires_at: datetime
    ended_at: datetime | None = None


class JoinRequest(SQLModel, table=True):
    """Somebody's wish to join; the newest counts."""

    __tablename__: ClassVar[str] = "aun_join_request"
    __table_args__ = (
        owned("group_id", "aun_group"),
        one_of("status", RequestStatus),
        Index(None, "tenant_id", "group_id", "status"),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    group_id: str = Field(primary_key=True, max_length=AID_LENGTH)
    aid: str = Field(primary_key=True, max_length=AID_LENGTH)
    message: str = Field(default="", max_length=2000)
    answer: str = Field(default="", max_length=2000)
    status: str = Field(default=RequestStatus.PENDING, max_length=10)
    reason: str = Field(default="", max_length=500)
    reviewed_by: str | None = Field(default=None, max_length=AID_LENGTH)
    created_at: datetime
    updated_at: datetime
    expires_at: datetime


class InviteCode(SQLModel, table=True):
    """A code that lets its holder in, found by its digest; sealed for who may list it."""

    __tablename__: ClassVar[str] = "aun_invite_code"
    __table_args__ = (
        owned("group_id", "aun_group"),
        Index(None, "tenant_id", "group_id"),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    digest: str = Field(primary_key=True, max_length=64)
    code_sealed: str = Field(sa_type=Text)  # base64
    group_id: str = Field(max_length=AID_LENGTH)
    max_uses: int = 1
    used_count: int = 0
    created_by: str = Field(max_length=AID_LENGTH)
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None = None


class GroupState(SQLModel, table=True):
    """A link in a group's chain of signed membership snapshots (aun.md, 8.4)."""

    __tablename__: ClassVar[str] = "aun_group_state"
    __table_args__ = (owned("group_id", "aun_group"),)

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    group_id: str = Field(primary_key=True, max_length=AID_LENGTH)
    state_version: int = Field(primary_key=True, sa_type=BigInteger)
    proposal_id: str = Field(max_length=26)
    snapshot: str = Field(sa_type=Text)  # as the actor signed it
    state_hash: str = Field(max_length=128)
    prev_state_hash: str = Field(default="", max_length=128)
    state_chain: str = Field(default="", max_length=128)
    signature: str = Field(default="", sa_type=Text)
    actor_aid: str = Field(max_length=AID_LENGTH)
    details: dict[str, Any] = json_field(default_factory=dict)  # whatever else the proposal said
    created_at: datetime
    confirmed_at: datetime | None = None  # null: proposed only
