"""`message.peers`, `message.v2.*`, `message.history`: a device reads its inbox by sender."""

from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field
from sqlmodel import Session

from app.aun import acknowledging, delivered, inbox, volatile
from app.aun.caller import Caller, Door, slot_key
from app.aun.errors import BadParams
from app.aun.inbox import Page, Standing
from app.aun.method import Method, read, write
from app.aun.names import Aid
from app.aun.wire import DeviceId, MessageId, Params, Result, Seq
from app.kernel import db
from app.kernel.db import Work

PEERS_PER_PAGE = 100
MOST_SHORT = 1_000
Token = Annotated[str, Field(max_length=400)]


class Peers(Params):
    """`message.peers`."""

    filter: Literal["pending", "all"] = "pending"
    limit: int | None = None
    page_token: Token | None = None


class OfPeer(Params):
    """What names one sender's part of the inbox, and a cursor of the caller's own."""

    cursor_scope: Literal["peer"]
    sender_aid: Aid
    device_id: DeviceId | None = None
    slot_id: DeviceId | None = None


class Pull(OfPeer):
    """`message.v2.pull`."""

    after_seq: Seq | None = None
    limit: int = inbox.MOST_ROWS
    ack_up_to_seq: Seq | None = None
    window_mode: Literal["tail"] | None = None
    after_volatile_cursor: Token | None = None


class Ack(OfPeer):
    """`message.v2.ack`."""

    up_to_seq: Seq | None = None
    volatile_cursors: list[Token] = Field(default_factory=list, max_length=MOST_SHORT)
    volatile_cursor: Token | None = None
    volatile_ids: list[MessageId] = Field(default_factory=list, max_length=MOST_SHORT)

    @property
    def cursors(self) -> list[str]:
        """Of messages that live for seconds."""
        return [*self.volatile_cursors, *([self.volatile_cursor] if self.volatile_cursor else [])]


class History(OfPeer):
    """`message.history`."""

    before_seq: Seq | None = None
    snapshot_head_seq: Seq | None = None
    limit: int = inbox.MOST_ROWS


class Acked(Result):
    """How far the cursor is; never less than what was asked for."""

    success: Literal[True] = True
    cursor_scope: Literal["peer"] = "peer"
    sender_aid: str
    peer_ack_seq: int
    effective_ack_seq: int
    volatile_ack: dict[str, list[str]] | None = None


def cursor_of(caller: Caller, device_id: str | None, slot_id: str | None) -> Caller:
    """The caller with the cursor it asks for; whose inbox is read stays the connection's."""
    if caller.door is not Door.SOCKET:
        return caller
    device = caller.device_id if device_id is None else device_id
    slot = caller.slot_key if slot_id is None else slot_key(slot_id)
    return replace(caller, device_id=device, slot_key=slot)


def peers(session: Session, caller: Caller, params: Peers) -> dict[str, Any]:
    """Tell whose messages wait, or who ever wrote."""
    made: dict[str, Any] = {
        "cursor_scope": "peer",
        "catalog_ready": True,
        "bootstrap_floor_seq": 0,  # never another number: clients keep it
        "receiver_aid": caller.aid,
        "device_id": caller.device_id,
    }
    if params.filter == "pending":
        if params.limit is not None or params.page_token is not None:
            raise BadParams("pending is always complete: it has no pages")
        return made | {"peers": _pending(session, caller)}
    limit = _clamped(params.limit or PEERS_PER_PAGE)
    found = inbox.senders(session, caller, params.page_token or "", limit + 1)
    short = volatile.senders(session.connection(), caller)
    made["peers"] = [_peer(each, each.sender_aid in short) for each in found[:limit]]
    made["has_more"] = len(found) > limit
    if made["has_more"]:
        made["next_page_token"] = found[limit - 1].sender_aid
    return made


async def acknowledge_first(caller: Caller, params: Pull) -> Pull:
    """Apply the acknowledgement that a pull carries along, before it reads."""
    if params.ack_up_to_seq is not None:
        at = cursor_of(caller, params.device_id, params.slot_id)
        await db.transaction(acknowledging.acknowledge, at, params.sender_aid, params.ack_up_to_seq)
    return params


def pull(session: Session, caller: Caller, params: Pull) -> dict[str, Any]:
    """The messages of one sender after a number; or, as a window, the last ones."""
    at = cursor_of(caller, params.device_id, params.slot_id)
    standing = inbox.standing(session, at, params.sender_aid)
    after_seq = standing.ack_seq if params.after_seq is None else params.after_seq
    if params.window_mode == "tail":
        return _tail(session, caller, params, standing, after_seq)
    start = max(after_seq, standing.floor_seq)
    limit = _clamped(params.limit)
    page = inbox.forward(session, caller, params.sender_aid, start, limit)
    _note(caller, standing, page)
    head = max(standing.head_seq, start)
    covered = page.rows[-1]["seq"] if page.has_more else head
    short = volatile.page(
        session.connection(),
        at,
        params.sender_aid,
        params.after_volatile_cursor,
        limit - len(page.rows),
        inbox.MOST_BYTES - page.size,
        is_alone=not page.rows,
    )
    made = {
        **_common(params.sender_aid, standing, page, head),
        "scan_after_seq": start,
        "covered_through_seq": covered,
        "next_after_seq": covered,
        "persistent_has_more": page.has_more,
        "volatile_has_more": short.has_more,
        "has_more": page.has_more or short.has_more,
    }
    made["messages"] = page.rows + short.rows
    if short.cursor is not None:
        made["latest_volatile_cursor"] = short.cursor
    if page.next_seq is not None:
        made["next_pending_seq"] = page.next_seq
    return made


