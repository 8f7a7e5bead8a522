"""`message.pull` and `message.ack`: one cursor for everybody, as clients before 0.5.21 read."""

from typing import Any, Literal

from pydantic import AliasChoices, Field
from sqlmodel import Session

from app.aun import cursors, inbox, rows, shapes
from app.aun.caller import Caller
from app.aun.errors import BadParams
from app.aun.method import Method, read, write
from app.aun.methods import message_inbox
from app.aun.methods.message_inbox import cursor_of
from app.aun.models import CursorScope
from app.aun.names import Aid
from app.aun.wire import DeviceId, Params, Seq
from app.kernel.db import Work

EVERYTHING = ""  # the subject of a global cursor


class Pull(message_inbox.Pull):
    """`message.pull`: of everybody, or of one sender where it says so."""

    cursor_scope: Literal["peer"] | None = None  # type: ignore[assignment]
    sender_aid: Aid | None = None  # type: ignore[assignment]
    device_id: DeviceId | None = None


class Ack(message_inbox.Ack):
    """`message.ack`."""

    cursor_scope: Literal["peer"] | None = None  # type: ignore[assignment]
    sender_aid: Aid | None = None  # type: ignore[assignment]
    up_to_seq: Seq | None = Field(default=None, validation_alias=AliasChoices("up_to_seq", "seq"))


async def acknowledge_first(caller: Caller, params: Pull) -> Params:
    """Apply the acknowledgement that a pull of one sender carries along."""
    if params.cursor_scope is None:
        return params
    _check_sender(params.sender_aid)
    return await message_inbox.acknowledge_first(caller, params)


def pull(session: Session, caller: Caller, params: Pull) -> dict[str, Any]:
    """The first messages after a number, whoever sent them."""
    if params.cursor_scope is not None:
        _check_sender(params.sender_aid)
        return message_inbox.pull(session, caller, params)
    at = cursor_of(caller, params.device_id, params.slot_id)
    standing = _standing(session, at)
    after_seq = standing.ack_seq if params.after_seq is None else params.after_seq
    start = max(after_seq, standing.floor_seq)
    limit = min(max(params.limit, 1), inbox.MOST_ROWS)
    page = inbox.everything(session, caller, start, limit, shapes.flat)
    latest = max(standing.head_seq, after_seq)
    current = page.rows[-1]["seq"] if page.has_more else latest
    return {
        "messages": page.rows,
        "count": len(page.rows),
        "has_more": page.has_more,
        "latest_seq": latest,
        "server_ack_seq": standing.ack_seq,
        "retention_floor_seq": standing.floor_seq,
        "cursor": {"current_seq": current, "latest_seq": latest},
    }


def ack(work: Work, caller: Caller, params: Ack) -> Any:
    """Note what the caller's device has, of everybody."""
    if params.cursor_scope is not None:
        _check_sender(params.sender_aid)
        return message_inbox.ack(work, caller, params)
    if params.up_to_seq is None:
        raise BadParams("invalid params: seq: Field required")
    at = cursor_of(caller, params.device_id, params.slot_id)
    head = _standing(work.session, at).head_seq
    reached, _ = cursors.acknowledge(
        work, at, CursorScope.GLOBAL, EVERYTHING, min(params.up_to_seq, head)
    )
    return {"success": True, "ack_seq": max(reached, params.up_to_seq)}


def _standing(session: Session, at: Caller) -> Any:
    return rows.INBOX_HEAD.run(
        session.connection(),
        tenant_id=at.tenant_id,
        aid=at.aid,
        device_id=at.device_id,
        slot_key=at.slot_key,
    ).one()


def _check_sender(sender_aid: str | None) -> None:
    if sender_aid is None:
        raise BadParams("invalid params: sender_aid: Field required")


WRITES: dict[str, Method] = {"message.ack": write(ack)}
READS: dict[str, Method] = {"message.pull": read(pull, prepare=acknowledge_first)}
