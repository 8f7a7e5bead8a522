"""Who may do what in a group: the one place where it is decided.

A stranger learns nothing of a private group, not even that it exists.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlmodel import Session, col, select

from app.aun.caller import Caller
from app.aun.errors import GroupNotFound
from app.aun.group_models import Group, GroupStatus, Member, Role, Visibility
from app.aun.groups.refusals import (
    Banned,
    Blocked,
    Dissolved,
    NotAMember,
    RoleNeeded,
    Suspended,
)
from app.kernel.db import Work

RANK = {Role.MEMBER: 1, Role.ADMIN: 2, Role.OWNER: 3}


@dataclass(frozen=True, slots=True)
class Standing:
    """A caller in a group; `member` is None for a stranger who may know of it."""

    group: Group
    member: Member | None

    @property
    def rank(self) -> int:
        """0 for a stranger, then as in `RANK`."""
        return RANK[Role(self.member.role)] if self.member else 0

    @property
    def is_manager(self) -> bool:
        """Whether it is the owner or an administrator."""
        return self.rank >= RANK[Role.ADMIN]


@dataclass(frozen=True, slots=True)
class Inside:
    """A member in its group."""

    group: Group
    member: Member

    @property
    def rank(self) -> int:
        """As in `RANK`."""
        return RANK[Role(self.member.role)]

    @property
    def is_manager(self) -> bool:
        """Whether it is the owner or an administrator."""
        return self.rank >= RANK[Role.ADMIN]


def known(session: Session, caller: Caller, group_id: str) -> Standing:
    """A group as the caller may know it.

    Raises:
        GroupNotFound: there is none of this tenant, or it is private and the caller no member.
    """
    return _standing(session.get(Group, (caller.tenant_id, group_id)), session, caller)


def inside(session: Session, caller: Caller, group_id: str) -> Inside:
    """A group the caller is a member of, whatever its status.

    Raises:
        GroupNotFound, NotAMember: the caller is none.
    """
    return _inside(known(session, caller, group_id))


def held(work: Work, caller: Caller, group_id: str, *, needs: Role = Role.MEMBER) -> Inside:
    """The same, its row locked until the unit is over, for a member of that role or above.

    Raises:
        GroupNotFound, NotAMember: the caller is none.
        Dissolved: nothing changes in it any more.
        RoleNeeded: the caller's role does not do.
    """
    found = _inside(locked(work, caller, group_id))
    need(found, needs)
    return found


def locked(work: Work, caller: Caller, group_id: str) -> Standing:
    """A group a stranger may know too, its row locked until the unit is over.

    Raises:
        GroupNotFound: as for `known`.
        Dissolved: nothing changes in it any more.
    """
    group = row(work, caller.tenant_id, group_id)
    found = _standing(group, work.session, caller)
    if found.group.status == GroupStatus.DISSOLVED:
        raise Dissolved
    return found


def row(work: Work, tenant_id: str, group_id: str) -> Group | None:
    """A group's row, locked until the unit is over: its numbers are taken one after the other."""
    query = (
        select(Group)
        .where(Group.tenant_id == tenant_id, Group.id == group_id)
        .with_for_update()
        .execution_options(populate_existing=True)
    )
    return work.session.exec(query).first()


def need(standing: Inside, role: Role) -> None:
    """Return if a member's role is `role` or above.

    Raises:
        RoleNeeded: it is below.
    """
    if standing.rank < RANK[role]:
        wanted = "owner" if role == Role.OWNER else "owner or admin"
        raise RoleNeeded(f"permission denied: {wanted} required")


def may_rule(standing: Inside, other: Member) -> bool:
    """Whether a member may remove, ban or block another: only who is below it."""
    return standing.is_manager and standing.rank > RANK[Role(other.role)]


def need_rule(standing: Inside, other: Member) -> None:
    """Return if a member may remove, ban or block another.

    Raises:
        RoleNeeded: it may not.
    """
    if not may_rule(standing, other):
        raise RoleNeeded("permission denied: the role of that member is not below yours")


def need_admitting(group: Group) -> None:
    """Return if anybody can come in now.

    Raises:
        Suspended, Dissolved: nobody can.
    """
    if group.status == GroupStatus.SUSPENDED:
        raise Suspended
    if group.status == GroupStatus.DISSOLVED:
        raise Dissolved


def need_voice(status: str, role: str, *, is_banned: bool) -> None:
    """Return if a member of that role may send in a group of that status.

    Raises:
        Dissolved, Suspended, Banned: it may not.
    """
    if status == GroupStatus.DISSOLVED:
        raise Dissolved
    if is_banned:
        raise Banned
    if status == GroupStatus.SUSPENDED and role == Role.MEMBER:
        raise Suspended


def hearing(session: Session, caller: Caller, group_id: str) -> Inside:
    """A group the caller receives messages of.

    Raises:
        GroupNotFound, NotAMember: the caller is no member.
        Blocked: it, or somebody for it, turned them off.
    """
    found = inside(session, caller, group_id)
    if found.member.blocked_at is not None:
        raise Blocked
    return found


def member(session: Session, group: Group, aid: str) -> Member:
    """A member by AID.

    Raises:
        NotAMember: there is none of that name.
    """
    found = session.get(Member, (group.tenant_id, group.id, aid))
    if found is None:
        raise NotAMember("member not found")
    return found


def everybody(session: Session, group: Group) -> Sequence[Member]:
    """The members: the owner, then administrators, then the others, as they came."""
    query = select(Member).where(Member.tenant_id == group.tenant_id, Member.group_id == group.id)
    found = session.exec(query).all()
    return sorted(found, key=lambda each: (-RANK[Role(each.role)], each.joined_at, each.aid))


def aids(session: Session, tenant_id: str, group_id: str, *, hearing: bool = False) -> list[str]:
    """The members' AIDs; with `hearing` of those who receive messages."""
    query = select(Member.aid).where(Member.tenant_id == tenant_id, Member.group_id == group_id)
    if hearing:
        query = query.where(col(Member.blocked_at).is_(None))
    return list(session.exec(query))


def _standing(group: Group | None, session: Session, caller: Caller) -> Standing:
    if group is None:
        raise GroupNotFound
    found = session.get(Member, (group.tenant_id, group.id, caller.aid), populate_existing=True)
    if found is None and group.visibility == Visibility.PRIVATE:
        raise GroupNotFound
    return Standing(group, found)


def _inside(found: Standing) -> Inside:
    if found.member is None:
        raise NotAMember
    return Inside(found.group, found.member)
