"""Conversations: a pair of AIDs, or a group, and who takes part; none is ever "answered"."""

from collections.abc import Sequence

from sqlmodel import Session, col, select

from app.aun import rows
from app.aun.models import Conversation, ConversationKind, Participant
from app.kernel import clock, event_log, ids
from app.kernel.db import Work

READ = "message.read"  # the kind in the event log


def pair(one: str, other: str) -> tuple[str, str]:
    """The two AIDs in the order in which a conversation keeps them."""
    return (one, other) if one <= other else (other, one)


def of_pair(work: Work, tenant_id: str, started_by: str, other: str) -> str:
    """The id of the conversation of two AIDs, which begins here if it did not before."""
    first, second = pair(started_by, other)
    known = rows.OF_PAIR.run(
        work.connection, tenant_id=tenant_id, first_aid=first, second_aid=second
    ).scalar()
    return known or begin(work, tenant_id, started_by, other)


def begin(work: Work, tenant_id: str, started_by: str, other: str) -> str:
    """Make the conversation of two AIDs that have none; on a race the unit runs again."""
    first, second = pair(started_by, other)
    made = _start(work, tenant_id, ConversationKind.DIRECT, started_by, first, second, None)
    for aid in {first, second}:
        join(work, tenant_id, made, aid, 0)
    return made


def of_group(work: Work, tenant_id: str, group_id: str, started_by: str) -> str:
    """The id of a group's conversation, made together with the group; nobody is in it yet."""
    known = rows.OF_GROUP.run(work.connection, tenant_id=tenant_id, group_id=group_id).scalar()
    kind = ConversationKind.GROUP
    return known or _start(work, tenant_id, kind, started_by, None, None, group_id)


def join(
    work: Work, tenant_id: str, conversation_id: str, aid: str, from_seq: int | None = None
) -> None:
    """Let `aid` take part, anew if they had left; they see what follows `from_seq`.

    That is a number of the event log; None stands for its newest message, so for those to come.
    """
    if from_seq is None:
        from_seq = rows.LAST_SEQ.run(
            work.connection, tenant_id=tenant_id, conversation_id=conversation_id
        ).scalar()
    rows.TAKE_PART.run(
        work.connection,
        tenant_id=tenant_id,
        conversation_id=conversation_id,
        aid=aid,
        from_seq=from_seq or 0,
    )


def leave(work: Work, tenant_id: str, conversation_id: str, aid: str) -> None:
    """Note that `aid` takes no part any more: it reads and hears nothing from now on."""
    rows.LEAVE.run(
        work.connection,
        tenant_id=tenant_id,
        conversation_id=conversation_id,
        aid=aid,
        left_at=clock.now(),
    )


def read(work: Work, tenant_id: str, conversation_id: str, aid: str, seq: int) -> bool:
    """Note that `aid` has read up to a number of the event log; whether that is further.

    Between two, the other may see it; in a group it is the reader's own.
    """
    key = {"tenant_id": tenant_id, "conversation_id": conversation_id}
    if not rows.READ_UP_TO.run_with(work.connection, {**key, "aid": aid, "seq": seq}).rowcount:
        return False
    data = {"aid": aid, "seq": seq}
    if rows.CONVERSATION_KIND.run_with(work.connection, key).scalar() == ConversationKind.DIRECT:
        event_log.append(work, tenant_id, READ, conversation_id, data, topic=conversation_id)
    elif owner_id := rows.OWNER.run(work.connection, tenant_id=tenant_id, aid=aid).scalar():
        event_log.append(work, tenant_id, READ, conversation_id, data, user_id=owner_id)
    return True


def id_of_group(session: Session, tenant_id: str, group_id: str) -> str | None:
    """The id of a group's conversation; None for a group that is none."""
    query = select(Conversation.id).where(
        Conversation.tenant_id == tenant_id, Conversation.group_id == group_id
    )
    return session.exec(query).first()


def id_of_pair(session: Session, tenant_id: str, one: str, other: str) -> str | None:
    """The id of the conversation of two AIDs; None where they never wrote to each other."""
    first, second = pair(one, other)
    query = select(Conversation.id).where(
        Conversation.tenant_id == tenant_id,
        Conversation.first_aid == first,
        Conversation.second_aid == second,
    )
    return session.exec(query).first()


def participants(session: Session, tenant_id: str, conversation_id: str) -> Sequence[Participant]:
    """Who takes part now, in the order of their AIDs."""
    query = (
        select(Participant)
        .where(
            Participant.tenant_id == tenant_id,
            Participant.conversation_id == conversation_id,
            col(Participant.left_at).is_(None),
        )
        .order_by(Participant.aid)
    )
    return session.exec(query).all()


def _start(
    work: Work,
    tenant_id: str,
    kind: ConversationKind,
    started_by: str,
    first: str | None,
    second: str | None,
    group_id: str | None,
) -> str:
    made = ids.ulid()
    rows.START.run(
        work.connection,
        tenant_id=tenant_id,
        id=made,
        kind=kind.value,
        first_aid=first,
        second_aid=second,
        group_id=group_id,
        started_by=started_by,
        created_at=clock.now(),
    )
    return made
