"""Volatile messages of a process that is alone with its database; gone when it ends."""

import threading
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from itertools import count

from sqlalchemy import Connection

from app.aun.fleeting import Fleeting
from app.kernel import clock, ids

_lock = threading.Lock()
_numbers = count(1)
_of_receiver: dict[tuple[str, str], dict[int, Fleeting]] = defaultdict(dict)
_by_id: dict[tuple[str, str, str], Fleeting] = {}


@cache
def _life() -> str:
    return ids.ulid()


def epoch(_connection: Connection, _tenant_id: str, _aid: str) -> str:
    """The life of the store."""
    return _life()


def known(
    _connection: Connection, tenant_id: str, sender_aid: str, message_id: str
) -> Fleeting | None:
    """What this sender sent under this id, while it lives."""
    with _lock:
        found = _by_id.get((tenant_id, sender_aid, message_id))
    is_live = found is not None and found.expires_ms > int(clock.now().timestamp() * 1000)
    return found if is_live else None


def waiting(_connection: Connection, tenant_id: str, aid: str) -> tuple[int, int]:
    """How many a receiver has, and their bytes."""
    with _lock:
        held = list(_of_receiver.get((tenant_id, aid), {}).values())
    return len(held), sum(each.size for each in held)


def add(_connection: Connection, made: Fleeting) -> None:
    """Keep one; it gets its number and epoch."""
    with _lock:
        made.number, made.epoch = next(_numbers), _life()
        _of_receiver[made.tenant_id, made.receiver_aid][made.number] = made
        _by_id[made.tenant_id, made.sender_aid, made.message_id] = made


def live(
    _connection: Connection, tenant_id: str, aid: str, after: int, now_ms: int
) -> Sequence[Fleeting]:
    """Those of a receiver after a number, in order."""
    with _lock:
        held = list(_of_receiver.get((tenant_id, aid), {}).values())
    return [each for each in held if each.number > after and each.expires_ms > now_ms]


def mark(_connection: Connection, tenant_id: str, aid: str, number: int, slot: str) -> None:
    """Note that a device and slot has one."""
    with _lock:
        found = _of_receiver.get((tenant_id, aid), {}).get(number)
        if found is not None:
            found.has.add(slot)


def drop(_connection: Connection, now_ms: int) -> None:
    """Let go of what expired."""
    with _lock:
        for receiver in list(_of_receiver):
            held = _of_receiver[receiver]
            for each in [each for each in held.values() if each.expires_ms <= now_ms]:
                del held[each.number]
                key = (each.tenant_id, each.sender_aid, each.message_id)
                if _by_id.get(key) is each:  # else its id came again
                    del _by_id[key]
            if not held:
                del _of_receiver[receiver]
