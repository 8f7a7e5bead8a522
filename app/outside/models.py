"""The tables of outside servers: where they are, what they offer, and who is linked to them."""

from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar

from sqlalchemy import Index, UniqueConstraint
from sqlmodel import Field, SQLModel

from app.kernel.tables import json_field, one_of, owned


class Transport(StrEnum):
    """How a server is reached."""

    HTTP = "http"  # streamable HTTP, by its address
    STDIO = "stdio"  # a program that the operator's file names


class Access(StrEnum):
    """What a server asks of who calls it."""

    OPEN = "open"  # nothing
    TOKEN = "token"  # noqa: S105 - a kind: each person's own token
    OAUTH = "oauth"  # each person's own consent


class ToolState(StrEnum):
    """Whether a tool can be used."""

    OFF = "off"  # nobody enabled it, or somebody turned it off
    ENABLED = "enabled"
    CHANGED = "changed"  # it is another one than was enabled: off until a person looks at it
    GONE = "gone"  # its server does not offer it any more


class McpServer(SQLModel, table=True):
    """A server that somebody else runs (SEC-68).

    Attributes:
        name: unique in the tenant; it stands in the names of its tools.
        url: empty where the operator's file names a program instead.
        client_issuer: whose client it is: what an administrator gave is the first issuer's.
        is_registered: the client was made by us, and goes with its issuer.
        fault: what was wrong when it was looked at last; empty: nothing.
    """

    __tablename__: ClassVar[str] = "mcp_server"
    __table_args__ = (
        UniqueConstraint("tenant_id", "name"),
        one_of("transport", Transport),
        one_of("access", Access),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    id: str = Field(primary_key=True, max_length=26)
    name: str = Field(max_length=24)
    transport: str = Field(default=Transport.HTTP, max_length=5)
    url: str = Field(default="", max_length=500)
    access: str = Field(default=Access.OPEN, max_length=5)
    client_id: str = Field(default="", max_length=500)
    client_secret_sealed: bytes | None = None
    client_issuer: str = Field(default="", max_length=1_000)
    is_registered: bool = False
    is_enabled: bool = True
    fault: str = Field(default="", max_length=64)
    looked_at: datetime | None = None
    created_at: datetime
    created_by: str = Field(max_length=26)


class McpTool(SQLModel, table=True):
    """One tool of a server.

    Attributes:
        name: as the server calls it; `local` the same in our names: small letters, `_`.
        risk: as an administrator says; what the server hints of itself counts for nothing.
        pin: SHA-256 of name, description and schemas, as they were enabled; `pinned` what they say.
        offered_pin: the same of what was offered last; `offered` what it says.
        unfit: why it cannot be enabled; empty: it can.
    """

    __tablename__: ClassVar[str] = "mcp_tool"
    __table_args__ = (
        owned("server_id", "mcp_server"),
        UniqueConstraint("tenant_id", "server_id", "name"),
        one_of("state", ToolState),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    id: str = Field(primary_key=True, max_length=26)
    server_id: str = Field(max_length=26)
    name: str = Field(max_length=128)
    local: str = Field(max_length=128)
    state: str = Field(default=ToolState.OFF, max_length=7)
    risk: str = Field(default="L3", max_length=2)
    pin: str | None = Field(default=None, max_length=64)
    pinned: dict[str, Any] | None = json_field(default=None)
    offered_pin: str = Field(max_length=64)
    offered: dict[str, Any] = json_field()
    unfit: str = Field(default="", max_length=64)
    seen_at: datetime
    enabled_at: datetime | None = None
    enabled_by: str | None = Field(default=None, max_length=26)


class McpLink(SQLModel, table=True):
    """A person's own access to a server; its tokens are sealed.

    Attributes:
        is_broken: the server takes it no more; the person has to link again.
        version: one of several that renew it at once wins.
        oauth: where it was asked for, and is renewed, whatever the server says by now (JSON).
        client_id: how this deployment was known there.
    """

    __tablename__: ClassVar[str] = "mcp_link"
    __table_args__ = (owned("server_id", "mcp_server"), owned("user_id", "user"))

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    user_id: str = Field(primary_key=True, max_length=26)
    server_id: str = Field(primary_key=True, max_length=26)
    token_sealed: bytes
    refresh_sealed: bytes | None = None
    oauth: dict[str, Any] | None = json_field(default=None)
    client_id: str = Field(default="", max_length=500)
    client_secret_sealed: bytes | None = None
    scope: str = Field(default="", max_length=1_000)
    expires_at: datetime | None = None
    is_broken: bool = False
    version: int = 1
    created_at: datetime


class McpLinkRequest(SQLModel, table=True):
    """A consent that was asked for and has not come back yet; of one browser session, once.

    Attributes:
        oauth: where it was asked for; the answer counts there and nowhere else (JSON).
        client_id: how this deployment is known there.
    """

    __tablename__: ClassVar[str] = "mcp_link_request"
    __table_args__ = (owned("server_id", "mcp_server"), Index(None, "expires_at"))

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    state_sha256: str = Field(primary_key=True, max_length=64)
    server_id: str = Field(max_length=26)
    user_id: str = Field(max_length=26)
    session_id: str = Field(max_length=26)
    verifier_sealed: bytes
    oauth: dict[str, Any] = json_field()
    client_id: str = Field(max_length=500)
    client_secret_sealed: bytes | None = None
    expires_at: datetime
