"""Reading an inbox by sender: pages whose arithmetic a client checks, and refuses if it is wrong.

A page covers every number up to `covered_through_seq`, whether or not this device may read what
stands there. It is never empty while it says that there is more.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session

from app.aun import rows
from app.aun.caller import Caller
from app.aun.queries import HOSTED
from app.aun.shapes import Reader, direct
from app.kernel import json
from app.kernel.prepared import Prepared

MOST_ROWS = 200
MOST_BYTES = 3 << 19  # 1.5 MiB of rows: a response stays below 2 MiB
AT_ONCE = 32  # rows read together: each may be a megabyte
LAST = 2**53 - 1

Shape = Callable[[Any, Reader], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Standing:
    """One sender in the inbox of one device and slot.

    Attributes:
        delivered_seq: what reached any device.
        is_hosted: the sender is, and sees here what was delivered.
    """

    sender_aid: str
    head_seq: int = 0
    floor_seq: int = 0
    ack_seq: int = 0
    delivered_seq: int = 0
    is_hosted: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """Rows as they go out, in ascending order, and whether more of them follow.

    Attributes:
        next_seq: of the first row left out.
        size: of the rows, in bytes.
    """

    rows: list[dict[str, Any]]
    next_seq: int | None = None
    size: int = 0

    @property
    def has_more(self) -> bool:
        """Whether a row was left out."""
        return self.next_seq is not None


def standing(session: Session, caller: Caller, sender_aid: str) -> Standing:
    """How far a sender's messages go, and how far this device and slot acknowledged them."""
    found = rows.ONE_PEER.run_with(session.connection(), _key(caller) | {"sender_aid": sender_aid})
    return _standing(found.first()) if found.first() else Standing(sender_aid)


def pending(session: Session, caller: Caller) -> list[Standing]:
    """Every sender of whom something is not acknowledged."""
    found = rows.PENDING_PEERS.run_with(session.connection(), _key(caller))
    return [_standing(row) for row in found]


def senders(session: Session, caller: Caller, after: str, limit: int) -> list[Standing]:
    """Senders in the order of their AIDs, from after one on."""
    values = _key(caller) | {"after": after, "limit": limit}
    return [_standing(row) for row in rows.EVERY_PEER.run_with(session.connection(), values)]


def forward(session: Session, caller: Caller, sender_aid: str, after_seq: int, limit: int) -> Page:
    """The first rows after a number."""
    bounds = {"sender_aid": sender_aid, "after_seq": after_seq, "before_seq": LAST}
    return _page(_visible(session, caller, rows.FORWARD, bounds), caller, limit, direct)


def backward(
    session: Session, caller: Caller, sender_aid: str, after_seq: int, before_seq: int, limit: int
) -> Page:
    """The last rows between two numbers; `next_seq` is that of an older one."""
    bounds = {"sender_aid": sender_aid, "after_seq": after_seq, "before_seq": before_seq}
    page = _page(_visible(session, caller, rows.BACKWARD, bounds), caller, limit, direct)
    return Page(page.rows[::-1], page.next_seq, page.size)


def everything(session: Session, caller: Caller, after_seq: int, limit: int, shape: Shape) -> Page:
    """The first rows after a number, of all senders together."""
    bounds = {"after_seq": after_seq, "before_seq": LAST}
    return _page(_visible(session, caller, rows.FORWARD_ALL, bounds), caller, limit, shape)


def _page(found: Iterator[Any], caller: Caller, limit: int, shape: Shape) -> Page:
    """As many rows as fit, at least one: what comes after them tells whether there is more."""
    made: list[dict[str, Any]] = []
    reader, size = Reader.of(caller), 0
    for row in found:
        if len(made) == limit:
            return Page(made, row.seq, size)
        worded = shape(row, reader)
        more = len(json.dumps(worded))
        if made and size + more > MOST_BYTES:
            return Page(made, row.seq, size)
        made.append(worded)
        size += more
    return Page(made, size=size)


def _visible(
    session: Session, caller: Caller, select: Prepared, bounds: dict[str, Any]
) -> Iterator[Any]:
    """The rows that this device may read, a few at a time."""
    reader, connection = Reader.of(caller), session.connection()
    values = {"tenant_id": caller.tenant_id, "aid": caller.aid, "limit": AT_ONCE, **bounds}
    is_backward = select is rows.BACKWARD
    while True:
        found = select.run_with(connection, values).all()
        yield from (row for row in found if reader.may_have(row))
        if len(found) < AT_ONCE:
            return
        values["before_seq" if is_backward else "after_seq"] = found[-1].seq


def _key(caller: Caller) -> dict[str, Any]:
    return {
        "tenant_id": caller.tenant_id,
        "aid": caller.aid,
        "device_id": caller.device_id,
        "slot_key": caller.slot_key,
    }


def _standing(row: Any) -> Standing:
    return Standing(
        row.sender_aid,
        row.head_seq,
        row.floor_seq,
        row.ack_seq,
        row.delivered_seq,
        row.kind in HOSTED,
    )
