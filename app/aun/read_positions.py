"""How far an AID has read: over all its devices, forward only, whatever each of them has."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session, col, select

from app.aun import conversations, rows
from app.aun.caller import Caller
from app.aun.events import ReadMoved
from app.aun.models import ReadPosition
from app.aun.shapes import Reader
from app.kernel import clock
from app.kernel.db import Work

P2P = "p2p"


@dataclass(frozen=True, slots=True)
class Mapped:
    """A position, and where the caller's device has its message.

    Attributes:
        seq: in the inbox; None where this device cannot have it, or it is not kept any more.
    """

    position: ReadPosition
    seq: int | None
    status: str


def move(work: Work, caller: Caller, topic: str, message_id: str) -> bool:
    """Note that a topic is read up to a message of the inbox; whether that is further than before.

    What is not in the inbox has no place in its order, and moves nothing.
    """
    found = _in_inbox(work.session, caller, message_id)
    if found is None:
        return False
    key = (caller.tenant_id, caller.aid, P2P, topic)
    position = work.session.get(ReadPosition, key, with_for_update=True)
    if position is not None and position.order >= found.seq:
        return False
    if position is None:
        position = ReadPosition(
            tenant_id=caller.tenant_id,
            aid=caller.aid,
            scope=P2P,
            topic=topic,
            message_id=message_id,
            order=found.seq,
            updated_at=clock.now(),
        )
    position.message_id, position.order = message_id, found.seq
    position.updated_at = clock.now()
    work.session.add(position)
    work.session.flush()
    conversations.read(work, caller.tenant_id, found.conversation_id, caller.aid, found.log_seq)
    work.announce(
        ReadMoved(
            tenant_id=caller.tenant_id,
            aid=caller.aid,
            scope=P2P,
            topic=topic,
            conversation_id=found.conversation_id,
        )
    )
    return True


def positions(session: Session, caller: Caller, topic: str | None) -> Sequence[Mapped]:
    """The caller's own, in the order of their topics."""
    query = (
        select(ReadPosition)
        .where(
            ReadPosition.tenant_id == caller.tenant_id,
            ReadPosition.aid == caller.aid,
            ReadPosition.scope == P2P,
        )
        .order_by(col(ReadPosition.topic))
    )
    if topic is not None:
        query = query.where(ReadPosition.topic == topic)
    return [_mapped(session, caller, each) for each in session.exec(query)]


def _mapped(session: Session, caller: Caller, position: ReadPosition) -> Mapped:
    found = _in_inbox(session, caller, position.message_id)
    if found is None:
        return Mapped(position, None, "unresolved")
    if not Reader.of(caller).may_have(found):
        return Mapped(position, None, "not_received")
    return Mapped(position, found.seq, "resolved")


def _in_inbox(session: Session, caller: Caller, message_id: str) -> Any:
    """The newest message of this id: ids are unique with their sender only."""
    return rows.IN_INBOX.run(
        session.connection(),
        tenant_id=caller.tenant_id,
        aid=caller.aid,
        message_id=message_id,
    ).first()
