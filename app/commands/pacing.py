"""How often an agent may call: too many calls wait, too many writes pause the delegation (SEC-51).

Nothing is dropped in silence: the caller is told, and so is the user whose agent it is.
"""

from sqlmodel import Session

from app.commands import published
from app.identity import delegations
from app.identity.models import Delegation
from app.identity.tokens import DelegationPaused
from app.kernel import clock, db, rates
from app.kernel.db import Work
from app.kernel.errors import TooMany

TOO_MANY_WRITES = "too_many_writes"
KNOWN_FOR_S = 5.0  # whether a command writes; a change of that counts a little later
KNOWN = 10_000  # commands of tenants

_known: dict[tuple[str, str], tuple[bool, float]] = {}


async def admit(tenant_id: str, delegation_id: str | None, code: str) -> None:
    """Count one call of the agent of a delegation; a person's are counted by their session.

    Raises:
        TooMany: more than 120 calls in a minute; it did not count.
        DelegationPaused: more than 60 of them were to write; the delegation is paused now.
    """
    counted = rates.of_process()
    counted.hit("call", tenant_id, delegation_id)
    if not await _writes(tenant_id, code):
        return
    try:
        counted.hit("write", tenant_id, delegation_id)
    except TooMany:
        await db.transaction(_pause, tenant_id, delegation_id)
        raise DelegationPaused from None


async def _writes(tenant_id: str, code: str) -> bool:
    writes, at_s = _known.get((tenant_id, code), (True, float("-inf")))
    if clock.monotonic_s() - at_s > KNOWN_FOR_S:
        writes = await db.read(_writes_now, tenant_id, code)
        if len(_known) >= KNOWN:
            _known.clear()
        _known[tenant_id, code] = (writes, clock.monotonic_s())
    return writes


def _writes_now(session: Session, tenant_id: str, code: str) -> bool:
    found = published.current(session.connection(), tenant_id, code)
    return found is None or found.definition.writes


def _pause(work: Work, tenant_id: str, delegation_id: str | None) -> None:
    delegation = work.session.get(Delegation, (tenant_id, delegation_id), populate_existing=True)
    if delegation and delegation.paused_at is None and delegation.revoked_at is None:
        delegations.pause(work, None, delegation, TOO_MANY_WRITES)
