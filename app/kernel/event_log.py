"""The durable event log: what happened in a tenant, numbered without a gap in the order of commits.

A position reads `<epoch>:<seq>`. The epoch changes when the log is rebuilt, so that a position of
an older life is never mistaken for one of this (DESIGN, 9).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple, Self, cast

from sqlmodel import Session, func, select

from app.kernel import clock, db, ids, json
from app.kernel.db import Work
from app.kernel.due import Due
from app.kernel.events import Broadcast
from app.kernel.models import EventHead, LoggedEvent
from app.kernel.prepared import Prepared, is_sqlite

PAGE = 256  # events read at once
_DUE = Due("event_retention")

_TAKE_SEQ = Prepared(
    "UPDATE event_head SET seq = seq + :number WHERE tenant_id = :tenant_id RETURNING seq"
)
_OPEN = Prepared(
    "INSERT INTO event_head (tenant_id, epoch, seq, oldest_seq) VALUES (:tenant_id, :epoch, 0, 1) "
    "ON CONFLICT (tenant_id) DO NOTHING"
)
_WRITTEN = (
    *("tenant_id", "seq", "at", "kind", "subject", "user_id", "permission", "org_id", "owner_id"),
    *("topic", "data"),
)
_INSERT = Prepared(
    f"INSERT INTO event ({', '.join(_WRITTEN)}) "  # noqa: S608 - our columns
    f"VALUES ({', '.join(':' + name for name in _WRITTEN)})"
)
_TAKE_AND_INSERT = Prepared(  # for PostgreSQL alone: a round trip less while the head is locked
    "WITH taken AS ("  # noqa: S608 - our columns
    "UPDATE event_head SET seq = seq + 1 WHERE tenant_id = :tenant_id RETURNING seq) "
    f"INSERT INTO event ({', '.join(_WRITTEN)}) "
    f"SELECT {', '.join('taken.seq' if name == 'seq' else ':' + name for name in _WRITTEN)} "
    "FROM taken RETURNING seq"
)
_HOLD = Prepared("UPDATE event_head SET seq = seq WHERE tenant_id = :tenant_id")
_FORGET = Prepared("DELETE FROM event WHERE tenant_id = :tenant_id AND seq < :oldest_seq")
_NOTE_OLDEST = Prepared(
    "UPDATE event_head SET oldest_seq = :oldest_seq WHERE tenant_id = :tenant_id"
)
_NEW_EPOCH = Prepared("UPDATE event_head SET epoch = :epoch WHERE tenant_id = :tenant_id")

_SINCE = Prepared(
    f"SELECT {', '.join(_WRITTEN)} FROM event "  # noqa: S608 - our columns
    "WHERE tenant_id = :tenant_id AND seq > :seq ORDER BY seq LIMIT :limit"
)


class _Read(NamedTuple):
    """A row of the log with its columns in the order of `_WRITTEN`."""

    tenant_id: str
    seq: int
    at: datetime
    kind: str
    subject: str
    user_id: str | None
    permission: str | None
    org_id: str | None
    owner_id: str | None
    topic: str | None
    data: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Logged(Broadcast):
    """An event of this number is in the log; whoever streams reads on."""

    seq: int


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a tenant's log: everything up to `seq` is known."""

    epoch: str
    seq: int

    def __str__(self) -> str:
        return f"{self.epoch}:{self.seq}"

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """The position `text` names, or None where it names none."""
        epoch, _, seq = text.partition(":")
        if text == str(START):
            return cls("", 0)
        if not ids.is_ulid(epoch) or not (seq.isascii() and seq.isdigit() and len(seq) <= 18):
            return None
        return cls(epoch, int(seq))


START = Position("", 0)  # before the first event of all


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """An event that is about to be logged; for whom it is, `append` says."""

    kind: str
    subject: str
    data: dict[str, Any]
    user_id: str | None = None
    permission: str | None = None
    org_id: str | None = None
    owner_id: str | None = None
    topic: str | None = None


@dataclass(frozen=True, slots=True)
class Gap:
    """Events are missing after the position asked for: look at everything anew, go on from `at`."""

    at: Position


def append(
    work: Work,
    tenant_id: str,
    kind: str,
    subject: str,
    data: dict[str, Any],
    user_id: str | None = None,
    permission: str | None = None,
    org_id: str | None = None,
    owner_id: str | None = None,
    topic: str | None = None,
) -> int:
    """Log one event in this transaction; returns its number.

    With `user_id` it is for that user alone, with `permission` for whoever holds it, with both for
    that user while they hold it. With `org_id` and `owner_id` it tells of a record of theirs, and
    is for those whose `permission` reaches it. With `topic`, the id of a conversation, it is for
    those who take part in that. Other writers of the tenant wait until this unit is
    over.
    """
    said = Said(
        kind=kind,
        subject=subject,
        data=data,
        user_id=user_id,
        permission=permission,
        org_id=org_id,
        owner_id=owner_id,
        topic=topic,
    )
    return append_all(work, tenant_id, (said,))


def append_all(work: Work, tenant_id: str, events: Sequence[Said]) -> int:
    """Log several events of a tenant, at least one, in their order; returns the last number."""
    now = clock.now()
    rows = [
        {
            "tenant_id": tenant_id,
            "at": now,
            "kind": each.kind,
            "subject": each.subject,
            "user_id": each.user_id,
            "permission": each.permission,
            "org_id": each.org_id,
            "owner_id": each.owner_id,
            "topic": each.topic,
            "data": each.data,
        }
        for each in events
    ]
    last = _write_one(work, rows[0]) if len(rows) == 1 else _write_all(work, tenant_id, rows)
    work.announce(Logged(tenant_id=tenant_id, seq=last))
    return last


