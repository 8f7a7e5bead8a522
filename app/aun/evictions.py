"""Whose connections end with what becomes of a user or a tenant (aun.md, 4.5; security.md, 4)."""

from collections.abc import Callable

from sqlmodel import col, select

from app.aun import linking
from app.aun.models import LiveConnection
from app.identity.facts import IdentityFact
from app.identity.models import PeerLink
from app.kernel import events
from app.kernel.db import Work


def listen() -> Callable[[], None]:
    """Start to listen; once at start. Returns a function that ends it."""
    return events.subscribe_inside(IdentityFact, _note)


def _note(work: Work, fact: IdentityFact) -> None:
    if fact.action == "identity.user.disable":
        for aid in _linked(work, fact.tenant_id, fact.target_id or ""):
            linking.evict(work, fact.tenant_id, aid, "user disabled")
    elif fact.action == "identity.tenant.suspend":
        for aid in _connected(work, fact.tenant_id):
            linking.evict(work, fact.tenant_id, aid, "tenant suspended")


def _linked(work: Work, tenant_id: str, user_id: str) -> list[str]:
    # the links themselves end after this, with the rest of what the user has (identity/stops.py)
    query = select(PeerLink.aid).where(
        PeerLink.tenant_id == tenant_id,
        PeerLink.user_id == user_id,
        col(PeerLink.revoked_at).is_(None),
    )
    return list(work.session.exec(query))


def _connected(work: Work, tenant_id: str) -> list[str]:
    query = select(LiveConnection.aid).where(LiveConnection.tenant_id == tenant_id).distinct()
    return list(work.session.exec(query))
