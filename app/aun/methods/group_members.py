"""Methods about who is in a group: added, listed, promoted, banned, blocked, gone."""

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, Field
from sqlmodel import Session

from app.aun import method, presence
from app.aun.caller import Caller
from app.aun.errors import BadParams
from app.aun.group_models import Group, Member, Role
from app.aun.groups import changes, joining, membership, roster
from app.aun.groups.membership import Inside
from app.aun.groups.refusals import OwnerStays
from app.aun.groups.told import both, ms, public, whole
from app.aun.groups.told import member as told
from app.aun.methods.group import LONGEST_PAGE, OfGroup
from app.aun.names import Aid
from app.kernel import clock
from app.kernel.db import Work

Reason = Annotated[str, Field(max_length=500)]


class Page(OfGroup):
    """A page of members."""

    page: Annotated[int, Field(ge=1)] = 1
    size: Annotated[int, Field(ge=1)] = LONGEST_PAGE
    role: Literal["owner", "admin", "member"] | None = None


class Add(OfGroup):
    """Somebody to be added."""

    aid: Aid
    role: Literal["admin", "member"] = "member"
    member_type: Literal["human", "ai", ""] = ""


class OfMember(OfGroup):
    """A member, by any of the names clients use for it."""

    aid: Aid = Field(validation_alias=AliasChoices("aid", "subject"))


class Ban(OfMember):
    """A member to be banned or blocked."""

    reason: Reason = ""


class SetRole(OfMember):
    """What a member is to be."""

    role: Literal["admin", "member"]


def add_member(work: Work, caller: Caller, params: Add) -> dict[str, Any]:
    """Make somebody a member at once; an administrator is made by the owner alone."""
    found = membership.held(work, caller, params.group_id, needs=Role.ADMIN)
    role = Role(params.role)
    if role == Role.ADMIN:
        membership.need(found, Role.OWNER)
    membership.need_admitting(found.group)
    made = joining.let_in(
        work,
        caller,
        found.group,
        params.aid,
        "member_added",
        role=role,
        member_type=params.member_type,
    )
    return {**both(params.group_id), "group": whole(found.group), "member": told(made)}


def get_members(session: Session, caller: Caller, params: Page) -> dict[str, Any]:
    """The members, the owner first."""
    group = membership.inside(session, caller, params.group_id).group
    everybody = membership.everybody(session, group)
    chosen = [each for each in everybody if params.role in {None, each.role}]
    size = min(params.size, LONGEST_PAGE)
    page = chosen[(params.page - 1) * size : params.page * size]
    items = _with_presence(session, group, page)
    return {
        **both(group.id),
        "members": items,
        "items": items,
        "total": len(chosen),
        "count": len(items),
        "page": params.page,
        "size": size,
    }


def get_online_members(session: Session, caller: Caller, params: OfGroup) -> dict[str, Any]:
    """Who of the members is there now."""
    group = membership.inside(session, caller, params.group_id).group
    everybody = _with_presence(session, group, list(membership.everybody(session, group)))
    items = [each for each in everybody if each["online"]]
    return {
        **both(group.id),
        "members": items,
        "items": items,
        "online_members": items,
        "online_count": len(items),
        "total": len(everybody),
    }


def get_admins(session: Session, caller: Caller, params: OfGroup) -> dict[str, Any]:
    """The owner and the administrators."""
    group = membership.inside(session, caller, params.group_id).group
    everybody = membership.everybody(session, group)
    items = [told(each) for each in everybody if each.role != Role.MEMBER]
    return {**both(group.id), "admins": items, "items": items, "total": len(items)}


def get_master(session: Session, caller: Caller, params: OfGroup) -> dict[str, Any]:
    """Who owns it."""
    group = membership.known(session, caller, params.group_id).group
    return {**both(group.id), "owner_aid": group.owner_aid, "master_aid": group.owner_aid}


def check_membership(session: Session, caller: Caller, params: OfGroup) -> dict[str, Any]:
    """Whether the caller is in it, and as what."""
    found = membership.known(session, caller, params.group_id)
    role = found.member.role if found.member else None
    return {**both(found.group.id), "is_member": found.member is not None, "role": role}


def kick(work: Work, caller: Caller, params: OfMember) -> dict[str, Any]:
    """Remove a member whose role is below the caller's."""
    found = membership.held(work, caller, params.group_id, needs=Role.ADMIN)
    gone = membership.member(work.session, found.group, params.aid)
    if gone.role == Role.OWNER:
        raise OwnerStays
    membership.need_rule(found, gone)
    roster.remove(work, caller, found.group, gone, "member_removed")
    return {
        **both(params.group_id),
        "group": whole(found.group),
        "removed_aid": params.aid,
    }


def leave(work: Work, caller: Caller, params: OfGroup) -> dict[str, Any]:
    """Go; the owner cannot."""
    found = membership.held(work, caller, params.group_id)
    if found.member.role == Role.OWNER:
        raise OwnerStays
    roster.remove(work, caller, found.group, found.member, "member_left")
    return {**both(params.group_id), "group": public(found.group), "left_aid": caller.aid}


def set_role(work: Work, caller: Caller, params: SetRole) -> dict[str, Any]:
    """Make a member an administrator, or the other way round; the owner alone does."""
    found = membership.held(work, caller, params.group_id, needs=Role.OWNER)
    other = membership.member(work.session, found.group, params.aid)
    if other.role == Role.OWNER:
        raise BadParams("the owner's role changes by group.transfer_owner alone")
    before = other.role
    if before != params.role:
        other.role = Role(params.role)
        work.session.add(other)
        changes.note(
            work,
            caller,
            found.group,
            "role_changed",
            member_aid=other.aid,
            role=params.role,
            old_role=before,
            new_role=params.role,
        )
    return {
        **both(params.group_id),
        "group": whole(found.group),
        "member": told(other),
        "old_role": before,
        "new_role": params.role,
    }


