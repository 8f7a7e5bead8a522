"""Invitations of one AID: several inviters share one, and it ends in exactly one way."""

from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import ColumnElement
from sqlmodel import Session, col, func, select

from app.aun import queries
from app.aun.caller import Caller
from app.aun.events import InviteChanged
from app.aun.group_models import Group, Invite, InviteStatus, Member, Visibility
from app.aun.groups import membership
from app.aun.groups.membership import Inside
from app.aun.groups.refusals import AlreadyMember, InviteEnded, NoInvite, RoleNeeded
from app.kernel import clock, ids
from app.kernel.db import Work
from app.kernel.due import Due

LIVES = timedelta(days=7)
AT_ONCE = 200  # in one transaction

_DUE = Due("group_invite")


def invite(work: Work, caller: Caller, found: Inside, aid: str) -> Invite:
    """Invite somebody into a group whose row is locked; another inviter joins what is pending.

    Raises:
        RoleNeeded: members of a private group do not invite.
        AlreadyMember, NoSuchParty, Suspended: it makes no sense, or not now.
    """
    group = found.group
    if group.visibility == Visibility.PRIVATE and not found.is_manager:
        raise RoleNeeded("permission denied: owner or admin required")
    membership.need_admitting(group)
    queries.party(work.session, caller.tenant_id, aid)
    if work.session.get(Member, (group.tenant_id, group.id, aid)) is not None:
        raise AlreadyMember
    pending = _pending(work.session, group, aid)
    if pending is not None:
        if caller.aid not in pending.inviter_aids:
            pending.inviter_aids = [*pending.inviter_aids, caller.aid]
            work.session.add(pending)
        return pending
    now = clock.now()
    made = Invite(
        tenant_id=group.tenant_id,
        id=ids.ulid(),
        group_id=group.id,
        invitee_aid=aid,
        inviter_aids=[caller.aid],
        created_at=now,
        expires_at=now + LIVES,
    )
    work.session.add(made)
    _tell(work, made, is_new=True)
    return made


def of_invitee(
    session: Session, caller: Caller, offset: int, limit: int
) -> tuple[Sequence[tuple[Invite, Group]], int]:
    """A page of the caller's pending invitations, the newest first, and how many there are."""
    is_one = [
        Invite.tenant_id == caller.tenant_id,
        Invite.invitee_aid == caller.aid,
        Invite.status == InviteStatus.PENDING,
        Invite.expires_at > clock.now(),
    ]
    total = session.exec(select(func.count()).select_from(Invite).where(*is_one)).one()
    query = (
        select(Invite, Group)
        .join(
            Group, (col(Group.tenant_id) == Invite.tenant_id) & (col(Group.id) == Invite.group_id)
        )
        .where(*is_one)
        .order_by(col(Invite.created_at).desc(), col(Invite.id))
        .offset(offset)
        .limit(limit)
    )
    return session.exec(query).all(), total


def one(session: Session, caller: Caller, invite_id: str) -> Invite:
    """An invitation the caller made or got.

    Raises:
        NoInvite: there is none.
    """
    found = session.get(Invite, (caller.tenant_id, invite_id))
    if found is None or caller.aid not in {found.invitee_aid, *found.inviter_aids}:
        raise NoInvite
    return found


def end(work: Work, found: Invite, status: InviteStatus) -> None:
    """Let a pending invitation end; the row of its group is locked, so it ends once.

    Raises:
        InviteEnded: it did before, or ran out.
    """
    if found.status != InviteStatus.PENDING:
        raise InviteEnded(found.status)
    if found.expires_at <= clock.now():
        raise InviteEnded(InviteStatus.EXPIRED)
    _end(work, found, status)


def withdraw(work: Work, caller: Caller, found: Invite) -> None:
    """Take one's own invitation back; it goes on while another inviter stands by it.

    Raises:
        InviteEnded: it did before, or ran out.
    """
    others = [aid for aid in found.inviter_aids if aid != caller.aid]
    if not others or found.status != InviteStatus.PENDING or found.expires_at <= clock.now():
        end(work, found, InviteStatus.REVOKED)
        return
    found.inviter_aids = others
    work.session.add(found)


def fulfil(work: Work, group: Group, aid: str) -> None:
    """Somebody came in by another way: what invited them has ended."""
    pending = _pending(work.session, group, aid)
    if pending is not None:
        _end(work, pending, InviteStatus.ACCEPTED)


def end_all(work: Work, group: Group) -> None:
    """Revoke what is pending, as the group is over."""
    query = select(Invite).where(
        Invite.tenant_id == group.tenant_id,
        Invite.group_id == group.id,
        Invite.status == InviteStatus.PENDING,
    )
    for found in work.session.exec(query).all():
        _end(work, found, InviteStatus.REVOKED)


def sweep() -> int:
    """Note which invitations ran out, and tell the invited; returns how many.

    It waits for the database: for threads, not for a unit or the event loop.
    """
    ended = went = _DUE.together_now(expire, _over)
    while went >= AT_ONCE:
        went = _DUE.together_now(expire, _over)
        ended += went
    return ended


def expire(work: Work, only: tuple[str, ...] | None = None) -> int:
    """The next ones of them, or the one of a key."""
    query = select(Invite).where(*_is_over())
    if only is not None:
        query = query.where(Invite.tenant_id == only[0], Invite.id == only[1])
    query = query.order_by(col(Invite.tenant_id), col(Invite.id)).limit(AT_ONCE)
    found = work.session.exec(query.with_for_update(skip_locked=True)).all()
    for each in found:
        _end(work, each, InviteStatus.EXPIRED)
    return len(found)


def _over(session: Session, more: int) -> Sequence[tuple[str, str]]:
    query = select(Invite.tenant_id, Invite.id).where(*_is_over())
    ordered = query.order_by(col(Invite.tenant_id), col(Invite.id))
    return session.exec(ordered.limit(AT_ONCE + more)).all()


def _is_over() -> list[ColumnElement[bool]]:
    return [col(Invite.status) == InviteStatus.PENDING, col(Invite.expires_at) <= clock.now()]


def _pending(session: Session, group: Group, aid: str) -> Invite | None:
    query = select(Invite).where(
        Invite.tenant_id == group.tenant_id,
        Invite.group_id == group.id,
        Invite.invitee_aid == aid,
        Invite.status == InviteStatus.PENDING,
        Invite.expires_at > clock.now(),
    )
    return session.exec(query).first()


def _end(work: Work, found: Invite, status: InviteStatus) -> None:
    found.status, found.ended_at = status, clock.now()
    work.session.add(found)
    work.session.flush()
    _tell(work, found, is_new=False)


def _tell(work: Work, found: Invite, *, is_new: bool) -> None:
    work.announce(
        InviteChanged(
            tenant_id=found.tenant_id,
            invite_id=found.id,
            group_id=found.group_id,
            invitee_aid=found.invitee_aid,
            is_new=is_new,
        )
    )
