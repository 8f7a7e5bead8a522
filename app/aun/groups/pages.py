"""Pages of a group's messages, as one member's device sees them.

The server shows an encrypted message to the devices it is encrypted to, and to nobody else: the
numbers of a page have holes.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection
from sqlmodel import Session

from app.aun.caller import Caller
from app.aun.e2ee import envelopes
from app.aun.group_models import Group, Member
from app.aun.groups import rows
from app.aun.groups.told import both
from app.kernel import json

AT_ONCE = 200  # rows that are looked up together
MOST_BYTES = 3 << 19  # of rows in an answer: 1.5 MiB, a frame to a client stays below 2 MiB

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class View:
    """Who looks: what is above `after` may be seen by this device.

    Attributes:
        is_hosted: the server reads for it.
    """

    tenant_id: str
    group_id: str
    aid: str
    device_id: str
    is_hosted: bool
    after: int
    head: int


def view(session: Session, caller: Caller, device_id: str, group: Group, member: Member) -> View:
    """What a member's device may see of a group, as it is in this snapshot."""
    return View(
        group.tenant_id,
        group.id,
        caller.aid,
        device_id,
        caller.is_hosted,
        max(member.join_seq, floor(session, group)),
        group.message_seq,
    )


def floor(session: Session, group: Group) -> int:
    """The number up to which messages are not kept any more."""
    oldest = rows.OLDEST.run(
        session.connection(), tenant_id=group.tenant_id, group_id=group.id
    ).scalar()
    if oldest is None:
        return group.message_seq
    # numbers whose sends were refused after they were taken are no loss
    return int(oldest) - 1


def forward(session: Session, look: View, after: int, limit: int) -> tuple[list[Row], bool]:
    """At most `limit` messages after a number, in order, and whether there are more."""
    return _page(_upwards(session.connection(), look, max(after, look.after)), look, limit)


def backward(session: Session, look: View, before: int, limit: int) -> tuple[list[Row], bool]:
    """At most `limit` messages before a number, in order, and whether there are older ones."""
    found, has_older = _page(_downwards(session.connection(), look, before), look, limit)
    return found[::-1], has_older


def tail(session: Session, look: View, after: int, limit: int) -> tuple[list[Row], int]:
    """The newest messages, in order, and the number their window starts at (aun.md, 6.1).

    The window is dense: it holds no more than `limit` numbers, whatever of them can be seen.
    """
    if look.head <= max(after, look.after):
        return [], look.head
    start = max(after + 1, look.after + 1, look.head - limit + 1)
    found = rows.AFTER.run(
        session.connection(),
        tenant_id=look.tenant_id,
        group_id=look.group_id,
        after=start - 1,
        until=look.head,
        limit=limit,
    ).all()
    shown: list[Row] = []
    size = 0
    for row in reversed(found):
        made = told(row, look)
        size += len(json.dumps(made)) if made else 0
        if made and shown and size > MOST_BYTES:
            return shown[::-1], int(row.seq) + 1
        if made:
            shown.append(made)
    return shown[::-1], start


def told(row: Any, look: View) -> Row | None:
    """A message as a device is shown it; None where it is not."""
    if row.envelope is None or (look.is_hosted and row.payload is not None):
        return plain(row, look.group_id) | (
            {"encrypted": row.envelope is not None} if look.is_hosted else {}
        )
    if look.is_hosted or _is_for(row.envelope, look):
        return sealed(row, look.group_id, row.envelope)
    return None


def plain(row: Any, group_id: str) -> Row:
    """A message whose payload everybody may read; its content may be gone by now."""
    payload = json.of_column(row.payload)
    return {"version": "v1", **common(row, group_id), "payload": payload or {"type": row.type}}


def sealed(row: Any, group_id: str, envelope_json: str) -> Row:
    """A message as it came encrypted."""
    return {"version": "v2", **common(row, group_id), "envelope_json": envelope_json}


def common(row: Any, group_id: str) -> Row:
    """What is said of any message."""
    return {
        **both(group_id),
        "seq": row.seq,
        "message_id": row.message_id,
        "from_aid": row.sender_aid,
        "sender_aid": row.sender_aid,
        "sender_device_id": row.sender_device,
        "t_server": row.sent_ms,
        "type": row.type,
        "need_render": bool(row.need_render),
        "mention_mode": row.mention_mode,
    }


def _page(found: Iterable[Any], look: View, limit: int) -> tuple[list[Row], bool]:
    """The first of what can be seen: by number, and by size, but one at least."""
    shown: list[Row] = []
    size = 0
    for row in found:
        made = told(row, look)
        if made is None:
            continue
        size += len(json.dumps(made))
        if len(shown) == limit or (shown and size > MOST_BYTES):
            return shown, True
        shown.append(made)
    return shown, False


def _upwards(connection: Connection, look: View, after: int) -> Iterator[Any]:
    def batch(at: int) -> Sequence[Any]:
        return rows.AFTER.run(
            connection,
            tenant_id=look.tenant_id,
            group_id=look.group_id,
            after=at,
            until=look.head,
            limit=AT_ONCE + 1,
        ).all()

    return _all(batch, after)


def _downwards(connection: Connection, look: View, before: int) -> Iterator[Any]:
    def batch(at: int) -> Sequence[Any]:
        return rows.BEFORE.run(
            connection,
            tenant_id=look.tenant_id,
            group_id=look.group_id,
            after=look.after,
            before=at,
            limit=AT_ONCE + 1,
        ).all()

    return _all(batch, before)


def _all(batch: Callable[[int], Sequence[Any]], at: int) -> Iterator[Any]:
    while found := batch(at):
        yield from found
        if len(found) <= AT_ONCE:
            return
        at = found[-1].seq


def _is_for(envelope_json: str, look: View) -> bool:
    """Whether the device has a row; most others are told by their AID not being in it at all."""
    if f'"{look.aid}"' not in envelope_json:
        return False
    return envelopes.has_wrap(json.of_column(envelope_json), look.aid, look.device_id)
