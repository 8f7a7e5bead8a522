"""What connections are told of groups: changes, messages, recalls, invitations, read positions.

A small message goes out whole, once per device it is shown to: a client takes it from the event
only where the event names its own device (aun.md, 9). A large one goes out as a head, the same
bytes for everybody, and is pulled.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from sqlmodel import Session

from app.aun.e2ee import envelopes
from app.aun.events import (
    GroupChanged,
    InviteChanged,
    MessageRecalled,
    MessageStored,
    ReadMoved,
)
from app.aun.group_models import Group, GroupEvent, Invite
from app.aun.groups import membership, pages, reading, recalling, rows, told
from app.aun.models import ReadPosition
from app.aun.outgoing import Live, Lookup, Outgoing
from app.kernel import json

LARGEST_INLINE = 16_000  # bytes of a row inside an event
DIRECT = "p2p"  # the scope of read positions that are no group's


def _changed(session: Session, event: GroupChanged, live: Lookup) -> Iterator[Outgoing]:
    row = session.get(GroupEvent, (event.tenant_id, event.group_id, event.event_seq))
    if row is None:
        return
    aids = membership.aids(session, event.tenant_id, event.group_id)
    to = _all(live, {*aids, *event.also}, event.except_connection)
    if to:
        yield Outgoing(to, "group.changed", told.change(row))


def _stored(session: Session, event: MessageStored, live: Lookup) -> Iterator[Outgoing]:
    if event.group_id is None:
        return
    row = rows.ONE.run(
        session.connection(), tenant_id=event.tenant_id, group_id=event.group_id, id=event.id
    ).first()
    if row is None or row.recalled_at is not None:
        return  # taken back before anybody was told
    to = _all(live, _hearing(session, event, row.seq), event.except_connection)
    if not to:
        return
    head = pages.common(row, event.group_id)
    if row.envelope is not None:
        yield from _sealed(to, event.group_id, row, head)
        return
    shown = pages.plain(row, event.group_id)
    if len(json.dumps(shown)) > LARGEST_INLINE:
        yield Outgoing(to, "group.message_created", head)
        return
    by_device: dict[str, list[Live]] = defaultdict(list)
    for each in to:
        by_device[each.device_id].append(each)
    for device_id, same in by_device.items():
        params = {**head, "target_device_id": device_id, "inline_message": shown}
        yield Outgoing(same, "group.message_created", params)


def _sealed(
    to: Iterable[Live], group_id: str, row: Any, head: dict[str, Any]
) -> Iterator[Outgoing]:
    """To each device with the row that is encrypted to it; to those without one, nothing."""
    split = envelopes.Split(json.of_column(row.envelope))
    by_device: dict[tuple[str, str], list[Live]] = defaultdict(list)
    for each in to:
        by_device[each.aid, each.device_id].append(each)
    for (aid, device_id), same in by_device.items():
        envelope = split.for_device(aid, device_id)
        if envelope is None:
            continue
        text = json.dumps(envelope).decode()
        if len(text) > LARGEST_INLINE:
            yield Outgoing(same, "group.v2.message_created", head)
            continue
        shown = pages.sealed(row, group_id, text)
        params = {**head, "target_device_id": device_id, "inline_message": shown}
        yield Outgoing(same, "group.v2.message_created", params)


def _recalled(session: Session, event: MessageRecalled, live: Lookup) -> Iterator[Outgoing]:
    if event.group_id is None:
        return
    row = rows.ONE.run(
        session.connection(),
        tenant_id=event.tenant_id,
        group_id=event.group_id,
        id=event.tombstone_id,
    ).first()
    if row is None:
        return
    to = _all(live, _hearing(session, event, row.seq), None)
    if to:
        said = json.of_column(row.payload)
        params = {**said, **pages.common(row, event.group_id), "timestamp": row.sent_ms}
        yield Outgoing(to, recalling.RECALLED, params)


def _invited(session: Session, event: InviteChanged, live: Lookup) -> Iterator[Outgoing]:
    to = live(event.invitee_aid)
    row = session.get(Invite, (event.tenant_id, event.invite_id)) if to else None
    if row is None:
        return
    group = session.get(Group, (event.tenant_id, event.group_id))
    name = "group.invite_created" if event.is_new else "group.invite_finalized"
    yield Outgoing(to, name, told.invite(row, group))


def _read(session: Session, event: ReadMoved, live: Lookup) -> Iterator[Outgoing]:
    to = live(event.aid) if event.scope != DIRECT else ()
    key = (event.tenant_id, event.aid, event.scope, event.topic)
    row = session.get(ReadPosition, key) if to else None
    if row is not None:
        params = {"owner_aid": event.aid, **reading.told(row)}
        yield Outgoing(to, "group.read_changed", params)


def _hearing(session: Session, event: MessageStored | MessageRecalled, seq: int) -> list[str]:
    """Members who receive messages, and were there when this one came."""
    found = rows.HEARING.run(
        session.connection(), tenant_id=event.tenant_id, group_id=event.group_id, seq=seq
    )
    return [row.aid for row in found]


def _all(live: Lookup, aids: Iterable[str], but: str | None) -> list[Live]:
    return [each for aid in aids for each in live(aid) if each.id != but]


PUSHES = {
    GroupChanged: _changed,
    MessageStored: _stored,
    MessageRecalled: _recalled,
    InviteChanged: _invited,
    ReadMoved: _read,
}