def ban(work: Work, caller: Caller, params: Ban) -> dict[str, Any]:
    """Let a member receive and not send."""
    found, other = _ruled(work, caller, params)
    if other.banned_at is None:
        other.banned_at, other.ban_reason = clock.now(), params.reason
        work.session.add(other)
        changes.note(work, caller, found.group, "member_banned", member_aid=other.aid)
    return {**both(params.group_id), "ban": _banned(other, caller.aid)}


def unban(work: Work, caller: Caller, params: OfMember) -> dict[str, Any]:
    """Let them send again, or come back if they left."""
    found = membership.held(work, caller, params.group_id, needs=Role.ADMIN)
    group = found.group
    other = work.session.get(Member, (group.tenant_id, group.id, params.aid))
    if other is not None and other.banned_at is not None:
        membership.need_rule(found, other)
        other.banned_at, other.ban_reason = None, ""
        work.session.add(other)
        changes.note(work, caller, group, "member_unbanned", member_aid=params.aid)
    elif params.aid in group.shut_out:
        group.shut_out = [aid for aid in group.shut_out if aid != params.aid]
        changes.note(work, caller, group, "member_unbanned", member_aid=params.aid)
    elif other is None:
        membership.member(work.session, group, params.aid)
    return {**both(group.id), "subject": params.aid, "status": "removed"}


def get_banlist(session: Session, caller: Caller, params: OfGroup) -> dict[str, Any]:
    """Who is banned, those who left among them."""
    found = membership.inside(session, caller, params.group_id)
    membership.need(found, Role.ADMIN)
    inside = [
        _banned(each, "")
        for each in membership.everybody(session, found.group)
        if each.banned_at is not None
    ]
    gone = [{**both(found.group.id), "subject": aid} for aid in found.group.shut_out]
    return _list(found.group, [*inside, *gone])


def block(work: Work, caller: Caller, params: Ban) -> dict[str, Any]:
    """Let a member, oneself above all, receive nothing."""
    found, other = _own_or_ruled(work, caller, params)
    if other.blocked_at is None:
        other.blocked_at = clock.now()
        work.session.add(other)
        changes.note(work, caller, found.group, "member_blocked", member_aid=other.aid)
    shown = _blocked(other) | {"blocked_by": caller.aid, "reason": params.reason}
    return {**both(params.group_id), "block": shown}


def unblock(work: Work, caller: Caller, params: OfMember) -> dict[str, Any]:
    """Let them receive again, what came meanwhile included."""
    found, other = _own_or_ruled(work, caller, params)
    if other.blocked_at is not None:
        other.blocked_at = None
        work.session.add(other)
        changes.note(work, caller, found.group, "member_unblocked", member_aid=other.aid)
    return {**both(params.group_id), "subject": params.aid, "status": "removed"}


def get_blocklist(session: Session, caller: Caller, params: OfGroup) -> dict[str, Any]:
    """Who receives nothing."""
    found = membership.inside(session, caller, params.group_id)
    membership.need(found, Role.ADMIN)
    items = [
        _blocked(each)
        for each in membership.everybody(session, found.group)
        if each.blocked_at is not None
    ]
    return _list(found.group, items)


def _ruled(work: Work, caller: Caller, params: OfMember) -> tuple[Inside, Member]:
    found = membership.held(work, caller, params.group_id, needs=Role.ADMIN)
    other = membership.member(work.session, found.group, params.aid)
    membership.need_rule(found, other)
    return found, other


def _own_or_ruled(work: Work, caller: Caller, params: OfMember) -> tuple[Inside, Member]:
    if params.aid != caller.aid:
        return _ruled(work, caller, params)
    found = membership.held(work, caller, params.group_id)
    return found, found.member


def _with_presence(session: Session, group: Group, page: list[Member]) -> list[dict[str, Any]]:
    there = presence.online(session, group.tenant_id, [each.aid for each in page])
    return [told(each, online=each.aid in there) for each in page]


def _banned(row: Member, by: str) -> dict[str, Any]:
    return {
        **both(row.group_id),
        "subject": row.aid,
        "banned_by": by,
        "reason": row.ban_reason,
        "expires_at": 0,
        "created_at": ms(row.banned_at),
    }


def _blocked(row: Member) -> dict[str, Any]:
    return {**both(row.group_id), "subject": row.aid, "created_at": ms(row.blocked_at)}


def _list(group: Group, items: list[dict[str, Any]]) -> dict[str, Any]:
    return {**both(group.id), "items": items, "total": len(items), "page": 1, "size": len(items)}


WRITES = {
    "group.add_member": method.write(add_member),
    "group.kick": method.write(kick),
    "group.remove_member": method.write(kick),
    "group.leave": method.write(leave),
    "group.set_role": method.write(set_role),
    "group.ban": method.write(ban),
    "group.unban": method.write(unban),
    "group.block": method.write(block),
    "group.unblock": method.write(unblock),
}
READS = {
    "group.get_members": method.read(get_members),
    "group.get_online_members": method.read(get_online_members),
    "group.get_admins": method.read(get_admins),
    "group.get_master": method.read(get_master),
    "group.check_membership": method.read(check_membership),
    "group.get_banlist": method.read(get_banlist),
    "group.get_blocklist": method.read(get_blocklist),
}
