"""How often an agent may call: too many calls wait, too many writes pause the delegation (SEC-51).

Nothing is dropped in silence: the caller is told, and so is the user whose agent it is.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

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


class _TooManyWrites(TooMany):
    """Whoever counts a call as it is made says so; the delegation is paused after that."""


class Pace:
    """One call of an agent, which counts for its delegation once its caller is known to stand.

    Not sooner: a token that was taken back would use up, and even pause, what its successor has.
    """

    __slots__ = ("_classes", "_is_counted", "_who")

    def __init__(self, tenant_id: str, delegation_id: str | None, *, writes: bool) -> None:
        self._who = tenant_id, delegation_id
        self._classes = ("call", "write") if writes else ("call",)
        self._is_counted = False

    @property
    def is_full(self) -> bool:
        """Whether it would be one too many; counts nothing."""
        counted = rates.of_process()
        return any(counted.is_full(name, *self._who) for name in self._classes)

    def count(self) -> None:
        """Count it, once, however often the unit runs in which the call is made; on any thread.

        Raises:
            TooMany: more than 120 calls in a minute, or 60 that write; it did not count.
        """
        if self._is_counted:
            return
        counted = rates.of_process()
        counted.hit("call", *self._who)
        if "write" in self._classes:
            try:
                counted.hit("write", *self._who)
            except TooMany as refused:
                raise _TooManyWrites(refused.retry_after_s) from None
        self._is_counted = True


@asynccontextmanager
async def paced(tenant_id: str, delegation_id: str | None, code: str) -> AsyncIterator[Pace]:
    """A call of the agent of a delegation; whoever learns inside that it stands, counts it.

    Raises:
        TooMany: more than 120 calls in a minute; it did not count.
        DelegationPaused: more than 60 of them were to write; the delegation is paused now.
    """
    try:
        yield Pace(tenant_id, delegation_id, writes=await _writes(tenant_id, code))
    except _TooManyWrites:
        await db.transaction(_pause, tenant_id, delegation_id)
        raise DelegationPaused from None


async def admit(tenant_id: str, delegation_id: str | None, code: str) -> None:
    """Count one call of an agent that is known to stand; a person's are counted by their session.

    Raises:
        TooMany, DelegationPaused: as `paced`.
    """
    async with paced(tenant_id, delegation_id, code) as pace:
        pace.count()


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
    delegation = work.session.get(
        Delegation, (tenant_id, delegation_id), populate_existing=True, with_for_update=True
    )  # locked: of many calls that came too often at once, one pauses and tells
    if delegation and delegation.paused_at is None and delegation.revoked_at is None:
        delegations.pause(work, None, delegation, TOO_MANY_WRITES)
