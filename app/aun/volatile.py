"""Messages that live for seconds: no number of an inbox, no history, gone with a restart (5.6).

SQLite has one process, so its memory holds them. Replicas on PostgreSQL share a table that is not
logged. A cursor names the life of the store it is from; after a loss there is another.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sqlalchemy import Connection

from app.aun import volatile_memory, volatile_table
from app.aun.caller import Caller
from app.aun.errors import BadParams, Throttled
from app.aun.fleeting import Fleeting, row
from app.aun.shapes import Reader
from app.kernel import clock

MOST_WAITING, MOST_BYTES = 1_000, 16 << 20  # of one receiver


class Store(Protocol):
    """Where they are kept."""

    def epoch(self, connection: Connection, tenant_id: str, aid: str) -> str:
        """The life of the store."""

    def known(
        self, connection: Connection, tenant_id: str, sender_aid: str, message_id: str
    ) -> Fleeting | None:
        """What this sender sent under this id, while it lives."""

    def waiting(self, connection: Connection, tenant_id: str, aid: str) -> tuple[int, int]:
        """How many live ones a receiver has, and their bytes."""

    def add(self, connection: Connection, made: Fleeting) -> None:
        """Keep one; it gets its number and epoch."""

    def live(
        self, connection: Connection, tenant_id: str, aid: str, after: int, now_ms: int
    ) -> Sequence[Fleeting]:
        """Those of a receiver after a number, in order."""

    def mark(
        self, connection: Connection, tenant_id: str, aid: str, number: int, slot: str
    ) -> None:
        """Note that a device and slot has one."""

    def drop(self, connection: Connection, now_ms: int) -> None:
        """Let go of what expired."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a slot did not acknowledge yet.

    Attributes:
        cursor: of the last row here.
    """

    rows: list[dict[str, Any]]
    has_more: bool
    cursor: str | None


def keep(connection: Connection, made: Fleeting) -> tuple[Fleeting, bool]:
    """Keep a message, or find the one of the same id; and whether it is to be told.

    Raises:
        Throttled: its receiver has too many waiting.
    """
    store = _store(connection)
    before = store.known(connection, made.tenant_id, made.sender_aid, made.message_id)
    if before is not None:
        return before, not before.is_told
    count, size = store.waiting(connection, made.tenant_id, made.receiver_aid)
    if count >= MOST_WAITING or size + made.size > MOST_BYTES:
        raise Throttled("too many volatile messages wait for this receiver")
    store.add(connection, made)
    return made, True


def one(connection: Connection, tenant_id: str, aid: str, cursor: str) -> Fleeting | None:
    """The message at a cursor, if it lives."""
    number = _number(connection, tenant_id, aid, cursor)
    found = _store(connection).live(connection, tenant_id, aid, number - 1, _now_ms())
    return found[0] if found and found[0].number == number else None


def page(
    connection: Connection,
    caller: Caller,
    sender_aid: str,
    after: str | None,
    limit: int,
    most_bytes: int,
    *,
    is_alone: bool,
) -> Waiting:
    """What waits for the caller's slot from a sender, after a cursor.

    Where it is alone in its answer one row fits in any case, or the reader would never get it.

    Raises:
        BadParams: the cursor is of another life of the store; the client starts anew.
    """
    rows: list[dict[str, Any]] = []
    size, cursor = 0, after
    for each in _waiting(connection, caller, after):
        if each.sender_aid != sender_aid:
            continue
        size += each.size
        if len(rows) >= limit or (size > most_bytes and (rows or not is_alone)):
            return Waiting(rows, True, cursor)
        rows.append(row(each))
        cursor = each.cursor
    return Waiting(rows, False, cursor)


def senders(connection: Connection, caller: Caller) -> set[str]:
    """Of whom something waits for the caller's slot."""
    return {each.sender_aid for each in _waiting(connection, caller, None)}


def acknowledge(
    connection: Connection,
    caller: Caller,
    sender_aid: str,
    cursors: Collection[str],
    message_ids: Collection[str],
) -> dict[str, list[str]]:
    """Note that the caller's slot has some; those that are gone are named, and no error."""
    told: dict[str, list[str]] = {"accepted": [], "expired": []}
    store = _store(connection)
    live = store.live(connection, caller.tenant_id, caller.aid, 0, _now_ms())
    by_name = {each.cursor: each for each in live} | {each.message_id: each for each in live}
    for name in [*cursors, *message_ids]:
        found = by_name.get(name)
        if found is None or found.sender_aid != sender_aid:
            told["expired"].append(name)
            continue
        told["accepted"].append(name)
        store.mark(connection, caller.tenant_id, caller.aid, found.number, _slot(caller))
    return told


def expire(connection: Connection) -> None:
    """Let go of what expired; once a minute."""
    _store(connection).drop(connection, _now_ms())


def _waiting(connection: Connection, caller: Caller, after: str | None) -> list[Fleeting]:
    number = _number(connection, caller.tenant_id, caller.aid, after) if after else 0
    reader, slot = Reader.of(caller), _slot(caller)
    live = _store(connection).live(connection, caller.tenant_id, caller.aid, number, _now_ms())
    return [each for each in live if slot not in each.has and reader.may_have(each)]


def _number(connection: Connection, tenant_id: str, aid: str, cursor: str) -> int:
    kind, _, rest = cursor.partition(":")
    epoch, _, number = rest.partition(":")
    is_number = number.isascii() and number.isdigit() and len(number) < 16
    if (
        kind != "v1"
        or not is_number
        or epoch != _store(connection).epoch(connection, tenant_id, aid)
    ):
        raise BadParams("volatile cursor epoch mismatch")
    return int(number)


def _slot(caller: Caller) -> str:
    return f"{caller.device_id}\n{caller.slot_key}"


def _now_ms() -> int:
    return int(clock.now().timestamp() * 1000)


def _store(connection: Connection) -> Store:
    return volatile_table if connection.dialect.name == "postgresql" else volatile_memory
