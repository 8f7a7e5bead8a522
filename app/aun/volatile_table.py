"""Volatile messages of replicas that share PostgreSQL: in a table that is not logged."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection

from app.aun.fleeting import Fleeting
from app.kernel import clock, ids, json
from app.kernel.prepared import Prepared

_COLUMNS = (
    "tenant_id, receiver_aid, number, epoch, sender_aid, sender_device, message_id, type, payload, "
    "envelope, need_render, to_device, sent_ms, expires_ms, size, has"
)
_EPOCH = Prepared("SELECT epoch FROM aun_volatile_head WHERE tenant_id = :tenant_id AND aid = :aid")
_TAKE = Prepared(  # the row stays locked: a lower number never appears after a higher one
    "INSERT INTO aun_volatile_head (tenant_id, aid, epoch, number) "
    "VALUES (:tenant_id, :aid, :epoch, 1) ON CONFLICT (tenant_id, aid) DO UPDATE "
    "SET number = aun_volatile_head.number + 1 RETURNING number, epoch"
)
_ADD = Prepared(
    f"INSERT INTO aun_volatile ({_COLUMNS}) VALUES (:tenant_id, :receiver_aid, :number, :epoch, "  # noqa: S608 - ours
    ":sender_aid, :sender_device, :message_id, :type, :payload, :envelope, :need_render, "
    ":to_device, :sent_ms, :expires_ms, :size, :has)"
)
_CLEAR = Prepared(
    "DELETE FROM aun_volatile WHERE tenant_id = :tenant_id AND sender_aid = :sender_aid "
    "AND message_id = :message_id AND expires_ms <= :now_ms"
)
_KNOWN = Prepared(
    f"SELECT {_COLUMNS} FROM aun_volatile WHERE tenant_id = :tenant_id "  # noqa: S608 - ours
    "AND sender_aid = :sender_aid AND message_id = :message_id AND expires_ms > :now_ms"
)
_WAITING = Prepared(
    "SELECT count(*) AS held, COALESCE(sum(size), 0) AS size FROM aun_volatile "
    "WHERE tenant_id = :tenant_id AND receiver_aid = :aid"
)
_LIVE = Prepared(
    f"SELECT {_COLUMNS} FROM aun_volatile WHERE tenant_id = :tenant_id "  # noqa: S608 - ours
    "AND receiver_aid = :aid AND number > :after AND expires_ms > :now_ms ORDER BY number"
)
_MARK = Prepared(
    "UPDATE aun_volatile SET has = has || to_jsonb(CAST(:slot AS text)) "
    "WHERE tenant_id = :tenant_id AND receiver_aid = :aid AND number = :number "
    "AND NOT has @> to_jsonb(CAST(:slot AS text))"
)
_DROP = Prepared("DELETE FROM aun_volatile WHERE expires_ms <= :now_ms")


def epoch(connection: Connection, tenant_id: str, aid: str) -> str:
    """The life of the store, for this receiver; empty where nothing came since the last loss."""
    return _EPOCH.run(connection, tenant_id=tenant_id, aid=aid).scalar() or ""


def known(
    connection: Connection, tenant_id: str, sender_aid: str, message_id: str
) -> Fleeting | None:
    """What this sender sent under this id, while it lives."""
    key = {"tenant_id": tenant_id, "sender_aid": sender_aid, "message_id": message_id}
    now_ms = int(clock.now().timestamp() * 1000)
    found = _KNOWN.run_with(connection, key | {"now_ms": now_ms}).first()
    return _read(found) if found else None


def waiting(connection: Connection, tenant_id: str, aid: str) -> tuple[int, int]:
    """How many a receiver has, and their bytes."""
    found = _WAITING.run(connection, tenant_id=tenant_id, aid=aid).one()
    return found.held, int(found.size)


def add(connection: Connection, made: Fleeting) -> None:
    """Keep one; it gets its number and epoch."""
    key = {"tenant_id": made.tenant_id, "sender_aid": made.sender_aid}
    _CLEAR.run_with(connection, {**key, "message_id": made.message_id, "now_ms": made.sent_ms})
    taken = _TAKE.run(
        connection, tenant_id=made.tenant_id, aid=made.receiver_aid, epoch=ids.ulid()
    ).one()
    made.number, made.epoch = taken.number, taken.epoch
    _ADD.run(
        connection,
        tenant_id=made.tenant_id,
        receiver_aid=made.receiver_aid,
        number=made.number,
        epoch=made.epoch,
        sender_aid=made.sender_aid,
        sender_device=made.sender_device,
        message_id=made.message_id,
        type=made.type,
        payload=made.payload,
        envelope=made.envelope,
        need_render=made.need_render,
        to_device=made.to_device,
        sent_ms=made.sent_ms,
        expires_ms=made.expires_ms,
        size=made.size,
        has=[],
    )


def live(
    connection: Connection, tenant_id: str, aid: str, after: int, now_ms: int
) -> Sequence[Fleeting]:
    """Those of a receiver after a number, in order."""
    found = _LIVE.run(connection, tenant_id=tenant_id, aid=aid, after=after, now_ms=now_ms)
    return [_read(each) for each in found]


def mark(connection: Connection, tenant_id: str, aid: str, number: int, slot: str) -> None:
    """Note that a device and slot has one."""
    _MARK.run(connection, tenant_id=tenant_id, aid=aid, number=number, slot=slot)


def drop(connection: Connection, now_ms: int) -> None:
    """Let go of what expired."""
    _DROP.run(connection, now_ms=now_ms)


def _read(found: Any) -> Fleeting:
    return Fleeting(
        tenant_id=found.tenant_id,
        receiver_aid=found.receiver_aid,
        number=found.number,
        epoch=found.epoch,
        sender_aid=found.sender_aid,
        sender_device=found.sender_device,
        message_id=found.message_id,
        type=found.type,
        payload=json.of_column(found.payload),
        envelope=found.envelope,
        need_render=bool(found.need_render),
        to_device=found.to_device,
        sent_ms=found.sent_ms,
        expires_ms=found.expires_ms,
        has=set(json.of_column(found.has)),
        is_told=True,  # it is committed
    )
