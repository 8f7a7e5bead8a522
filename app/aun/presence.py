"""Who is there now: a hint for display, from which nothing else follows (AUN-3)."""

from collections.abc import Collection
from datetime import timedelta

from sqlmodel import Session, col, select

from app.aun import queries
from app.aun.models import Identity, IdentityKind, IdentityStatus, LiveConnection
from app.kernel import clock

SILENT = timedelta(seconds=90)  # a replica that said nothing for so long holds no connections


def online(session: Session, tenant_id: str, aids: Collection[str]) -> set[str]:
    """Those of `aids` that are there; a stranger looks like somebody who is away.

    A hosted agent is there while it is enabled, whoever else while a connection or a stream of the
    console is open.
    """
    known = queries.known(session, tenant_id, aids)
    enabled = {aid for aid, found in known.items() if _is_enabled_agent(found)}
    others = [aid for aid in known if aid not in enabled]
    return enabled | connected(session, tenant_id, others)


def connected(session: Session, tenant_id: str, aids: Collection[str]) -> set[str]:
    """Those of `aids` that have a connection or a stream open, at whatever replica."""
    if not aids:
        return set()
    query = select(LiveConnection.aid).where(
        LiveConnection.tenant_id == tenant_id,
        col(LiveConnection.aid).in_(sorted(aids)),
        LiveConnection.seen_at > clock.now() - SILENT,
    )
    return set(session.exec(query))


def _is_enabled_agent(found: Identity) -> bool:
    return found.kind == IdentityKind.AGENT and found.status == IdentityStatus.ACTIVE
