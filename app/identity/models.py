"""The tables of identity (security.md, 1); a tenant's have `tenant_id` first in their keys."""

from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar

from sqlalchemy import Index, UniqueConstraint, event
from sqlmodel import Field, SQLModel

from app.identity.search import folded
from app.kernel.tables import json_field, one_of, owned, unique_while_null


class TenantStatus(StrEnum):
    """Whether a tenant's people can work."""

    ACTIVE = "active"
    SUSPENDED = "suspended"
    CLOSED = "closed"


class OrgStatus(StrEnum):
    """Whether an organisation takes new members."""

    ACTIVE = "active"
    CLOSED = "closed"


class UserStatus(StrEnum):
    """Whether a person can sign in."""

    INVITED = "invited"
    ACTIVE = "active"
    DISABLED = "disabled"


class CredentialKind(StrEnum):
    """How a person proves who they are here."""

    PASSWORD = "password"  # noqa: S105 - a kind, not a secret
    PASSKEY = "passkey"


class LinkPurpose(StrEnum):
    """What a one-time link is for."""

    INVITE = "invite"
    RESET = "reset"


class DataScope(StrEnum):
    """Which records a grant reaches, from the assignment's organisation."""

    SELF = "self"
    ORG = "org"
    ORG_AND_BELOW = "org_and_below"
    ALL = "all"


class EntitlementStatus(StrEnum):
    """What a tenant's right to a feature is worth; `expired` is worth nothing."""

    TRIAL = "trial"
    ACTIVE = "active"
    GRACE = "grace"
    EXPIRED = "expired"


class AgentKind(StrEnum):
    """Where an agent runs: here, or somewhere else as an OAuth client."""

    HOSTED = "hosted"
    EXTERNAL = "external"


class AgentStatus(StrEnum):
    """Whether an agent can act at all."""

    DRAFT = "draft"
    PUBLISHED = "published"
    DISABLED = "disabled"


class Tenant(SQLModel, table=True):
    """A customer."""

    __tablename__: ClassVar[str] = "tenant"
    __table_args__ = (one_of("status", TenantStatus),)

    id: str = Field(primary_key=True, max_length=26)
    slug: str = Field(unique=True, max_length=63)
    name: str = Field(max_length=200)
    status: str = Field(default=TenantStatus.ACTIVE, max_length=10)
    locale: str = Field(default="en", max_length=10)
    settings: dict[str, Any] = json_field(default_factory=dict)
    created_at: datetime


