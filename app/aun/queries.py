"""Who is known here."""

from collections.abc import Collection, Sequence

from sqlalchemy import Connection
from sqlmodel import Session, col, select

from app.aun.errors import NoSuchParty
from app.aun.models import Identity, IdentityKind, IdentityStatus
from app.aun.pki_models import Certificate, CertificateState
from app.identity.models import PeerLink
from app.kernel.prepared import Prepared

_STANDING = Prepared(
    "SELECT 1 FROM aun_identity i JOIN tenant t ON t.id = i.tenant_id "
    "WHERE i.tenant_id = :tenant_id AND i.aid = :aid AND i.status = 'active' "
    "AND t.status = 'active'"
)
HOSTED = frozenset({IdentityKind.USER, IdentityKind.AGENT})


def identity(session: Session, tenant_id: str, aid: str) -> Identity | None:
    """The identity of an AID of this tenant, whatever its status."""
    return session.get(Identity, (tenant_id, aid))


def stands(connection: Connection, tenant_id: str, aid: str) -> bool:
    """Whether an AID may go on, now: neither it nor its tenant was shut out (SEC-32)."""
    return _STANDING.run(connection, tenant_id=tenant_id, aid=aid).first() is not None


def party(session: Session, tenant_id: str, aid: str) -> Identity:
    """Somebody a message can be sent to.

    Raises:
        NoSuchParty: unknown, another tenant's, a group, blocked, or a user who is deactivated.
    """
    found = identity(session, tenant_id, aid)
    if found is None or found.kind == IdentityKind.GROUP:
        raise NoSuchParty(f"unknown aid: {aid}")
    is_off = found.kind == IdentityKind.USER and found.status == IdentityStatus.INACTIVE
    if is_off or found.status == IdentityStatus.BLOCKED:
        raise NoSuchParty(f"aid is not reachable: {aid}")
    return found


def known(session: Session, tenant_id: str, aids: Collection[str]) -> dict[str, Identity]:
    """Those of `aids` that are identities of this tenant."""
    query = select(Identity).where(
        Identity.tenant_id == tenant_id, col(Identity.aid).in_(sorted(set(aids)))
    )
    return {found.aid: found for found in session.exec(query)}


def of_owner(session: Session, tenant_id: str, owner_id: str) -> Identity | None:
    """The hosted identity of a user or an agent."""
    query = select(Identity).where(
        Identity.tenant_id == tenant_id,
        Identity.owner_id == owner_id,
        col(Identity.kind).in_(HOSTED),
    )
    return session.exec(query).first()


def aids_of_user(session: Session, tenant_id: str, user_id: str) -> frozenset[str]:
    """The AIDs through which a user speaks: their own here, and those they linked."""
    own = of_owner(session, tenant_id, user_id)
    linked = select(PeerLink.aid).where(
        PeerLink.tenant_id == tenant_id,
        PeerLink.user_id == user_id,
        col(PeerLink.revoked_at).is_(None),
    )
    return frozenset({*session.exec(linked), *([own.aid] if own else [])})


def certificates(session: Session, tenant_id: str, aid: str) -> Sequence[Certificate]:
    """Every certificate of an AID, the newest first, retired and revoked ones too."""
    query = (
        select(Certificate)
        .where(Certificate.tenant_id == tenant_id, Certificate.aid == aid)
        .order_by(col(Certificate.created_at).desc(), col(Certificate.serial))
    )
    return session.exec(query).all()


def active_certificate(session: Session, tenant_id: str, aid: str) -> Certificate | None:
    """The certificate an AID proves itself with now."""
    return next(
        (
            found
            for found in certificates(session, tenant_id, aid)
            if found.state == CertificateState.ACTIVE
        ),
        None,
    )
