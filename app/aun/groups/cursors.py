"""How far the slots of a member's devices have acknowledged a group's messages and changes."""

from dataclasses import dataclass

from sqlalchemy import Connection

from app.aun.caller import Caller, slot_key
from app.aun.group_models import Group, Member
from app.aun.groups import rows
from app.aun.models import CursorScope
from app.kernel import clock


@dataclass(frozen=True, slots=True)
class Reader:
    """A slot of a device of a member; a caller may only name its own."""

    tenant_id: str
    aid: str
    device_id: str
    slot_key: str


def reader(caller: Caller, device_id: str | None, slot_id: str | None) -> Reader:
    """The slot a call is about: the one it names, else the connection's."""
    return Reader(
        caller.tenant_id,
        caller.aid,
        caller.device_id if device_id is None else device_id,
        caller.slot_key if slot_id is None else slot_key(slot_id),
    )


def acked(connection: Connection, reader: Reader, scope: CursorScope, group_id: str) -> int:
    """What a slot acknowledged; 0 for nothing."""
    found = rows.ACK.run(
        connection,
        tenant_id=reader.tenant_id,
        aid=reader.aid,
        device_id=reader.device_id,
        slot_key=reader.slot_key,
        scope=scope.value,
        group_id=group_id,
    ).scalar()
    return int(found or 0)


def acknowledge(
    connection: Connection,
    reader: Reader,
    scope: CursorScope,
    group: Group,
    member: Member,
    up_to: int,
) -> int:
    """Move a slot forward, never back, inside what the member may see; returns where it is now."""
    if scope == CursorScope.GROUP:
        lowest, highest = member.join_seq, group.message_seq
    else:
        lowest, highest = member.join_event_seq, group.event_seq
    return int(
        rows.MOVE.run(
            connection,
            tenant_id=reader.tenant_id,
            aid=reader.aid,
            device_id=reader.device_id,
            slot_key=reader.slot_key,
            scope=scope.value,
            group_id=group.id,
            ack_seq=min(max(up_to, lowest), highest),
            now=clock.now(),
        ).scalar()
    )