def _write_one(work: Work, row: dict[str, Any]) -> int:
    if not is_sqlite(work.connection):
        taken = _TAKE_AND_INSERT.run_with(work.connection, row).scalar()
        if taken is not None:
            return int(taken)
    seq = _take(work, row["tenant_id"], 1)
    _INSERT.run_with(work.connection, {**row, "seq": seq})
    return seq


def _write_all(work: Work, tenant_id: str, rows: Sequence[dict[str, Any]]) -> int:
    last = _take(work, tenant_id, len(rows))
    first = last - len(rows) + 1
    numbered = [{**row, "seq": seq} for seq, row in enumerate(rows, first)]
    _INSERT.run_many(work.connection, numbered)
    return last


def _take(work: Work, tenant_id: str, number: int) -> int:
    """The last of so many numbers that are this unit's."""
    taken = _TAKE_SEQ.run(work.connection, tenant_id=tenant_id, number=number).scalar()
    if taken is None:
        work.session.flush()  # the tenant may be as new as its log
        _OPEN.run(work.connection, tenant_id=tenant_id, epoch=ids.ulid())
        taken = _TAKE_SEQ.run(work.connection, tenant_id=tenant_id, number=number).one()[0]
    return int(taken)


def newest(session: Session, tenant_id: str) -> Position:
    """Where the log stands; an empty epoch while nothing was ever logged."""
    head = _head(session, tenant_id)
    return Position(head[0], head[1]) if head else START


def since(
    session: Session, tenant_id: str, epoch: str, seq: int, limit: int = PAGE
) -> list[LoggedEvent] | Gap:
    """The events after a position, at most `limit`; a `Gap` where some of them cannot be told."""
    head = _head(session, tenant_id)
    if head is None:
        return [] if not epoch and seq == 0 else Gap(START)
    now_epoch, now_seq, oldest_seq = head
    if not epoch and seq == 0 and oldest_seq == 1:
        epoch = now_epoch  # asked before the first event, so nothing is missing
    if epoch != now_epoch or not oldest_seq - 1 <= seq <= now_seq:
        return Gap(Position(now_epoch, now_seq))
    found = _SINCE.run(session.connection(), tenant_id=tenant_id, seq=seq, limit=limit)
    # rows of the same names, not objects that a session watches: many are read, none is changed
    return cast(list[LoggedEvent], [_read(*row) for row in found])


def _read(tenant_id: str, seq: int, at: Any, *rest: Any) -> _Read:
    return _Read._make((tenant_id, seq, _moment(at), *rest[:-1], json.of_column(rest[-1])))


def _moment(stored: datetime | str) -> datetime:
    """A time as its column holds it: text in SQLite, a value in PostgreSQL."""
    if isinstance(stored, str):
        return datetime.fromisoformat(f"{stored}+00:00")
    return stored.replace(tzinfo=UTC) if stored.tzinfo is None else stored.astimezone(UTC)


def _head(session: Session, tenant_id: str) -> tuple[str, int, int] | None:
    # columns, not the object: what a unit wrote by prepared SQL must be seen
    query = select(EventHead.epoch, EventHead.seq, EventHead.oldest_seq)
    return session.exec(query.where(EventHead.tenant_id == tenant_id)).first()


def trim(before: datetime) -> int:
    """Forget what was logged before `before`, in every tenant; returns how many events went.

    A unit for each tenant, so that nobody's writers wait for the rows of all. It waits for the
    database: for threads, not for a unit or the event loop.
    """
    gone = 0
    for key in _DUE.ready((tenant_id,) for tenant_id in db.read_now(_tenants)):
        with _DUE.trying(key):
            gone += db.transact_now(_trim, *key, before)
    return gone


def _tenants(session: Session) -> Sequence[str]:
    return session.exec(select(EventHead.tenant_id).order_by(EventHead.tenant_id)).all()


def _trim(work: Work, tenant_id: str, before: datetime) -> int:
    """The clock may have been set back meanwhile: nothing goes that follows an event to be kept."""
    _HOLD.run(work.connection, tenant_id=tenant_id)
    kept = select(func.min(LoggedEvent.seq)).where(
        LoggedEvent.tenant_id == tenant_id, LoggedEvent.at >= before
    )
    newest = select(EventHead.seq).where(EventHead.tenant_id == tenant_id)
    first_kept = work.session.exec(kept).one()
    oldest = first_kept if first_kept is not None else work.session.exec(newest).one() + 1
    forgotten = _FORGET.run(work.connection, tenant_id=tenant_id, oldest_seq=oldest).rowcount
    if forgotten:
        _NOTE_OLDEST.run(work.connection, tenant_id=tenant_id, oldest_seq=oldest)
    return forgotten


def new_epoch(work: Work, tenant_id: str) -> None:
    """Make every position handed out so far unknown, as after a restore."""
    _NEW_EPOCH.run(work.connection, tenant_id=tenant_id, epoch=ids.ulid())
    seq = select(EventHead.seq).where(EventHead.tenant_id == tenant_id)
    head = work.session.exec(seq).first()
    if head is not None:
        work.announce(Logged(tenant_id=tenant_id, seq=head))
