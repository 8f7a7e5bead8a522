"""What changed in a group: numbered without a gap, kept, and told to whoever is in it."""

from collections.abc import Collection, Sequence
from typing import Any

from sqlmodel import Session, col, select

from app.aun import conversations, queries
from app.aun.caller import Caller
from app.aun.e2ee import states
from app.aun.events import GroupChanged
from app.aun.group_models import Group, GroupEvent
from app.aun.models import IdentityKind
from app.kernel import clock, event_log
from app.kernel.db import Work

CHANGED = "group.changed"  # the kind in the event log
LISTED = "conversation.changed"  # for one user: a conversation came to their list, or left it


def note(
    work: Work,
    caller: Caller,
    group: Group,
    action: str,
    *,
    also: Collection[str] = (),
    **data: Any,
) -> int:
    """Number a change of a group whose row is locked, and tell its members of it.

    `also` are AIDs that hear of it though they are no members any more, or not yet; `data` is
    what clients and pages are told besides: `member_aid`, `role`.
    """
    group.event_seq += 1
    group.updated_at = clock.now()
    group.version += 1
    work.session.add(group)
    work.session.add(
        GroupEvent(
            tenant_id=group.tenant_id,
            group_id=group.id,
            event_seq=group.event_seq,
            action=action,
            actor_aid=caller.aid,
            data=data,
            created_at=group.updated_at,
        )
    )
    work.session.flush()
    _log(work, group, action)
    work.announce(
        GroupChanged(
            tenant_id=group.tenant_id,
            group_id=group.id,
            event_seq=group.event_seq,
            also=tuple(sorted(also)),
        )
    )
    states.follow(work, group)  # who is in it is what its owner signs, here where the key is here
    return group.event_seq


def tell_listed(work: Work, tenant_id: str, conversation_id: str, aid: str) -> None:
    """Let the pages of a user know that a conversation came to their list, or left it."""
    found = queries.identity(work.session, tenant_id, aid)
    if found is not None and found.kind == IdentityKind.USER and found.owner_id:
        event_log.append(
            work, tenant_id, LISTED, conversation_id, {"aid": aid}, user_id=found.owner_id
        )


def after(
    session: Session, group: Group, event_seq: int, limit: int
) -> tuple[Sequence[GroupEvent], bool]:
    """At most `limit` changes after a number, in order, and whether there are more."""
    query = (
        select(GroupEvent)
        .where(
            GroupEvent.tenant_id == group.tenant_id,
            GroupEvent.group_id == group.id,
            GroupEvent.event_seq > event_seq,
        )
        .order_by(col(GroupEvent.event_seq))
        .limit(limit + 1)
    )
    found = session.exec(query).all()
    return found[:limit], len(found) > limit


def _log(work: Work, group: Group, action: str) -> None:
    conversation_id = conversations.of_group(work, group.tenant_id, group.id, group.creator_aid)
    event_log.append(
        work,
        group.tenant_id,
        CHANGED,
        conversation_id,
        {"group": group.id, "event_seq": group.event_seq, "action": action},
        topic=conversation_id,
    )
