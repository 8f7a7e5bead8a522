"""The heartbeat of what this process executes: it keeps leases, and hears who asked for a stop.

Rowcount 0 means that the run was taken over, or is over: nothing more may be written (RUN-64).
"""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from app.kernel import db
from app.kernel.db import Work
from app.kernel.due import Due, part
from app.runs import rows
from app.runs.claiming import LEASE_S
from app.runs.errors import Cancelled, LeaseLost
from app.runs.lease import Claim
from app.runs.session import RunSession

_LEASES = Due("lease", longest_s=1.0)  # one that can be kept must not wait for its end


class Leaving(LeaseLost):
    """This process ends: the stage at hand is finished, then the run goes back to the queue."""


@dataclass(slots=True)
class Held:
    """A run that this process executes; its session is there once it was prepared."""

    claim: Claim
    task: "asyncio.Task[None] | None" = None
    session: RunSession | None = None
    why: Cancelled | LeaseLost | None = None

    def began(self, session: RunSession) -> None:
        """Its session is there; what was heard before is told now."""
        self.session = session
        if self.why is not None:
            session.end(self.why)

    def end(self, why: Cancelled | LeaseLost) -> None:
        """Let nothing more begin in it."""
        self.why = self.why or why
        if self.session is not None:
            self.session.end(why)


@dataclass(slots=True)
class Hands:
    """What one process has in hand, by the token of its claim."""

    held: dict[str, Held] = field(default_factory=dict)

    def take(self, claim: Claim) -> Held:
        """Begin to hold a run that was claimed."""
        made = self.held[claim.token] = Held(claim)
        return made

    def drop(self, claim: Claim) -> None:
        """Hold it no more."""
        self.held.pop(claim.token, None)

    @property
    def claims(self) -> list[Claim]:
        """Of every run in hand."""
        return [held.claim for held in self.held.values()]

    def end_all(self, why: LeaseLost) -> None:
        """Let nothing more begin in any of them."""
        for held in list(self.held.values()):
            held.end(why)


async def beat_all(
    claims: Sequence[Claim], lease_s: float = LEASE_S
) -> dict[str, Cancelled | LeaseLost]:
    """`beat` for all; a lease that cannot be extended costs no other."""
    try:
        return await db.transaction(beat, claims, lease_s)
    except Exception as fault:  # noqa: BLE001 - each by itself says what it was
        part("lease", fault)
    ending: dict[str, Cancelled | LeaseLost] = {}
    for claim in claims:
        with _LEASES.trying((claim.tenant_id, claim.run_id)):
            ending |= await db.transaction(beat, [claim], lease_s)
    return ending


def beat(
    work: Work, claims: Sequence[Claim], lease_s: float = LEASE_S
) -> dict[str, Cancelled | LeaseLost]:
    """Extend the leases of runs; by token, those that must end, and why."""
    ending: dict[str, Cancelled | LeaseLost] = {}
    for claim in claims:
        found = rows.BEAT.run(
            work.connection,
            lease_s=lease_s,
            tenant_id=claim.tenant_id,
            run_id=claim.run_id,
            token=claim.token,
        ).first()
        if found is None:
            ending[claim.token] = LeaseLost()
        elif found.cancel_requested_at is not None:
            ending[claim.token] = Cancelled(found.reason or "by_user")
    return ending


def heard(hands: Hands, ending: dict[str, Cancelled | LeaseLost]) -> None:
    """End what has to end."""
    for token, why in ending.items():
        if (held := hands.held.get(token)) is not None:
            held.end(why)


def own_runs(hands: Hands) -> Collection[tuple[str, str]]:
    """Keys of the runs in hand: a process never recovers one that it executes itself."""
    return {(claim.tenant_id, claim.run_id) for claim in hands.claims}