class Org(SQLModel, table=True):
    """A node of a tenant's organisation tree; `path` is `/<id>/<id>/`, its own id last."""

    __tablename__: ClassVar[str] = "org"
    __table_args__ = (
        owned("parent_id", "org"),
        UniqueConstraint("tenant_id", "path"),
        one_of("status", OrgStatus),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    id: str = Field(primary_key=True, max_length=26)
    parent_id: str | None = Field(default=None, max_length=26)
    path: str = Field(max_length=1000)
    name: str = Field(max_length=200)
    status: str = Field(default=OrgStatus.ACTIVE, max_length=10)


class User(SQLModel, table=True):
    """A person of a tenant. `login` is NFKC and casefolded."""

    __tablename__: ClassVar[str] = "user"
    __table_args__ = (
        owned("org_id", "org"),
        UniqueConstraint("tenant_id", "login"),
        UniqueConstraint("tenant_id", "aid"),
        Index(None, "tenant_id", "org_id"),
        one_of("status", UserStatus),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    id: str = Field(primary_key=True, max_length=26)
    login: str = Field(max_length=100)
    display_name: str = Field(max_length=200)
    email: str | None = Field(default=None, max_length=254)
    email_verified: bool = False
    org_id: str = Field(max_length=26)
    locale: str | None = Field(default=None, max_length=10)  # null: as the browser asks
    time_zone: str | None = Field(default=None, max_length=64)  # IANA name
    theme: str = Field(default="system", max_length=10)
    aid: str | None = Field(default=None, max_length=200)
    status: str = Field(default=UserStatus.INVITED, max_length=10)
    authz_epoch: int = 1
    version: int = 1
    created_at: datetime
    disabled_at: datetime | None = None
    disabled_by: str | None = Field(default=None, max_length=26)
    search: str = ""  # what a search looks through; see `_keep_user_found`


class Credential(SQLModel, table=True):
    """A password or a passkey of a user."""

    __tablename__: ClassVar[str] = "credential"
    __table_args__ = (
        owned("user_id", "user"),
        UniqueConstraint("tenant_id", "passkey_id"),
        Index(None, "tenant_id", "user_id"),
        one_of("kind", CredentialKind),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    id: str = Field(primary_key=True, max_length=26)
    user_id: str = Field(max_length=26)
    kind: str = Field(max_length=10)
    argon2id: str | None = Field(default=None, max_length=200)
    passkey_id: str | None = Field(default=None, max_length=1400)  # credential id, base64url
    public_key: bytes | None = None
    sign_count: int = 0
    backup_eligible: bool = False
    backed_up: bool = False
    transports: list[str] = json_field(default_factory=list)
    label: str = Field(default="", max_length=100)
    created_at: datetime
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None


class ExternalLogin(SQLModel, table=True):
    """A user's account at a provider of sign-ins: (issuer, subject), never an e-mail address."""

    __tablename__: ClassVar[str] = "external_login"
    __table_args__ = (
        owned("user_id", "user"),
        UniqueConstraint("tenant_id", "issuer", "subject"),
        Index(None, "tenant_id", "user_id"),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    id: str = Field(primary_key=True, max_length=26)
    user_id: str = Field(max_length=26)
    provider: str = Field(max_length=63)
    issuer: str = Field(max_length=500)
    subject: str = Field(max_length=255)
    linked_by_session: str | None = Field(default=None, max_length=26)
    linked_at: datetime
    last_used_at: datetime | None = None


class PeerLink(SQLModel, table=True):
    """An outside AUN or A2A party that is a user of ours."""

    __tablename__: ClassVar[str] = "peer_link"
    __table_args__ = (owned("user_id", "user"),)

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    aid: str = Field(primary_key=True, max_length=200)
    user_id: str = Field(max_length=26)
    linked_by_session: str | None = Field(default=None, max_length=26)
    linked_at: datetime
    revoked_at: datetime | None = None


class BrowserSession(SQLModel, table=True):
    """A signed-in browser. The cookie's secret is stored as its digest only."""

    __tablename__: ClassVar[str] = "session"
    __table_args__ = (
        owned("user_id", "user"),
        UniqueConstraint("tenant_id", "secret_sha256"),
        Index(None, "tenant_id", "user_id"),
        Index(None, "tenant_id", "previous_sha256"),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    id: str = Field(primary_key=True, max_length=26)
    user_id: str = Field(max_length=26)
    secret_sha256: str = Field(max_length=64)
    previous_sha256: str | None = Field(default=None, max_length=64)  # opens until previous_until
    previous_until: datetime | None = None
    auth_time: datetime
    amr: list[str] = json_field(default_factory=list)
    authz_epoch: int
    created_at: datetime
    last_seen_at: datetime
    idle_until: datetime
    ends_at: datetime
    ip_prefix: str = Field(default="", max_length=50)
    user_agent_sha256: str = Field(default="", max_length=64)
    device: str = Field(default="", max_length=100)  # "Firefox on Linux", for the list of sessions
    revoked_at: datetime | None = None
    revoked_why: str | None = Field(default=None, max_length=40)


class OneTimeLink(SQLModel, table=True):
    """An invitation, or the reset of a password."""

    __tablename__: ClassVar[str] = "one_time_link"
    __table_args__ = (
        owned("user_id", "user"),
        UniqueConstraint("tenant_id", "secret_sha256"),
        one_of("purpose", LinkPurpose),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    id: str = Field(primary_key=True, max_length=26)
    purpose: str = Field(max_length=10)
    user_id: str = Field(max_length=26)
    secret_sha256: str = Field(max_length=64)
    created_by_session: str | None = Field(default=None, max_length=26)
    expires_at: datetime
    used_at: datetime | None = None


class SignInFailure(SQLModel, table=True):
    """Failed sign-ins of one (account, address prefix), for the growing wait (SEC-41)."""

    __tablename__: ClassVar[str] = "sign_in_failure"

    tenant_id: str = Field(primary_key=True, max_length=26)  # empty where the slug is unknown
    account_sha256: str = Field(primary_key=True, max_length=64)
    ip_prefix: str = Field(primary_key=True, max_length=50)
    failures: int = 0
    last_failed_at: datetime
    blocked_until: datetime


class Role(SQLModel, table=True):
    """A named set of permissions."""

    __tablename__: ClassVar[str] = "role"
    __table_args__ = (UniqueConstraint("tenant_id", "code"),)

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    id: str = Field(primary_key=True, max_length=26)
    code: str = Field(max_length=63)
    name: str = Field(max_length=200)
    builtin: bool = False
    version: int = 1


class Grant(SQLModel, table=True):
    """A role's permission, and which records it reaches."""

    __tablename__: ClassVar[str] = "grant"
    __table_args__ = (owned("role_id", "role"), Index(None, "tenant_id", "permission"))

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    role_id: str = Field(primary_key=True, max_length=26)
    permission: str = Field(primary_key=True, max_length=127)
    data_scope: str = Field(max_length=20)  # an unknown one reaches nothing


class RoleAssignment(SQLModel, table=True):
    """A user holds a role at an organisation, from which data scopes are counted."""

    __tablename__: ClassVar[str] = "role_assignment"
    __table_args__ = (
        owned("user_id", "user"),
        owned("role_id", "role"),
        owned("org_id", "org"),
        Index(None, "tenant_id", "role_id"),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    user_id: str = Field(primary_key=True, max_length=26)
    role_id: str = Field(primary_key=True, max_length=26)
    org_id: str = Field(primary_key=True, max_length=26)
    assigned_by_session: str | None = Field(default=None, max_length=26)
    assigned_at: datetime
    ends_at: datetime | None = None


class Entitlement(SQLModel, table=True):
    """A tenant's right to a feature."""

    __tablename__: ClassVar[str] = "entitlement"
    __table_args__ = (one_of("status", EntitlementStatus),)

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    feature: str = Field(primary_key=True, max_length=127)
    status: str = Field(max_length=10)
    starts_at: datetime
    ends_at: datetime | None = None
    source: str = Field(default="", max_length=200)


class Agent(SQLModel, table=True):
    """An agent's definition. It holds no role, no grant and no permission (SEC-7)."""

    __tablename__: ClassVar[str] = "agent"
    __table_args__ = (
        owned("admin_user_id", "user"),
        UniqueConstraint("tenant_id", "code"),
        UniqueConstraint("tenant_id", "aid"),
        UniqueConstraint("tenant_id", "client_id"),
        one_of("kind", AgentKind),
        one_of("status", AgentStatus),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    id: str = Field(primary_key=True, max_length=26)
    code: str = Field(max_length=63)
    kind: str = Field(max_length=10)
    name: str = Field(max_length=200)
    description: str = Field(default="", max_length=1000)
    aid: str | None = Field(default=None, max_length=200)
    client_id: str | None = Field(default=None, max_length=500)
    admin_user_id: str = Field(max_length=26)
    status: str = Field(default=AgentStatus.DRAFT, max_length=10)
    draft: dict[str, Any] = json_field(default_factory=dict)  # content of the release to come
    version: int = 1
    created_at: datetime
    search: str = ""  # what a search looks through; see `_keep_agent_found`


class AgentRelease(SQLModel, table=True):
    """A published, immutable version of an agent; never updated."""

    __tablename__: ClassVar[str] = "agent_release"
    __table_args__ = (
        owned("agent_id", "agent"),
        UniqueConstraint("tenant_id", "agent_id", "number"),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    id: str = Field(primary_key=True, max_length=26)
    agent_id: str = Field(max_length=26)
    number: int
    content: dict[str, Any] = json_field()
    content_sha256: str = Field(max_length=64)
    published_at: datetime
    published_by_session: str | None = Field(default=None, max_length=26)


class Delegation(SQLModel, table=True):
    """A user lets an agent act for them; it holds no permission, it only narrows."""

    __tablename__: ClassVar[str] = "delegation"
    __table_args__ = (
        owned("user_id", "user"),
        owned("agent_id", "agent"),
        unique_while_null(
            "uq_delegation_live", "tenant_id", "user_id", "agent_id", null="revoked_at"
        ),
        Index(None, "tenant_id", "agent_id"),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    id: str = Field(primary_key=True, max_length=26)
    user_id: str = Field(max_length=26)
    agent_id: str = Field(max_length=26)
    scopes: list[str] = json_field()
    created_by_session: str | None = Field(default=None, max_length=26)
    created_at: datetime
    expires_at: datetime | None = None
    paused_at: datetime | None = None
    paused_why: str | None = Field(default=None, max_length=100)
    revoked_at: datetime | None = None
    revoked_by: str | None = Field(default=None, max_length=26)


class TokenFamily(SQLModel, table=True):
    """The refresh tokens that descend from one grant."""

    __tablename__: ClassVar[str] = "token_family"
    __table_args__ = (
        owned("user_id", "user"),
        owned("agent_id", "agent"),
        owned("delegation_id", "delegation"),
        Index(None, "tenant_id", "delegation_id"),
        Index(None, "tenant_id", "user_id"),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    id: str = Field(primary_key=True, max_length=26)
    user_id: str = Field(max_length=26)
    agent_id: str = Field(max_length=26)
    delegation_id: str = Field(max_length=26)
    client_id: str = Field(max_length=500)
    session_id: str | None = Field(default=None, max_length=26)
    scope: str = Field(max_length=500)
    resource: str = Field(max_length=500)
    auth_time: datetime
    amr: list[str] = json_field(default_factory=list)
    created_at: datetime
    ends_at: datetime
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None
    revoked_why: str | None = Field(default=None, max_length=40)


class RefreshToken(SQLModel, table=True):
    """One refresh token; presenting a used one ends its family (SEC-27)."""

    __tablename__: ClassVar[str] = "refresh_token"
    __table_args__ = (
        owned("family_id", "token_family"),
        UniqueConstraint("tenant_id", "secret_sha256"),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    family_id: str = Field(primary_key=True, max_length=26)
    number: int = Field(primary_key=True)
    secret_sha256: str = Field(max_length=64)
    issued_at: datetime
    expires_at: datetime
    used_at: datetime | None = None


class Permission(SQLModel, table=True):
    """A permission code that exists; written from the slices and packs at start."""

    __tablename__: ClassVar[str] = "permission"

    code: str = Field(primary_key=True, max_length=127)
    pack: str = Field(max_length=63)
    title: dict[str, str] = json_field()  # {"en": …, "zh-CN": …}


class Feature(SQLModel, table=True):
    """A feature that a tenant can be entitled to; written from the packs at start."""

    __tablename__: ClassVar[str] = "feature"

    code: str = Field(primary_key=True, max_length=127)
    pack: str = Field(max_length=63)
    title: dict[str, str] = json_field()


class ClientSource(StrEnum):
    """How an OAuth client became known."""

    REGISTERED = "registered"
    CIMD = "cimd"
    DCR = "dcr"
    HOSTED = "hosted"


class ClientStatus(StrEnum):
    """Whether a client may be used."""

    ACTIVE = "active"
    BLOCKED = "blocked"


class AuthMethod(StrEnum):
    """How a client authenticates: exactly one a client."""

    NONE = "none"
    CLIENT_SECRET_BASIC = "client_secret_basic"  # noqa: S105 - a method, not a secret


class OAuthClient(SQLModel, table=True):
    """An application that asks to act for people; of the deployment, not of a tenant."""

    __tablename__: ClassVar[str] = "oauth_client"
    __table_args__ = (
        one_of("source", ClientSource),
        one_of("status", ClientStatus),
        one_of("auth_method", AuthMethod),
    )

    id: str = Field(primary_key=True, max_length=500)  # a ULID, or the URL of a CIMD
    source: str = Field(max_length=20)
    name: str = Field(max_length=200)
    metadata_sha256: str | None = Field(default=None, max_length=64)
    redirect_uris: list[str] = json_field(default_factory=list)
    grant_types: list[str] = json_field(default_factory=list)
    auth_method: str = Field(max_length=30)
    secret_sha256: str | None = Field(default=None, max_length=64)
    status: str = Field(default=ClientStatus.ACTIVE, max_length=10)
    owner_tenant_id: str | None = Field(default=None, max_length=26)  # who registered it, if any
    created_at: datetime
    fetched_at: datetime | None = None
    fresh_until: datetime | None = None  # of a metadata document
    last_used_at: datetime | None = None
    expires_at: datetime | None = None


class OAuthRequest(SQLModel, table=True):
    """An authorization request, kept here while a person reads it (10 min)."""

    __tablename__: ClassVar[str] = "oauth_request"

    id: str = Field(primary_key=True, max_length=26)
    session_id: str | None = Field(default=None, max_length=26)
    parameters: dict[str, Any] = json_field()
    expires_at: datetime
    used_at: datetime | None = None


class AuthorizationCode(SQLModel, table=True):
    """A code of one consent (60 s), taken once."""

    __tablename__: ClassVar[str] = "authorization_code"

    code_sha256: str = Field(primary_key=True, max_length=64)
    client_id: str = Field(max_length=500)
    tenant_id: str = Field(max_length=26)
    user_id: str = Field(max_length=26)
    session_id: str | None = Field(default=None, max_length=26)
    delegation_id: str = Field(max_length=26)
    redirect_uri: str = Field(max_length=2000)
    scope: str = Field(max_length=500)
    resource: str = Field(max_length=500)
    code_challenge: str = Field(max_length=128)
    auth_time: datetime
    amr: list[str] = json_field(default_factory=list)
    expires_at: datetime
    used_at: datetime | None = None
    family_id: str | None = Field(default=None, max_length=26)


class DeviceState(StrEnum):
    """What became of a device code."""

    OPEN = "open"
    APPROVED = "approved"
    DENIED = "denied"
    USED = "used"


class DeviceCode(SQLModel, table=True):
    """A device that waits for a person elsewhere to let it in (10 min)."""

    __tablename__: ClassVar[str] = "device_code"
    __table_args__ = (one_of("state", DeviceState),)

    device_sha256: str = Field(primary_key=True, max_length=64)
    user_code_sha256: str = Field(unique=True, max_length=64)
    client_id: str = Field(max_length=500)
    scope: str = Field(max_length=500)
    resource: str = Field(max_length=500)
    state: str = Field(default=DeviceState.OPEN, max_length=10)
    tenant_id: str | None = Field(default=None, max_length=26)
    user_id: str | None = Field(default=None, max_length=26)
    session_id: str | None = Field(default=None, max_length=26)
    delegation_id: str | None = Field(default=None, max_length=26)
    family_id: str | None = Field(default=None, max_length=26)
    auth_time: datetime | None = None
    amr: list[str] = json_field(default_factory=list)
    interval_s: int = 5
    polled_at: datetime | None = None
    expires_at: datetime


class SetupLink(SQLModel, table=True):
    """The link that makes the first tenant and its owner (SEC-42)."""

    __tablename__: ClassVar[str] = "setup_link"

    secret_sha256: str = Field(primary_key=True, max_length=64)
    expires_at: datetime
    used_at: datetime | None = None


class OidcState(SQLModel, table=True):
    """A sign-in on its way to a provider and back (10 min), bound to one browser."""

    __tablename__: ClassVar[str] = "oidc_state"

    state_sha256: str = Field(primary_key=True, max_length=64)
    tenant_id: str = Field(max_length=26)
    provider: str = Field(max_length=63)
    nonce: str = Field(max_length=100)
    verifier: bytes  # sealed
    browser_sha256: str = Field(max_length=64)
    purpose: str = Field(default="sign_in", max_length=10)  # or `link`, `step_up`
    session_id: str | None = Field(default=None, max_length=26)
    return_path: str = Field(max_length=500)
    expires_at: datetime
    used_at: datetime | None = None


class PasskeyChallenge(SQLModel, table=True):
    """A challenge the server made for one passkey ceremony (2 min), used once (SEC-39)."""

    __tablename__: ClassVar[str] = "passkey_challenge"

    challenge_sha256: str = Field(primary_key=True, max_length=64)
    purpose: str = Field(max_length=20)  # `sign_in`, `register`, `step_up`
    bound_to: str = Field(max_length=64)  # session id, or digest of the browser's pre-session
    expires_at: datetime
    used_at: datetime | None = None


class UsedAssertion(SQLModel, table=True):
    """A signed assertion of another issuer that was used; a second use is refused."""

    __tablename__: ClassVar[str] = "used_assertion"

    issuer: str = Field(primary_key=True, max_length=500)
    jti: str = Field(primary_key=True, max_length=255)
    expires_at: datetime


class KeyUse(StrEnum):
    """What a signing key signs."""

    ACCESS_TOKEN = "access_token"  # noqa: S105 - a use, not a secret
    ID_JAG = "id_jag"
    CHECKPOINT = "checkpoint"


class KeyState(StrEnum):
    """`next` is published, `active` signs, `retiring` verifies, `retired` does nothing more."""

    NEXT = "next"
    ACTIVE = "active"
    RETIRING = "retiring"
    RETIRED = "retired"


class SigningKey(SQLModel, table=True):
    """An ES256 key pair; `kid` is its RFC 7638 thumbprint (SEC-81)."""

    __tablename__: ClassVar[str] = "signing_key"
    __table_args__ = (one_of("use", KeyUse), one_of("state", KeyState))

    kid: str = Field(primary_key=True, max_length=64)
    use: str = Field(max_length=20)
    state: str = Field(max_length=10)
    public_jwk: dict[str, str] = json_field()
    private: bytes | None = None  # sealed; gone when retired
    created_at: datetime
    activated_at: datetime | None = None
    retired_at: datetime | None = None


@event.listens_for(User, "before_insert")
@event.listens_for(User, "before_update")
def _keep_user_found(_mapper: Any, _connection: Any, user: User) -> None:
    user.search = folded(user.login, user.display_name, user.email)


@event.listens_for(Agent, "before_insert")
@event.listens_for(Agent, "before_update")
def _keep_agent_found(_mapper: Any, _connection: Any, agent: Agent) -> None:
    agent.search = folded(agent.code, agent.name, agent.description)
