"""Facts of identity become entries, in the transaction that makes them true (security.md, 10)."""

import structlog
from sqlmodel import Session, select

from app.audit import chain, redaction, repeats, trail
from app.audit.trail import NewEntry
from app.identity.facts import IdentityFact
from app.identity.models import Tenant, User
from app.identity.principal import Channel
from app.kernel import ids
from app.kernel.db import Work

log = structlog.get_logger(__name__)

REFUSED = "refused"


def write(work: Work, fact: IdentityFact) -> None:
    """Put `fact` on record; one that belongs to no tenant goes to the log only."""
    if not _is_tenant(work.session, fact.tenant_id):
        log.info("identity_fact", action=fact.action, outcome=fact.outcome, reason=fact.reason)
        return
    entry = _entry(work, fact)
    if fact.outcome == REFUSED:
        repeats.append(work, entry)
    else:
        trail.append(work, entry)


def _entry(work: Work, fact: IdentityFact) -> NewEntry:
    actor = fact.actor
    user_id = actor.user_id if actor else fact.user_id
    kept = redaction.redact(work, fact.tenant_id, fact.details) if fact.details else None
    return NewEntry(
        tenant_id=fact.tenant_id,
        call_id=ids.ulid(),
        command=fact.action,
        outcome=fact.outcome,
        stage=fact.stage,
        reason=_short(fact.reason, 64),
        user_id=user_id,
        org_id=_org_of(work.session, fact.tenant_id, user_id),
        agent_id=actor.agent_id if actor else None,
        agent_release=actor.agent_release_id if actor else None,
        channel=_channel(fact),
        session_id=actor.session_id if actor else None,
        approval_id=_approval(fact),
        input_digest=kept.digest if kept else None,
        input_redacted=kept.stored if kept else None,
        target_type=fact.target_type,
        target_id=_short(fact.target_id, 500),
        changes=[
            {"field": change.field, "before": change.before, "after": change.after}
            for change in fact.changes
        ]
        or None,
        trace_id=_trace_id(),
    )


def _channel(fact: IdentityFact) -> str:
    """The actor's way in. Without an actor it was a browser's request, or nobody's: the process."""
    if fact.actor is not None:
        return fact.actor.channel
    asked = "request_id" in structlog.contextvars.get_contextvars()
    return Channel.CONSOLE if asked else Channel.PROCESS


def _trace_id() -> str | None:
    known = structlog.contextvars.get_contextvars().get("request_id")
    return _short(known, 32) if isinstance(known, str) else None


def _approval(fact: IdentityFact) -> str | None:
    return _short(fact.target_id, 26) if fact.target_type == "approval" else None


def _is_tenant(session: Session, tenant_id: str) -> bool:
    query = select(Tenant.id).where(Tenant.id == tenant_id)
    return bool(tenant_id) and session.exec(query).first() is not None


def _org_of(session: Session, tenant_id: str, user_id: str | None) -> str | None:
    # asked for nobody as well: a refused sign-in takes as long for a login that does not exist
    query = select(User.org_id).where(User.tenant_id == tenant_id, User.id == (user_id or ""))
    return session.exec(query).first()


def _short(value: str | None, length: int) -> str | None:
    return chain.text(value)[:length] if value is not None else None
