"""What became of a call: from what it came to while that is kept, and from the trail (CMD-26)."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlmodel import Session, col, select

from app.audit.models import AuditEntry
from app.commands import idempotency
from app.identity.principal import Principal
from app.kernel.errors import NotFound

DECISIONS = ("approved", "denied", "expired", "superseded", "cancelled")


@dataclass(frozen=True, slots=True)
class Became:
    """A call as it stands: its newest entry, and what it answered while that is kept (24 h)."""

    call_id: str
    code: str
    version: int | None
    outcome: str
    stage: str | None
    reason: str | None
    at: datetime
    audit_seq: int
    approval_id: str | None
    answer: dict[str, Any] | None


def of(session: Session, principal: Principal, call_id: str) -> Became:
    """A call of this user, through this agent where one calls.

    Raises:
        NotFound: there was none, or it was somebody else's.
    """
    query = (
        select(AuditEntry)
        .where(
            AuditEntry.tenant_id == principal.tenant_id,
            AuditEntry.call_id == call_id,
            AuditEntry.user_id == principal.user_id,
            col(AuditEntry.agent_id).is_not_distinct_from(principal.agent_id),
            col(AuditEntry.outcome).not_in(DECISIONS),
            ~col(AuditEntry.command).startswith("identity."),
        )
        .order_by(col(AuditEntry.seq).desc())
        .limit(1)
    )
    entry = session.exec(query).first()
    if entry is None:
        raise NotFound
    return Became(
        call_id=call_id,
        code=entry.command,
        version=entry.version,
        outcome=entry.outcome,
        stage=entry.stage,
        reason=entry.reason,
        at=entry.at,
        audit_seq=entry.seq,
        approval_id=entry.approval_id,
        answer=idempotency.outcome_of(session.connection(), principal, call_id),
    )
