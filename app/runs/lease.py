"""Who owns a running run: the token of its claim, and nothing else (RUN-52, RUN-63).

Every write of a run's execution names its claim; a worker that was replaced writes nothing more.
"""

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import Connection

from app.commands.errors import CallerGone
from app.kernel.db import Work
from app.kernel.errors import Busy
from app.kernel.prepared import Prepared
from app.runs.errors import Cancelled, LeaseLost

BY_USER = "by_user"


class _Holding(Prepared):
    """On PostgreSQL it also says in which transaction: its commit may go unheard."""

    def __init__(self, sql: str) -> None:
        super().__init__(sql)
        self._sqlite += ", NULL AS mark"
        self._postgresql += ", txid_current()::text AS mark"


_HOLD = _Holding(
    "UPDATE run SET version = version + 1 WHERE tenant_id = :tenant_id AND id = :run_id "
    "AND claim_token = :token AND state = 'running' RETURNING cancel_requested_at, reason"
)
_FATE = Prepared("SELECT txid_status(CAST(:mark AS bigint))")


_held: WeakKeyDictionary[Work, tuple["Claim", Any]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Claim:
    """A run, and the token by which one worker has it."""

    tenant_id: str
    run_id: str
    token: str


def hold(work: Work, claim: Claim) -> None:
    """Go on only while the run is ours; on PostgreSQL its row is held until the commit.

    Raises:
        LeaseLost: it was taken over, or is over.
    """
    _hold(work, claim)


def hold_unless_stopped(work: Work, claim: Claim) -> None:
    """The same, before something happens that a stop is to prevent.

    Raises:
        LeaseLost: it was taken over, or is over.
        Cancelled: somebody asked it to stop, or what it stands on is gone; it says which.
    """
    held = _hold(work, claim)
    if held.cancel_requested_at is not None:
        raise Cancelled(held.reason or BY_USER)


def mark(work: Work) -> str | None:
    """By what to ask later whether a unit that held a run was committed; None: by nothing."""
    held = _held.get(work)
    return held[1].mark if held is not None else None


def was_committed(connection: Connection, mark: str) -> bool:
    """Whether the unit of a mark was committed, though its connection broke.

    Raises:
        Busy: the server does not know yet.
    """
    fate = _FATE.run(connection, mark=mark).scalar()
    if fate == "in progress":
        raise Busy
    return bool(fate == "committed")


def guard(work: Work, claim: Claim) -> None:
    """The last step of a command that a run calls: a replaced worker's rolls back (RUN-65).

    Raises:
        CallerGone: the run is not ours any more.
    """
    try:
        _hold(work, claim)
    except LeaseLost as lost:
        raise CallerGone from lost


def _hold(work: Work, claim: Claim) -> Any:
    """Its row, which nobody else changes before the commit: a unit asks for it once."""
    held = _held.get(work)
    if held is not None and held[0] is claim:
        return held[1]
    found = _HOLD.run(
        work.connection, tenant_id=claim.tenant_id, run_id=claim.run_id, token=claim.token
    ).first()
    if found is None:
        raise LeaseLost
    _held[work] = (claim, found)
    return found
