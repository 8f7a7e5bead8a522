"""Who somebody is, beside a conversation with them: what their card and certificate say."""

from dataclasses import dataclass
from datetime import datetime

from sqlmodel import Session, col, func, select

from app.aun import contacts, identities, presence, queries
from app.aun.identities import Named
from app.aun.models import IdentityKind, LiveConnection, Message
from app.identity.models import Agent

SHORT = 16  # characters of a fingerprint that are shown


@dataclass(frozen=True, slots=True)
class Card:
    """A party, as people see it.

    Attributes:
        fingerprint: of its certificate, the beginning.
        last_seen: when it wrote or was connected last; None where nobody knows.
    """

    aid: str
    named: Named
    is_online: bool
    is_autonomous: bool
    description: str
    fingerprint: str
    last_seen: datetime | None


def of(session: Session, tenant_id: str, aid: str) -> Card | None:
    """The card of an AID of the tenant; None where nobody has it."""
    named = identities.display_names(session, tenant_id, [aid]).get(aid)
    if named is None:
        return None
    agent = None
    if named.kind == IdentityKind.AGENT:
        agent = session.get(Agent, (tenant_id, named.owner_id))
    certificate = contacts.certificate(session, tenant_id, aid)
    identity = queries.identity(session, tenant_id, aid)
    card = identity.card if identity and identity.card else ""
    return Card(
        aid=aid,
        named=named,
        is_online=aid in presence.online(session, tenant_id, [aid]),
        is_autonomous=agent is not None or "autonomous" in card,
        description=agent.description or "" if agent else "",
        fingerprint=certificate.fingerprint[:SHORT] if certificate else "",
        last_seen=_last_seen(session, tenant_id, aid),
    )


def _last_seen(session: Session, tenant_id: str, aid: str) -> datetime | None:
    seen = select(func.max(LiveConnection.seen_at)).where(
        LiveConnection.tenant_id == tenant_id, LiveConnection.aid == aid
    )
    wrote = (
        select(Message.sent_at)
        .where(Message.tenant_id == tenant_id, Message.sender_aid == aid)
        .order_by(col(Message.log_seq).desc())
        .limit(1)
    )
    known = [each for each in (session.exec(seen).one(), session.exec(wrote).first()) if each]
    return max(known, default=None)
