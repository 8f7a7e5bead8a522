"""Cursors: what one slot of one device acknowledged. They move forward only and read nothing."""

from sqlmodel import Session

from app.aun import rows
from app.aun.caller import Caller
from app.aun.models import CursorScope
from app.kernel import clock
from app.kernel.db import Work


def acknowledged(session: Session, caller: Caller, scope: CursorScope, subject: str) -> int:
    """How far the caller's device and slot acknowledged a sender, a group or everything."""
    found = rows.CURSOR.run(
        session.connection(),
        tenant_id=caller.tenant_id,
        aid=caller.aid,
        device_id=caller.device_id,
        slot_key=caller.slot_key,
        scope=scope.value,
        subject=subject,
    ).scalar()
    return int(found or 0)


def acknowledge(
    work: Work, caller: Caller, scope: CursorScope, subject: str, up_to_seq: int
) -> tuple[int, bool]:
    """Move a cursor forward: how far it is now, and whether it moved."""
    moved = rows.MOVE_CURSOR.run(
        work.connection,
        tenant_id=caller.tenant_id,
        aid=caller.aid,
        device_id=caller.device_id,
        slot_key=caller.slot_key,
        scope=scope.value,
        subject=subject,
        ack_seq=up_to_seq,
        updated_at=clock.now(),
    ).rowcount
    if moved:
        return up_to_seq, True
    return acknowledged(work.session, caller, scope, subject), False
