"""The rows of live connections: slots, evictions, limits, presence over all replicas (3.1)."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import delete, update
from sqlmodel import Session, col, select

from app.aun import queries
from app.aun.errors import BadParams, NotAdmitted, Throttled
from app.aun.events import PresenceChanged
from app.aun.models import Identity, LiveConnection
from app.aun.outgoing import Live
from app.aun.presence import SILENT
from app.kernel import clock, db, ids
from app.kernel.db import Work
from app.kernel.events import Broadcast

LONG, SHORT, CONSOLE = "long", "short", "console"
SHORT_PER_KEY, PER_AID = 10, 100

replica = ids.ulid()  # this process


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced(Broadcast):
    """A newer long connection took the place of these."""

    ids: tuple[str, ...]
    by: str


def opened(work: Work, live: Live) -> None:
    """Write a new connection down; an older long one of the same key has to go.

    Raises:
        NotAdmitted: the AID was shut out meanwhile.
        Throttled: the key or the AID has as many as it may have.
        BadParams: the AID's other connections declared another delivery mode.
    """
    now = clock.now()
    work.session.get(Identity, (live.tenant_id, live.aid), with_for_update=True)  # one at a time
    if not stands(work.session, live):
        raise NotAdmitted("aid is blocked", retryable=False)
    others = _of_aid(work.session, live.tenant_id, live.aid)
    mode = "queue" if live.is_queue else "fanout"
    same = [
        row
        for row in others
        if row.device_id == live.device_id and row.slot_key == live.slot_key and row.kind != CONSOLE
    ]
    replaced = [row for row in same if row.kind == LONG] if live.is_long else []
    rest = [row for row in others if row not in replaced]
    if any(row.delivery_mode != mode for row in rest if row.kind != CONSOLE):
        raise BadParams("delivery_mode_conflict", retryable=False)
    shorts = sum(row.kind == SHORT for row in same)
    if len(rest) >= PER_AID or (not live.is_long and shorts >= SHORT_PER_KEY):
        raise Throttled("too many connections")
    if replaced:
        gone = tuple(row.id for row in replaced)
        _delete(work, live.tenant_id, gone)
        work.announce(Replaced(tenant_id=live.tenant_id, ids=gone, by=live.id))
    work.session.add(
        LiveConnection(
            tenant_id=live.tenant_id,
            id=live.id,
            aid=live.aid,
            device_id=live.device_id,
            slot_key=live.slot_key,
            kind=LONG if live.is_long else SHORT,
            delivery_mode=mode,
            replica=replica,
            connected_at=now,
            seen_at=now,
        )
    )
    if not others:
        work.announce(PresenceChanged(tenant_id=live.tenant_id, aid=live.aid, is_online=True))


def stands(session: Session, live: Live) -> bool:
    """Whether its AID may be connected now."""
    return queries.stands(session.connection(), live.tenant_id, live.aid)


def looked_in(work: Work, tenant_id: str, aid: str) -> str:
    """A person's console stream is open: they are there. Returns the row's id for `closed`."""
    row_id, now = ids.ulid(), clock.now()
    if not _of_aid(work.session, tenant_id, aid):
        work.announce(PresenceChanged(tenant_id=tenant_id, aid=aid, is_online=True))
    work.session.add(
        LiveConnection(
            tenant_id=tenant_id,
            id=row_id,
            aid=aid,
            device_id=CONSOLE,
            slot_key="default",
            kind=CONSOLE,
            replica=replica,
            connected_at=now,
            seen_at=now,
        )
    )
    return row_id


def closed(work: Work, tenant_id: str, connection_id: str, aid: str) -> None:
    """It is gone; so is its AID, if it was the last one."""
    _delete(work, tenant_id, (connection_id,))
    if not _of_aid(work.session, tenant_id, aid):
        work.announce(PresenceChanged(tenant_id=tenant_id, aid=aid, is_online=False))


def forget_all() -> None:
    """The server starts: on SQLite nobody else holds connections, so what is there is left over."""
    if db.is_sqlite():
        db.transact_now(_forget)


def seen() -> None:
    """Say that this process still holds its connections, and forget those of silent ones."""
    db.transact_now(_seen)


def _forget(work: Work) -> None:
    work.session.execute(delete(LiveConnection))


def _seen(work: Work) -> None:
    now = clock.now()
    mine = update(LiveConnection).where(col(LiveConnection.replica) == replica)
    work.session.execute(mine.values(seen_at=now))
    work.session.execute(delete(LiveConnection).where(col(LiveConnection.seen_at) < now - SILENT))


def _delete(work: Work, tenant_id: str, connection_ids: Sequence[str]) -> None:
    gone = delete(LiveConnection).where(
        col(LiveConnection.tenant_id) == tenant_id, col(LiveConnection.id).in_(connection_ids)
    )
    work.session.execute(gone)


def _of_aid(session: Session, tenant_id: str, aid: str) -> Sequence[LiveConnection]:
    query = select(LiveConnection).where(
        LiveConnection.tenant_id == tenant_id,
        LiveConnection.aid == aid,
        LiveConnection.seen_at > clock.now() - SILENT,
    )
    return session.exec(query).all()
