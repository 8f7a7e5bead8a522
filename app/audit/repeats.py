"""Refusals that come again and again are counted, so that nobody can fill the trail (SEC-74).

Of the same refusal (who, through which door, what, why) the first of a minute are entries of their
own; the rest of the minute is one more entry, which says how many they were.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Any

from sqlmodel import Session, col, select

from app.audit import chain, trail
from app.audit.models import AuditRepeat
from app.audit.trail import NewEntry
from app.kernel import clock, ids, json
from app.kernel.db import Work
from app.kernel.due import Due
from app.kernel.prepared import Prepared

OWN = 5  # refusals of one kind a minute that are entries of their own
WINDOW = timedelta(minutes=1)

_DUE = Due("audit_repeat")

_COUNT = Prepared(
    "INSERT INTO audit_repeat (tenant_id, key_sha256, began_at, seen, entry) "
    "VALUES (:tenant_id, :key_sha256, :began_at, 1, :entry) "
    "ON CONFLICT (tenant_id, key_sha256) DO UPDATE SET seen = audit_repeat.seen + 1 "
    "RETURNING seen, began_at"
)
_CLOSE = Prepared(
    "DELETE FROM audit_repeat WHERE tenant_id = :tenant_id AND key_sha256 = :key_sha256 "
    "RETURNING seen"
)


def append(work: Work, entry: NewEntry) -> int | None:
    """Write a refusal, or only count it; returns the number of its entry if it has one."""
    key = _key(entry)
    open_window = work.session.exec(
        select(AuditRepeat.began_at).where(
            AuditRepeat.tenant_id == entry.tenant_id, AuditRepeat.key_sha256 == key
        )
    ).first()
    if open_window is not None and _is_over(open_window):
        _close(work, entry.tenant_id, key)
    trail.open_chain(work, entry.tenant_id)  # the tenant may be new
    seen = _COUNT.run(
        work.connection,
        tenant_id=entry.tenant_id,
        key_sha256=key,
        began_at=clock.now(),
        entry=_kept(entry),
    ).one()[0]
    return trail.append(work, entry) if seen <= OWN else None


def sweep() -> int:
    """Write the entries about minutes that are over; once a minute. Returns how many there were.

    It waits for the database: for threads, not for a unit or the event loop.
    """
    return _DUE.together_now(close_windows, _over)


def close_windows(work: Work, only: tuple[str, ...] | None = None) -> int:
    """Write the entries about minutes that are over, or about the one of a key; how many."""
    over = [only] if only else _over(work.session)
    return sum(_close(work, tenant_id, key) for tenant_id, key in over)


def _over(session: Session, _more: int = 0) -> Sequence[tuple[str, ...]]:
    query = (
        select(AuditRepeat.tenant_id, AuditRepeat.key_sha256)
        .where(col(AuditRepeat.began_at) <= clock.now() - WINDOW)
        .order_by(AuditRepeat.tenant_id, AuditRepeat.key_sha256)
    )
    return session.exec(query).all()


def _close(work: Work, tenant_id: str, key: str) -> bool:
    kept = work.session.exec(
        select(AuditRepeat.entry).where(
            AuditRepeat.tenant_id == tenant_id, AuditRepeat.key_sha256 == key
        )
    ).first()
    seen = _CLOSE.run(work.connection, tenant_id=tenant_id, key_sha256=key).scalar()
    if kept is None or seen is None or seen <= OWN:
        return False
    trail.append(work, _about(tenant_id, dict(kept), repeats=seen - OWN))
    return True


def _about(tenant_id: str, kept: dict[str, Any], *, repeats: int) -> NewEntry:
    document = {"repeats": repeats, "within_s": int(WINDOW.total_seconds())}
    return NewEntry(
        tenant_id=tenant_id,
        call_id=ids.ulid(),
        input_redacted=document,
        input_digest=hashlib.sha256(json.dumps_sorted(document)).hexdigest(),
        **kept,
    )


def _kept(entry: NewEntry) -> dict[str, Any]:
    """What all the repeats share; which thing each of them was about does not stand in it."""
    shared = replace(entry, input_redacted=None, input_digest=None, target_id=None, trace_id=None)
    dropped = {"tenant_id", "call_id", "at", "approval_id"}
    return {
        name: chain.plain(value)
        for name, value in asdict(shared).items()
        if value is not None and name not in dropped
    }


def _key(entry: NewEntry) -> str:
    # nothing that the caller is free to choose, or each repeat would be the first of its kind
    parts = [
        entry.command,
        entry.stage,
        entry.reason,
        entry.channel,
        entry.user_id,
        entry.agent_id,
        entry.target_type,
    ]
    return hashlib.sha256(json.dumps(parts)).hexdigest()


def _is_over(began_at: datetime) -> bool:
    return clock.now() - began_at >= WINDOW
