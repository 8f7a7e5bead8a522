"""The tables of certificates, tokens and keys of AUN."""

from datetime import datetime
from enum import StrEnum
from typing import ClassVar

from sqlalchemy import BigInteger, Index, LargeBinary, Text, UniqueConstraint
from sqlmodel import Field, SQLModel

from app.aun.models import AID_LENGTH, ID_LENGTH
from app.kernel.tables import one_of, owned


class CertificateState(StrEnum):
    """What a certificate is good for; all of them stay readable by fingerprint."""

    ACTIVE = "active"
    RETIRED = "retired"  # replaced by another of the same key
    REVOKED = "revoked"


class RootAuthority(SQLModel, table=True):
    """The root of this deployment; its key may have left the server."""

    __tablename__: ClassVar[str] = "aun_root"

    id: str = Field(primary_key=True, max_length=26)
    certificate: bytes = Field(sa_type=LargeBinary)  # DER
    key_sealed: bytes | None = Field(default=None, sa_type=LargeBinary)
    created_at: datetime


class IssuerAuthority(SQLModel, table=True):
    """What signs the AIDs of one tenant, and the certificate its gateway proves itself with."""

    __tablename__: ClassVar[str] = "aun_issuer"

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    domain: str = Field(unique=True, max_length=AID_LENGTH)
    root_id: str = Field(foreign_key="aun_root.id", max_length=26)
    certificate: bytes = Field(sa_type=LargeBinary)
    key_sealed: bytes = Field(sa_type=LargeBinary)
    auth_certificate: bytes = Field(sa_type=LargeBinary)
    auth_key_sealed: bytes = Field(sa_type=LargeBinary)
    created_at: datetime


class TokenKey(SQLModel, table=True):
    """A key that signs a tenant's AUN access tokens."""

    __tablename__: ClassVar[str] = "aun_token_key"

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    kid: str = Field(primary_key=True, max_length=26)
    key_sealed: bytes = Field(sa_type=LargeBinary)
    created_at: datetime
    retired_at: datetime | None = None  # still verifies what it signed


class Certificate(SQLModel, table=True):
    """A certificate of an AID."""

    __tablename__: ClassVar[str] = "aun_certificate"
    __table_args__ = (
        owned("aid", "aun_identity", target="aid"),
        one_of("state", CertificateState),
        UniqueConstraint("tenant_id", "fingerprint"),
        Index(None, "tenant_id", "aid", "state"),
        Index("ix_aun_certificate_key", "tenant_id", "aid", "key_fingerprint"),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    serial: str = Field(primary_key=True, max_length=40)  # lower hex, no zero in front
    aid: str = Field(max_length=AID_LENGTH)
    der: bytes = Field(sa_type=LargeBinary)
    fingerprint: str = Field(max_length=64)  # SHA-256 of the DER, hex
    key_fingerprint: str = Field(max_length=16)  # the first 16 hex of SHA-256 of its key's SPKI
    state: str = Field(default=CertificateState.ACTIVE, max_length=10)
    created_at: datetime
    not_after: datetime
    revoked_at: datetime | None = None


class RefreshToken(SQLModel, table=True):
    """A refresh token by its digest; using it makes the next of its chain."""

    __tablename__: ClassVar[str] = "aun_refresh_token"
    __table_args__ = (
        Index(None, "tenant_id", "aid"),
        Index("ix_aun_refresh_token_chain", "tenant_id", "chain_id"),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    digest: str = Field(primary_key=True, max_length=64)
    aid: str = Field(max_length=AID_LENGTH)
    chain_id: str = Field(max_length=26)
    number: int = 0  # in its chain
    chain_started_at: datetime
    created_at: datetime
    expires_at: datetime
    used_at: datetime | None = None
    revoked_at: datetime | None = None


class LoginChallenge(SQLModel, table=True):
    """What a client has to sign to log in, renew or rekey: for one AID, once, for a minute.

    A client opens a socket for each step, so that another replica may get the second.
    """

    __tablename__: ClassVar[str] = "aun_login_challenge"
    __table_args__ = (Index("ix_aun_login_challenge_expires", "expires_at"),)

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    id: str = Field(primary_key=True, max_length=26)  # `request_id` on the wire
    aid: str = Field(max_length=AID_LENGTH)
    serial: str = Field(max_length=40)  # of the certificate that was shown
    nonce: str = Field(max_length=64)
    expires_at: datetime


class Reservation(SQLModel, table=True):
    """A name an administrator lets a stranger register, once."""

    __tablename__: ClassVar[str] = "aun_reservation"
    __table_args__ = (Index(None, "tenant_id", "name"),)

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    id: str = Field(primary_key=True, max_length=26)
    name: str = Field(max_length=64)
    created_by: str = Field(max_length=26)
    created_at: datetime
    expires_at: datetime
    used_at: datetime | None = None
    withdrawn_at: datetime | None = None


class LinkCode(SQLModel, table=True):
    """A code by which an outside AID proves that it is a user's (aun.md, 4.5)."""

    __tablename__: ClassVar[str] = "aun_link_code"
    __table_args__ = (owned("user_id", "user"), Index(None, "tenant_id", "session_id"))

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    digest: str = Field(primary_key=True, max_length=64)
    user_id: str = Field(max_length=26)
    session_id: str = Field(max_length=26)
    created_at: datetime
    expires_at: datetime
    proved_aid: str | None = Field(default=None, max_length=AID_LENGTH)
    proved_at: datetime | None = None
    used_at: datetime | None = None


class DeviceKey(SQLModel, table=True):
    """The newest prekey of a device; `group_id` is empty for messages between two."""

    __tablename__: ClassVar[str] = "aun_device_key"

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    aid: str = Field(primary_key=True, max_length=AID_LENGTH)
    device_id: str = Field(primary_key=True, max_length=ID_LENGTH)
    group_id: str = Field(default="", primary_key=True, max_length=AID_LENGTH)
    key_source: str = Field(max_length=40)
    spk_id: str = Field(max_length=80)
    spk_pk: str = Field(sa_type=Text)  # base64 of the SPKI DER
    spk_signature: str = Field(sa_type=Text)
    spk_timestamp: int = Field(sa_type=BigInteger)
    updated_at: datetime