def history(session: Session, caller: Caller, params: History) -> dict[str, Any]:
    """Older messages of one sender, whatever was acknowledged."""
    standing = inbox.standing(session, caller, params.sender_aid)
    before = inbox.LAST if params.before_seq is None else params.before_seq
    if params.snapshot_head_seq is not None:
        before = min(before, params.snapshot_head_seq + 1)
    limit = _clamped(params.limit)
    page = inbox.backward(session, caller, params.sender_aid, standing.floor_seq, before, limit)
    first = page.rows[0]["seq"] if page.rows else None
    made = {
        **_common(params.sender_aid, standing, page, standing.head_seq),
        "window_start_seq": first,
        "next_before_seq": first,
        "has_older": page.has_more,
    }
    if params.snapshot_head_seq is not None:
        made["snapshot_head_seq"] = params.snapshot_head_seq
    return made


def ack(work: Work, caller: Caller, params: Ack) -> Acked:
    """Note what the caller's device has."""
    at = cursor_of(caller, params.device_id, params.slot_id)
    asked = params.up_to_seq or 0
    reached = acknowledging.acknowledge(work, at, params.sender_aid, asked)
    told = None
    if params.cursors or params.volatile_ids:
        told = volatile.acknowledge(
            work.connection, at, params.sender_aid, params.cursors, params.volatile_ids
        )
    return Acked(
        sender_aid=params.sender_aid,
        peer_ack_seq=reached,
        effective_ack_seq=max(reached, asked),
        volatile_ack=told,
    )


def _tail(
    session: Session, caller: Caller, params: Pull, standing: Standing, after_seq: int
) -> dict[str, Any]:
    """The newest messages after a number, with no claim about those before the window."""
    start, head = max(after_seq, standing.floor_seq), max(standing.head_seq, after_seq)
    limit = _clamped(params.limit)
    page = inbox.backward(session, caller, params.sender_aid, start, head + 1, limit)
    _note(caller, standing, page)
    if head <= after_seq:
        first = head
    else:
        first = page.rows[0]["seq"] if page.has_more else min(start + 1, head)
    return {
        **_common(params.sender_aid, standing, page, head),
        "window_mode": "tail",
        "covered_through_seq": head,
        "window_start_seq": first,
    }


def _note(caller: Caller, standing: Standing, page: Page) -> None:
    """What a page brings has reached a device; its sender may see that here."""
    if standing.is_hosted and page.rows and page.rows[-1]["seq"] > standing.delivered_seq:
        last_seq = page.rows[-1]["seq"]
        delivered.note(caller.tenant_id, caller.aid, standing.sender_aid, last_seq)


def _common(sender_aid: str, standing: Standing, page: Page, head: int) -> dict[str, Any]:
    rendered = sum(row["need_render"] for row in page.rows)
    return {
        "cursor_scope": "peer",
        "sender_aid": sender_aid,
        "messages": page.rows,
        "head_seq": head,
        "latest_seq": head,
        "server_ack_seq": standing.ack_seq,
        "retention_floor_seq": standing.floor_seq,
        "earliest_available_seq": standing.floor_seq + 1,
        "count": len(page.rows),
        "page_need_render_count": rendered,
        "page_non_render_count": len(page.rows) - rendered,
    }


def _pending(session: Session, caller: Caller) -> list[dict[str, Any]]:
    """Whoever sent something that is not acknowledged, for ever or for seconds."""
    short = volatile.senders(session.connection(), caller)
    found = {each.sender_aid: each for each in inbox.pending(session, caller)}
    for sender_aid in short - found.keys():
        found[sender_aid] = inbox.standing(session, caller, sender_aid)
    return [_peer(found[aid], aid in short) for aid in sorted(found)]


def _peer(standing: Standing, has_short: bool) -> dict[str, Any]:
    return {
        "sender_aid": standing.sender_aid,
        "head_seq": standing.head_seq,
        "server_ack_seq": standing.ack_seq,
        "initial_after_seq": standing.ack_seq,
        "initialization_source": "peer",
        "next_pending_seq": standing.ack_seq,
        "volatile_has_more": has_short,
        "retention_floor_seq": standing.floor_seq,
        "earliest_available_seq": standing.floor_seq + 1,
    }


def _clamped(limit: int) -> int:
    return min(max(limit, 1), inbox.MOST_ROWS)


WRITES: dict[str, Method] = {"message.v2.ack": write(ack)}
READS: dict[str, Method] = {
    "message.peers": read(peers),
    "message.v2.pull": read(pull, prepare=acknowledge_first),
    "message.history": read(history),
}
