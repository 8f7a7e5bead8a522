"""The outside AIDs of a tenant, as an administrator sees them, and how one is shut out."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import and_, func, select
from sqlmodel import Session, col

from app.aun import linking, queries, tokens
from app.aun.models import Identity, IdentityKind, IdentityStatus
from app.aun.pki import certificates
from app.aun.pki_models import Certificate
from app.identity import facts, paging
from app.identity.errors import NotUsableNow
from app.identity.models import PeerLink, User
from app.identity.paging import Order, Page
from app.identity.principal import Principal
from app.kernel import clock
from app.kernel.db import Work
from app.kernel.errors import NotFound

SHUT_OUT = 4003  # the client does not come back by itself


@dataclass(frozen=True, slots=True)
class Contact:
    """An outside AID, and whose it is."""

    identity: Identity
    user: User | None

    @property
    def is_blocked(self) -> bool:
        """Whether it was shut out."""
        return self.identity.status == IdentityStatus.BLOCKED


def page(session: Session, tenant_id: str, q: str, cursor: str) -> Page[Contact]:
    """Outside AIDs with `q` in their name, by name."""
    conditions = [
        col(Identity.tenant_id) == tenant_id,
        col(Identity.kind) == IdentityKind.OUTSIDE,
        *(col(Identity.aid).contains(word, autoescape=True) for word in q.lower().split()),
    ]
    link = and_(
        col(PeerLink.tenant_id) == Identity.tenant_id,
        col(PeerLink.aid) == Identity.aid,
        col(PeerLink.revoked_at).is_(None),
    )
    user = and_(col(User.tenant_id) == PeerLink.tenant_id, col(User.id) == PeerLink.user_id)
    query: Any = (
        select(Identity, User).outerjoin(PeerLink, link).outerjoin(User, user).where(*conditions)
    )
    order = Order(col(Identity.aid), col(Identity.created_at))
    found = paging.page(session, query, order, cursor or None, lambda row: Contact(*row))
    total = session.scalar(select(func.count()).select_from(Identity).where(*conditions)) or 0
    return Page(found.rows, found.previous, found.next, total)


def one(session: Session, tenant_id: str, aid: str) -> Contact:
    """One outside AID.

    Raises:
        NotFound: there is none of this name.
    """
    found = queries.identity(session, tenant_id, aid)
    if found is None or found.kind != IdentityKind.OUTSIDE:
        raise NotFound
    link = session.get(PeerLink, (tenant_id, aid))
    is_linked = link is not None and link.revoked_at is None
    user = session.get(User, (tenant_id, link.user_id)) if link and is_linked else None
    return Contact(found, user)


def certificate(session: Session, tenant_id: str, aid: str) -> Certificate | None:
    """The certificate an outside AID has, or had last."""
    rows = queries.certificates(session, tenant_id, aid)
    active = queries.active_certificate(session, tenant_id, aid)
    return active or next(iter(rows), None)


def block(work: Work, person: Principal, aid: str) -> None:
    """Shut an AID out: certificates, tokens, its link and every open connection end.

    Raises:
        NotFound: there is none of this name.
        NotUsableNow: it is shut out already.
    """
    found = one(work.session, person.tenant_id, aid)
    if found.is_blocked:
        raise NotUsableNow(state=found.identity.status)
    found.identity.status = IdentityStatus.BLOCKED
    work.session.add(found.identity)
    certificates.revoke(work, person.tenant_id, aid)
    tokens.revoke(work, person.tenant_id, aid)
    link = work.session.get(PeerLink, (person.tenant_id, aid))
    if link is not None and link.revoked_at is None:
        link.revoked_at = clock.now()
        work.session.add(link)
    details = {"user_id": found.user.id} if found.user else {}
    facts.record(work, "identity.contact.block", person, target=("contact", aid), details=details)
    linking.evict(work, person.tenant_id, aid, "blocked", SHUT_OUT)


def unblock(work: Work, person: Principal, aid: str) -> None:
    """Let an AID in again with its last key, and another certificate; its link stays ended.

    Raises:
        NotFound: there is none of this name.
        NotUsableNow: it is not shut out.
    """
    found = one(work.session, person.tenant_id, aid)
    if not found.is_blocked:
        raise NotUsableNow(state=found.identity.status)
    found.identity.status = IdentityStatus.ACTIVE
    work.session.add(found.identity)
    last = certificate(work.session, person.tenant_id, aid)
    if last is not None:
        key = certificates.public_key(last)
        certificates.issue(work, person.tenant_id, aid, key)
    facts.record(work, "identity.contact.unblock", person, target=("contact", aid))
