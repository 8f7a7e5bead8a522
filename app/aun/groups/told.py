"""How groups, members and what happens in groups look on the wire.

Both names of a group stand everywhere; times are milliseconds.
"""

from datetime import datetime
from typing import Any

from app.aun.group_models import Group, GroupEvent, Invite, InviteCode, JoinRequest, Member
from app.kernel import clock

PREVIOUS_OWNER = "previous_owner"  # in a group's details: ours, not its clients'


def ms(moment: datetime | None) -> int:
    """Milliseconds since 1970; 0 for never."""
    return int(moment.timestamp() * 1000) if moment else 0


def both(group_id: str) -> dict[str, Any]:
    """A group's id under both names clients know it by."""
    return {"group_id": group_id, "group_aid": group_id}


def public(group: Group) -> dict[str, Any]:
    """What anybody who may find a group learns of it."""
    return {
        **both(group.id),
        "name": group.name,
        "visibility": group.visibility,
        "status": group.status,
        "description": group.description,
        "member_count": group.member_count,
        "join_mode": group.join_mode,
        "owner_aid": group.owner_aid,
        "created_at": ms(group.created_at),
        "updated_at": ms(group.updated_at),
    }


def whole(group: Group) -> dict[str, Any]:
    """What members learn."""
    return {
        **public(group),
        "creator_aid": group.creator_aid,
        "metadata": {key: part for key, part in group.details.items() if key != PREVIOUS_OWNER},
        "mention_mode": group.mention_mode,
        "message_seq": group.message_seq,
        "event_seq": group.event_seq,
    }


def member(row: Member, *, online: bool | None = None) -> dict[str, Any]:
    """A member, as other members see them."""
    shown: dict[str, Any] = {
        **both(row.group_id),
        "aid": row.aid,
        "role": row.role,
        "member_type": row.member_type,
        "joined_at": ms(row.joined_at),
        "is_banned": row.banned_at is not None,
        "is_blocked": row.blocked_at is not None,
    }
    if online is not None:
        shown["online"] = online
    return shown


def change(row: GroupEvent) -> dict[str, Any]:
    """A change, in a page and in a push alike."""
    return {
        **row.data,
        **both(row.group_id),
        "module_id": "group",
        "event_type": "group.changed",
        "event_seq": row.event_seq,
        "action": row.action,
        "actor_aid": row.actor_aid,
        "created_at": ms(row.created_at),
    }


def invite(row: Invite, group: Group | None = None) -> dict[str, Any]:
    """An invitation; several inviters share it."""
    shown: dict[str, Any] = {
        **both(row.group_id),
        "invite_id": row.id,
        "invite_ids": [row.id],
        "invitee_aid": row.invitee_aid,
        "inviter_aid": row.inviter_aids[0],
        "inviter_aids": row.inviter_aids,
        "status": row.status,
        "created_at": ms(row.created_at),
        "expires_at": ms(row.expires_at),
    }
    if group is not None:
        shown["group_name"] = group.name
    return shown


def request(row: JoinRequest) -> dict[str, Any]:
    """A wish to join."""
    return {
        **both(row.group_id),
        "aid": row.aid,
        "message": row.message,
        "answer": row.answer,
        "status": row.status,
        "reviewed_by": row.reviewed_by,
        "rejection_reason": row.reason or None,
        "created_at": ms(row.created_at),
        "updated_at": ms(row.updated_at),
        "expires_at": ms(row.expires_at),
    }


def code(row: InviteCode, text: str) -> dict[str, Any]:
    """An invite code, for whoever may see it."""
    return {
        **both(row.group_id),
        "code": text,
        "max_uses": row.max_uses,
        "used_count": row.used_count,
        "status": _code_status(row),
        "created_by": row.created_by,
        "created_at": ms(row.created_at),
        "expires_at": ms(row.expires_at),
    }


def _code_status(row: InviteCode) -> str:
    if row.revoked_at is not None:
        return "revoked"
    if row.used_count >= row.max_uses:
        return "used"
    return "expired" if row.expires_at <= clock.now() else "active"
