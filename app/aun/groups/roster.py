"""Coming into a group and going out of it, by whatever way: the rows that have to agree."""

from typing import Any

from sqlmodel import Session

from app.aun import conversations, queries
from app.aun.caller import Caller
from app.aun.group_models import Group, Member, Role
from app.aun.groups import changes
from app.aun.groups.refusals import AlreadyMember, Banned
from app.aun.models import IdentityKind
from app.kernel import clock
from app.kernel.db import Work

HUMAN, AI = "human", "ai"


def admit(
    work: Work,
    caller: Caller,
    group: Group,
    aid: str,
    action: str,
    *,
    role: Role = Role.MEMBER,
    member_type: str = "",
    **data: Any,
) -> Member:
    """Make somebody a member of a group whose row is locked; they see what comes from now on.

    Raises:
        AlreadyMember: they are one.
        Banned: they left while banned, and come by themselves.
        NoSuchParty: there is nobody of that name who can be written to.
    """
    if work.session.get(Member, (group.tenant_id, group.id, aid)) is not None:
        raise AlreadyMember
    if aid in group.shut_out:
        if caller.aid == aid:
            raise Banned
        group.shut_out = [other for other in group.shut_out if other != aid]
    made = Member(
        tenant_id=group.tenant_id,
        group_id=group.id,
        aid=aid,
        role=role,
        member_type=_type(work.session, group.tenant_id, aid, member_type),
        joined_at=clock.now(),
        join_seq=group.message_seq,
        join_event_seq=group.event_seq,
    )
    work.session.add(made)
    group.member_count += 1
    _take_part(work, group, aid)
    changes.note(
        work, caller, group, action, member_aid=aid, joined_aid=aid, role=str(role), **data
    )
    return made


def remove(work: Work, caller: Caller, group: Group, gone: Member, action: str) -> None:
    """Let a member of a group whose row is locked be none: it reads and hears nothing more."""
    if gone.banned_at is not None:
        group.shut_out = sorted({*group.shut_out, gone.aid})
    work.session.delete(gone)
    group.member_count -= 1
    if group.transfer_to == gone.aid:
        group.transfer_to = None
    conversation_id = conversations.of_group(work, group.tenant_id, group.id, group.creator_aid)
    changes.note(work, caller, group, action, also=[gone.aid], member_aid=gone.aid)
    conversations.leave(work, group.tenant_id, conversation_id, gone.aid)
    changes.tell_listed(work, group.tenant_id, conversation_id, gone.aid)


def begin(work: Work, group: Group) -> Member:
    """The first member of a new group: who made it."""
    made = Member(
        tenant_id=group.tenant_id,
        group_id=group.id,
        aid=group.owner_aid,
        role=Role.OWNER,
        member_type=_type(work.session, group.tenant_id, group.owner_aid, ""),
        joined_at=group.created_at,
    )
    work.session.add(made)
    group.member_count = 1
    _take_part(work, group, made.aid)
    return made


def _take_part(work: Work, group: Group, aid: str) -> None:
    conversation_id = conversations.of_group(work, group.tenant_id, group.id, group.creator_aid)
    conversations.join(work, group.tenant_id, conversation_id, aid)
    changes.tell_listed(work, group.tenant_id, conversation_id, aid)


def _type(session: Session, tenant_id: str, aid: str, given: str) -> str:
    """What kind of member it is: known of ours, said by others of themselves."""
    found = queries.party(session, tenant_id, aid)
    if found.kind in {IdentityKind.USER, IdentityKind.AGENT}:
        return HUMAN if found.kind == IdentityKind.USER else AI
    return given or HUMAN
