"""Taking a message back: what it said goes, that it was said stays (aun.md, 5.5)."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from app.aun import rows
from app.aun.caller import Caller
from app.aun.events import MessageRecalled
from app.aun.shapes import RECALLED
from app.identity.facts import IdentityFact
from app.kernel import clock, event_log
from app.kernel.db import Work

ALLOWED = timedelta(seconds=120)


def recall(
    work: Work, caller: Caller, message_ids: Sequence[str]
) -> tuple[list[str], list[dict[str, str]]]:
    """Make tombstones of the caller's direct messages: which, and the others with the reason."""
    recalled: list[str] = []
    errors: list[dict[str, str]] = []
    for message_id in dict.fromkeys(message_ids):
        if error := _recall(work, caller, message_id):
            errors.append({"message_id": message_id, "error": error})
        else:
            recalled.append(message_id)
    return recalled, errors


def _recall(work: Work, caller: Caller, message_id: str) -> str | None:
    key = {"tenant_id": caller.tenant_id, "message_id": message_id}
    found = rows.SENT.run_with(work.connection, key | {"sender_aid": caller.aid}).first()
    if found is None or found.receiver_aid is None:
        received = rows.IN_INBOX.run_with(work.connection, key | {"aid": caller.aid}).first()
        return "not_sender" if received else "not_found"
    if found.recalled_at is not None:
        return "already_recalled"
    now_ms = int(clock.now().timestamp() * 1000)
    if now_ms - found.sent_ms > ALLOWED // timedelta(milliseconds=1):
        return "expired"
    tombstone = {"type": RECALLED, "message_ids": [message_id], "recalled_at": now_ms}
    bury(work, caller, found, tombstone)
    work.announce(
        MessageRecalled(
            tenant_id=caller.tenant_id,
            tombstone_id=found.id,
            ids=(found.id,),
            conversation_id=found.conversation_id,
            sender_aid=caller.aid,
            receiver_aid=found.receiver_aid,
        )
    )
    return None


def bury(work: Work, caller: Caller, message: Any, tombstone: dict[str, Any]) -> None:
    """Put a tombstone in a message's place; only once, whoever tries at the same time.

    `message` has its `id` and `conversation_id`; the trail of a hosted sender keeps ids alone.
    """
    rows.BURY.run(
        work.connection,
        tenant_id=caller.tenant_id,
        id=message.id,
        type=tombstone["type"],
        payload=tombstone,
        recalled_at=clock.now(),
    )
    event_log.append(
        work,
        caller.tenant_id,
        RECALLED,
        message.conversation_id,
        {"message": message.id},
        topic=message.conversation_id,
    )
    if caller.principal is not None:
        work.announce(
            IdentityFact(
                tenant_id=caller.tenant_id,
                action="aun.message.recall",
                actor=caller.principal,
                target_type="message",
                target_id=message.id,
            )
        )
