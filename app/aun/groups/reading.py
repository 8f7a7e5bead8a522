"""How far an AID has read the topics of a group: over all its devices, forward only."""

from collections.abc import Sequence
from typing import Any

from sqlmodel import Session, col, select

from app.aun import conversations
from app.aun.caller import Caller
from app.aun.errors import BadParams
from app.aun.events import ReadMoved
from app.aun.group_models import Member
from app.aun.groups.membership import Inside
from app.aun.groups.told import both, ms
from app.aun.models import Message, ReadPosition
from app.kernel import clock
from app.kernel.db import Work

SCOPE = "group"


def move(
    work: Work, caller: Caller, found: Inside, conversation_id: str, topic: str, message_id: str
) -> bool:
    """Note that the caller has read a topic up to a message; whether that is further than before.

    Raises:
        BadParams: there is no such message it could have read.
    """
    query = (
        select(Message.seq, Message.log_seq)
        .where(
            Message.tenant_id == caller.tenant_id,
            Message.group_id == found.group.id,
            Message.message_id == message_id,
            col(Message.seq) > found.member.join_seq,
        )
        .order_by(col(Message.seq).desc())
        .limit(1)
    )
    row = work.session.exec(query).first()
    if row is None or row[0] is None:
        raise BadParams(f"unknown last_read_message_id: {message_id}")
    order, log_seq = row
    key = (caller.tenant_id, caller.aid, found.group.id, topic)
    position = work.session.get(ReadPosition, key, with_for_update=True)
    if position is not None and position.order >= order:
        return False
    if position is None:
        position = ReadPosition(
            tenant_id=caller.tenant_id,
            aid=caller.aid,
            scope=found.group.id,
            topic=topic,
            message_id=message_id,
            order=order,
            updated_at=clock.now(),
        )
    position.message_id, position.order, position.updated_at = message_id, order, clock.now()
    work.session.add(position)
    work.session.flush()
    conversations.read(work, caller.tenant_id, conversation_id, caller.aid, log_seq)
    work.announce(
        ReadMoved(
            tenant_id=caller.tenant_id,
            aid=caller.aid,
            scope=found.group.id,
            topic=topic,
            conversation_id=conversation_id,
        )
    )
    return True


def positions(
    session: Session, caller: Caller, group_id: str | None, topic: str | None
) -> Sequence[ReadPosition]:
    """The caller's own positions in groups it is in now."""
    query = (
        select(ReadPosition)
        .join(
            Member,
            (col(Member.tenant_id) == ReadPosition.tenant_id)
            & (col(Member.group_id) == ReadPosition.scope)
            & (col(Member.aid) == ReadPosition.aid),
        )
        .where(ReadPosition.tenant_id == caller.tenant_id, ReadPosition.aid == caller.aid)
        .order_by(ReadPosition.scope, ReadPosition.topic)
    )
    if group_id:
        query = query.where(ReadPosition.scope == group_id)
    if topic:
        query = query.where(ReadPosition.topic == topic)
    return session.exec(query).all()


def told(row: ReadPosition) -> dict[str, Any]:
    """A position, as clients compare them."""
    return {
        "scope": SCOPE,
        **both(row.scope),
        "topic_key": row.topic,
        "last_read_message_id": row.message_id,
        "last_read_order": row.order,
        "updated_at": ms(row.updated_at),
    }
