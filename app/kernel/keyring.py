"""Rings of symmetric keys: the first seals and signs, all open and verify (SEC-82).

A ring is prepared once at start and kept in memory; `reload` after a rotation. One that units hold
is read by the first that needs it, and again after a rotation, in whichever process that was.
"""

import hashlib
import hmac
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from sqlmodel import Session, col, select

from app.kernel import clock, db, events, sealing
from app.kernel.db import Work
from app.kernel.events import Broadcast
from app.kernel.models import SealedKey
from app.kernel.prepared import Prepared

ACTIVE, RETIRING, RETIRED = "active", "retiring", "retired"

_INSERT_FIRST = Prepared(
    "INSERT INTO sealed_key (purpose, number, sealed, state, created_at, retired_at) "
    "VALUES (:purpose, :number, :sealed, :state, :created_at, :retired_at) "
    "ON CONFLICT (purpose, number) DO NOTHING"
)

_rings: dict[str, list[bytes]] = {}
_held: set[str] = set()  # those that units read for themselves
_ends_listening: list[Callable[[], None]] = []
_lock = threading.Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class RingRotated(Broadcast):
    """A ring has a new first key; a process that holds it for units lets go of what it has."""

    purpose: str


def prepare(purpose: str) -> None:
    """Load the ring of `purpose`, making its first key if there is none; not inside a unit."""
    with _lock:
        if purpose not in _rings:
            _rings[purpose] = db.transact_now(_load_or_make, purpose)


def held(work: Work, purpose: str) -> list[bytes]:
    """The same keys for a unit, which cannot wait for another one; made in it if there is none."""
    found = _rings.get(purpose)
    if found is None:
        found = _load_or_make(work, purpose)
        work.after_commit(partial(_keep, purpose, found))
    return found


def keys(purpose: str) -> list[bytes]:
    """The 32-byte keys of a prepared ring, the one that signs first.

    Raises:
        KeyError: nobody prepared it.
    """
    return _rings[purpose]


def sign(purpose: str, message: str) -> str:
    """HMAC-SHA-256 of `message` under the first key of the ring, hex."""
    return _mac(keys(purpose)[0], message)


def verifies(purpose: str, message: str, mac: str) -> bool:
    """Whether `mac` was made for `message` by a key of the ring that still counts."""
    given = mac.encode()
    return any(hmac.compare_digest(_mac(key, message).encode(), given) for key in keys(purpose))


def rotate(work: Work, purpose: str) -> None:
    """Make a new first key; the old one still opens. `reload` when it is committed."""
    rows = _rows(work.session, purpose)
    for row in rows:
        if row.state == ACTIVE:
            row.state = RETIRING
            row.retired_at = clock.now()
            work.session.add(row)
    _make(work, purpose, max((row.number for row in rows), default=0) + 1)
    work.announce(RingRotated(tenant_id="", purpose=purpose))


def end_retiring(work: Work, purpose: str, before: datetime) -> None:
    """Let keys go that a rotation replaced before `before`."""
    for row in _rows(work.session, purpose):
        if row.state == RETIRING and row.retired_at and row.retired_at < before:
            row.state = RETIRED
            work.session.add(row)


def reload() -> None:
    """Read the prepared rings again, after a rotation here or elsewhere; not inside a unit."""
    with _lock:
        for purpose in list(_rings):
            _rings[purpose] = db.transact_now(_load_or_make, purpose)


def close() -> None:
    """Forget every ring, as the process lets go of its database."""
    with _lock:
        _rings.clear()
        _held.clear()
        while _ends_listening:
            _ends_listening.pop()()


def _keep(purpose: str, loaded: list[bytes]) -> None:
    # on a database thread, which whoever holds the lock may be waiting for: so without it
    _rings.setdefault(purpose, loaded)
    _held.add(purpose)
    if not _ends_listening:
        _ends_listening.append(events.subscribe(RingRotated, _let_go))


def _let_go(rotated: RingRotated) -> None:
    if rotated.purpose in _held:
        _rings.pop(rotated.purpose, None)


def _load_or_make(work: Work, purpose: str) -> list[bytes]:
    rows = _rows(work.session, purpose) or _make_first(work, purpose)
    live = [row for row in rows if row.state in {ACTIVE, RETIRING}]
    live.sort(key=lambda row: (row.state != ACTIVE, -row.number))
    return [sealing.unseal(row.sealed, _label(row)) for row in live]


def _make_first(work: Work, purpose: str) -> list[SealedKey]:
    row = _new(purpose, 1)
    _INSERT_FIRST.run_with(work.connection, row.model_dump())
    return _rows(work.session, purpose)  # somebody else may have been first


def _make(work: Work, purpose: str, number: int) -> SealedKey:
    row = _new(purpose, number)
    work.session.add(row)
    work.session.flush()
    return row


def _new(purpose: str, number: int) -> SealedKey:
    row = SealedKey(
        purpose=purpose, number=number, sealed=b"", state=ACTIVE, created_at=clock.now()
    )
    row.sealed = sealing.seal(sealing.new_key(), _label(row))
    return row


def _rows(session: Session, purpose: str) -> list[SealedKey]:
    query = select(SealedKey).where(SealedKey.purpose == purpose).order_by(col(SealedKey.number))
    return list(session.exec(query))


def _label(row: SealedKey) -> str:
    return f"sealed_key:{row.purpose}:{row.number}"


def _mac(key: bytes, message: str) -> str:
    return hmac.new(key, message.encode(), hashlib.sha256).hexdigest()
