"""What a person found out about an effect that may have happened: it did, or it did not (CMD-27).

The system never repeats such an effect. Who ordered it, or who keeps what is told to the outside,
looks at the other side and says what is there; that is one more entry of the call.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import CursorResult, update
from sqlmodel import Session, col, select

from app.access import scope
from app.audit.models import AuditEntry
from app.commands import external, posting
from app.commands.external import ExternalResult
from app.commands.outbox_models import EffectState, ExternalEffect
from app.identity import facts
from app.identity.principal import Principal
from app.kernel import clock
from app.kernel.db import Work
from app.kernel.errors import Conflict, NotFound
from app.kernel.i18n import N_

Finding = Literal["happened", "did_not"]

MANAGE = "command.webhook.manage"
COMMAND = "command.effect.resolve"
FOUND = "found_by_person"
OUTCOMES: dict[Finding, Literal["done", "failed"]] = {"happened": "done", "did_not": "failed"}


class AlreadyResolved(Conflict):
    """Somebody said before what happened."""

    reason = "effect_resolved"
    says = N_("Somebody has said already what happened.")


@dataclass(frozen=True, slots=True)
class Found:
    """What a person said, who, and when."""

    finding: Finding
    user_id: str | None
    at: datetime


@dataclass(frozen=True, slots=True)
class Open:
    """An effect that may have happened, and what there is to look it up by.

    Attributes:
        ordered: the entry that says what was ordered; None where the trail has none.
        address: where it was sent, as far as that is set here.
        found: what a person found out; None while nobody did.
    """

    effect: ExternalEffect
    ordered: AuditEntry | None
    address: str
    found: Found | None


def of(session: Session, person: Principal, call_id: str) -> Open:
    """The effect of a call of which nobody knows, or of which a person said what happened.

    Raises:
        NotFound: there is none, or it is neither theirs nor theirs to look after.
    """
    effect = external.one(session, person.tenant_id, call_id)
    if effect is None or not _may_resolve(session, person, effect):
        raise NotFound
    found = _found(session, effect)
    if effect.state != EffectState.UNKNOWN and found is None:
        raise NotFound
    receiver = posting.address(session, effect.tenant_id, effect.performer)
    return Open(
        effect,
        external.ordered_by(session, effect),
        receiver.url if receiver is not None else "",
        found,
    )


def is_open_to(session: Session, person: Principal, call_id: str) -> bool:
    """Whether nobody knows what became of the call, and this person may say."""
    effect = external.one(session, person.tenant_id, call_id)
    return (
        effect is not None
        and effect.state == EffectState.UNKNOWN
        and _may_resolve(session, person, effect)
    )


def resolve(work: Work, person: Principal, call_id: str, finding: Finding) -> None:
    """Put on record what a person found out; who said it is an entry of its own.

    Raises:
        NotFound: there is no such effect for this person.
        AlreadyResolved: somebody was faster.
    """
    effect = of(work.session, person, call_id).effect
    result = ExternalResult(outcome=OUTCOMES[finding], reason=FOUND)
    if not _settle(work, effect, result):
        raise AlreadyResolved
    facts.record(
        work,
        COMMAND,
        person,
        target=("call", call_id),
        details={"command": effect.code, "finding": finding},
    )
    external.put_on_record(work, effect, result)


def _may_resolve(session: Session, person: Principal, effect: ExternalEffect) -> bool:
    if not person.is_person:
        return False
    return effect.user_id == person.user_id or scope.tenant_wide(session, person, MANAGE)


def _settle(work: Work, effect: ExternalEffect, result: ExternalResult) -> bool:
    """Take it, once; not what the object in hand says, which another may have changed."""
    settled: CursorResult[Any] = work.connection.execute(
        update(ExternalEffect)
        .where(
            col(ExternalEffect.tenant_id) == effect.tenant_id,
            col(ExternalEffect.call_id) == effect.call_id,
            col(ExternalEffect.state) == EffectState.UNKNOWN,
        )
        .values(state=result.outcome, last_error=result.reason, settled_at=clock.now())
    )
    return settled.rowcount == 1


def _found(session: Session, effect: ExternalEffect) -> Found | None:
    query = select(AuditEntry).where(
        AuditEntry.tenant_id == effect.tenant_id,
        AuditEntry.target_id == effect.call_id,
        AuditEntry.command == COMMAND,
    )
    entry = session.exec(query.order_by(col(AuditEntry.seq))).first()
    if entry is None:
        return None
    has_happened = (entry.input_redacted or {}).get("finding") == "happened"
    return Found("happened" if has_happened else "did_not", entry.user_id, entry.at)
