"""Taking messages of a group back: their text goes, and two marks say so.

One stands where the message was, for whoever has not read it; one is a new message, for whoever
has. Both name all that went at once, so a client that meets several of them tells it once.
"""

from collections.abc import Sequence
from typing import Any

from sqlmodel import col, select

from app.aun import conversations
from app.aun import recalling as buried
from app.aun.caller import Caller
from app.aun.events import MessageRecalled
from app.aun.group_models import Group, GroupStatus
from app.aun.groups.told import both, ms
from app.aun.models import Message
from app.kernel import clock, event_log, ids
from app.kernel.db import Work

RECALLED = "group.message_recalled"  # the type of both marks


def recall(
    work: Work, caller: Caller, group: Group, message_ids: Sequence[str], reason: str
) -> dict[str, Any]:
    """Take back what the caller may of a group whose row is locked; the others with a reason."""
    query = select(Message).where(
        Message.tenant_id == group.tenant_id,
        Message.group_id == group.id,
        col(Message.message_id).in_(message_ids),
    )
    found: dict[str, list[Message]] = {}
    for row in work.session.exec(query):
        found.setdefault(row.message_id, []).append(row)
    going: list[Message] = []
    errors: list[dict[str, str]] = []
    for message_id in dict.fromkeys(message_ids):
        gone, error = _one(caller, group, found.get(message_id, []))
        if gone is not None:
            going.append(gone)
        else:
            errors.append({"message_id": message_id, "error": error})
    if going:
        _mark(work, caller, group, sorted(going, key=lambda each: each.seq or 0), reason)
    recalled = [row.message_id for row in going]
    return {
        **both(group.id),
        "success": True,
        "accepted": recalled,
        "recalled": recalled,
        "errors": errors,
    }


def _one(caller: Caller, group: Group, rows: list[Message]) -> tuple[Message | None, str]:
    """The row that goes, or why none does; an id is unique with its sender alone."""
    if not rows:
        return None, "not_found"
    row = next((each for each in rows if each.sender_aid == caller.aid), None)
    if row is None:
        return None, "not_sender"
    if row.recalled_at is not None or row.type == RECALLED:
        return None, "already_recalled"
    if clock.now() - row.sent_at > buried.ALLOWED:
        return None, "expired"
    if group.status != GroupStatus.ACTIVE:
        return None, "group_inactive"
    return row, ""


def _mark(work: Work, caller: Caller, group: Group, going: Sequence[Message], reason: str) -> None:
    now = clock.now()
    conversation_id = conversations.of_group(work, group.tenant_id, group.id, group.creator_aid)
    said = {
        "type": RECALLED,
        "message_ids": [row.message_id for row in going],
        "target_message_seqs": [row.seq for row in going],
        "recalled_by": caller.aid,
        "recalled_at": ms(now),
        "reason": reason,
    }
    for row in going:
        buried.bury(work, caller, row, said)
    log_seq = event_log.newest(work.session, group.tenant_id).seq
    notice = _notice(caller, group, conversation_id, log_seq, said)
    work.session.add(notice)
    work.session.add(group)
    work.session.flush()
    work.announce(
        MessageRecalled(
            tenant_id=group.tenant_id,
            tombstone_id=notice.id,
            ids=tuple(row.id for row in going),
            conversation_id=conversation_id,
            sender_aid=caller.aid,
            group_id=group.id,
        )
    )


def _notice(
    caller: Caller, group: Group, conversation_id: str, log_seq: int, said: dict[str, Any]
) -> Message:
    group.message_seq += 1
    made = ids.ulid()
    now = clock.now()
    return Message(
        tenant_id=group.tenant_id,
        id=made,
        conversation_id=conversation_id,
        sender_aid=caller.aid,
        sender_device=caller.device_id,
        message_id=f"grm-{made.lower()}",
        group_id=group.id,
        seq=group.message_seq,
        log_seq=log_seq,
        type=RECALLED,
        payload=said,
        need_render=False,
        mention_mode=group.mention_mode,
        sent_at=now,
        sent_ms=ms(now),
        recalled_at=now,
    )
