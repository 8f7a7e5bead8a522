"""Asking to come in, and what becomes of it."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from sqlmodel import Session, col, func, select

from app.aun.caller import Caller
from app.aun.errors import GroupRefused
from app.aun.group_models import Group, JoinMode, JoinRequest, Member, RequestStatus
from app.aun.groups import changes, invites, membership, patterns, roster, settings
from app.aun.groups.membership import Standing
from app.aun.groups.refusals import AlreadyMember, Banned, NoRequest, NotAdmitting
from app.kernel import clock
from app.kernel.db import Work

WAITS = timedelta(days=30)


def ask(
    work: Work, caller: Caller, found: Standing, message: str, answer: str
) -> Member | JoinRequest | str:
    """Ask to join a group whose row is locked: in at once, pending, or the question to answer.

    Raises:
        AlreadyMember, Banned, NotAdmitting, Suspended: not this way, or not now.
    """
    group = found.group
    if found.member is not None:
        raise AlreadyMember
    if caller.aid in group.shut_out:
        raise Banned
    membership.need_admitting(group)
    if group.join_mode in {JoinMode.INVITE_ONLY, JoinMode.CLOSED}:
        raise NotAdmitting(f"group is {group.join_mode.replace('_', ' ')}")
    if group.join_mode == JoinMode.OPEN or _is_expected(group, caller.aid):
        return let_in(work, caller, group, caller.aid, "joined")
    question: str = settings.value(group, "join.question")
    if question and not answer.strip():
        return question
    return _wait(work, caller, group, message, answer)


def let_in(work: Work, caller: Caller, group: Group, aid: str, action: str, **data: Any) -> Member:
    """Admit somebody; what they asked for is granted, and what invited them has ended."""
    made = roster.admit(work, caller, group, aid, action, **data)
    forget(work, caller, group, aid)
    invites.fulfil(work, group, aid)
    return made


def forget(work: Work, caller: Caller, group: Group, aid: str) -> None:
    """Grant what somebody who came in by another way had asked for."""
    waiting = _open(work.session, group, aid)
    if waiting is not None:
        _end(work, waiting, RequestStatus.APPROVED, caller.aid)


def review(
    work: Work, caller: Caller, group: Group, aid: str, *, approve: bool, reason: str
) -> JoinRequest:
    """Decide about somebody who waits; the group's row is locked.

    Raises:
        NoRequest: nobody of this name waits.
        Suspended: nobody comes in now.
    """
    found = _open(work.session, group, aid)
    if found is None:
        raise NoRequest
    if not approve:
        _end(work, found, RequestStatus.REJECTED, caller.aid, reason)
        changes.note(work, caller, group, "join_rejected", also=[aid], member_aid=aid)
        return found
    membership.need_admitting(group)
    let_in(work, caller, group, aid, "join_approved")
    return found


def requests(
    session: Session, group: Group, status: RequestStatus, offset: int, limit: int
) -> tuple[Sequence[JoinRequest], int]:
    """A page of the requests of one status, the oldest first, and how many there are."""
    is_one = [
        JoinRequest.tenant_id == group.tenant_id,
        JoinRequest.group_id == group.id,
        JoinRequest.status == status,
    ]
    if status == RequestStatus.PENDING:
        is_one.append(JoinRequest.expires_at > clock.now())
    total = session.exec(select(func.count()).select_from(JoinRequest).where(*is_one)).one()
    query = (
        select(JoinRequest)
        .where(*is_one)
        .order_by(col(JoinRequest.created_at), col(JoinRequest.aid))
        .offset(offset)
        .limit(limit)
    )
    return session.exec(query).all(), total


def _is_expected(group: Group, aid: str) -> bool:
    return patterns.any_matches(settings.value(group, "join.auto_approve_patterns"), aid)


def _wait(work: Work, caller: Caller, group: Group, message: str, answer: str) -> JoinRequest:
    now = clock.now()
    key = (group.tenant_id, group.id, caller.aid)
    found = work.session.get(JoinRequest, key)
    is_again = found is not None and _is_open(found)
    if not is_again:
        _, waiting = requests(work.session, group, RequestStatus.PENDING, 0, 1)
        if waiting >= settings.value(group, "join.max_pending"):
            raise GroupRefused("too many pending join requests", retryable=True)
    if found is None or not is_again:
        if found is not None:
            work.session.delete(found)
            work.session.flush()
        found = JoinRequest(
            tenant_id=group.tenant_id,
            group_id=group.id,
            aid=caller.aid,
            created_at=now,
            updated_at=now,
            expires_at=now + WAITS,
        )
    found.message, found.answer, found.updated_at = message, answer, now
    work.session.add(found)
    if not is_again:
        changes.note(work, caller, group, "join_requested", member_aid=caller.aid)
    return found


def _open(session: Session, group: Group, aid: str) -> JoinRequest | None:
    found = session.get(JoinRequest, (group.tenant_id, group.id, aid))
    return found if found is not None and _is_open(found) else None


def _is_open(found: JoinRequest) -> bool:
    return found.status == RequestStatus.PENDING and found.expires_at > clock.now()


def _end(work: Work, found: JoinRequest, status: RequestStatus, by: str, reason: str = "") -> None:
    found.status, found.reviewed_by, found.reason = status, by, reason
    found.updated_at = clock.now()
    work.session.add(found)
