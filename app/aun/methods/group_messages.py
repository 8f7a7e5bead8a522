"""Methods about what is said in a group, and what happened in it."""

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, Field, PrivateAttr
from sqlmodel import Session

from app.aun import method
from app.aun.caller import Caller
from app.aun.errors import GroupNotFound
from app.aun.groups import changes, cursors, membership, pages, recalling, sending
from app.aun.groups.membership import Inside
from app.aun.groups.sending import Ready
from app.aun.groups.told import both, change
from app.aun.method import Cost
from app.aun.methods.group import OfGroup
from app.aun.models import ID_LENGTH, CursorScope
from app.aun.wire import DeviceId, MessageId, Payload, Seq
from app.kernel import db, ids
from app.kernel.db import Work

PAGE, LONGEST_PAGE = 50, 200
LONGEST_EVENTS = 50
MOST_RECALLED = 100

Limit = Annotated[int, Field(ge=1)]


class Send(OfGroup):
    """A message: plain, or an envelope."""

    payload: Payload = Field(validation_alias=AliasChoices("payload", "content", "envelope"))
    message_id: MessageId = Field(default_factory=lambda: f"gm-{ids.ulid().lower()}")
    type: Annotated[str, Field(max_length=ID_LENGTH)] = ""
    need_render: bool = True
    encrypt: bool | None = None

    _made: Ready | None = PrivateAttr(default=None)

    @property
    def made(self) -> Ready:
        """What is stored; plain, where nothing else was kept."""
        return self._made or Ready(self.payload)

    def keep(self, made: Ready) -> "Send":
        """The same, opened or sealed."""
        self._made = made
        return self


async def _ready(caller: Caller, params: Send) -> Send:
    made = await sending.ready(
        caller, params.group_id, params.message_id, params.payload, params.encrypt
    )
    return params.keep(made)


def send(work: Work, caller: Caller, params: Send) -> dict[str, Any]:
    """Store a message; thereby it is sent."""
    return sending.store(
        work,
        caller,
        params.group_id,
        params.message_id,
        params.made,
        type=params.type,
        need_render=params.need_render,
    )


class OfSlot(OfGroup):
    """A call for one of the caller's slots; its own where it names none."""

    device_id: DeviceId | None = None
    slot_id: DeviceId | None = None

    def reader(self, caller: Caller) -> cursors.Reader:
        """The slot."""
        return cursors.reader(caller, self.device_id, self.slot_id)


class Pull(OfSlot):
    """Which messages are wanted."""

    after_seq: Seq = Field(
        default=0, validation_alias=AliasChoices("after_seq", "after_message_seq")
    )
    limit: Limit = PAGE
    ack_up_to_seq: Seq | None = None
    window_mode: Literal["tail"] | None = None


async def _acked(caller: Caller, params: Pull) -> Pull:
    """Apply an acknowledgement that came along, in a transaction of its own."""
    if params.ack_up_to_seq:
        await db.transaction(_ack, caller, params, params.ack_up_to_seq, CursorScope.GROUP)
    return params


def pull(session: Session, caller: Caller, params: Pull) -> dict[str, Any]:
    """A page of messages, as the device may see them."""
    found = membership.hearing(session, caller, params.group_id)
    reader = params.reader(caller)
    look = pages.view(session, caller, reader.device_id, found.group, found.member)
    limit = min(params.limit, LONGEST_PAGE)
    told = _bounds(session, reader, found, look)
    if params.window_mode == "tail":
        shown, start = pages.tail(session, look, params.after_seq, limit)
        window: dict[str, Any] = {"head_seq": look.head, "covered_through_seq": look.head}
        window |= {"window_mode": "tail", "window_start_seq": start, "has_more": False}
        return {**told, **window, "messages": shown, "count": len(shown), "limit": limit}
    shown, has_more = pages.forward(session, look, params.after_seq, limit)
    return {
        **told,
        "messages": shown,
        "has_more": has_more,
        "count": len(shown),
        "limit": limit,
    }


class Ack(OfSlot):
    """Up to where a slot has the messages."""

    up_to_seq: Seq = Field(validation_alias=AliasChoices("up_to_seq", "msg_seq"))


def ack(work: Work, caller: Caller, params: Ack) -> dict[str, Any]:
    """Move a slot's place forward, inside what its member may see."""
    value = _ack(work, caller, params, params.up_to_seq, CursorScope.GROUP)
    return {
        **both(params.group_id),
        "success": True,
        "ack_seq": value,
        "effective_ack_seq": value,
        "cursor": value,
    }


class History(OfSlot):
    """Before which message."""

    before_seq: Annotated[int, Field(ge=1)]
    limit: Limit = PAGE


def history(session: Session, caller: Caller, params: History) -> dict[str, Any]:
    """Older messages; reading them moves nothing."""
    found = membership.hearing(session, caller, params.group_id)
    reader = params.reader(caller)
    look = pages.view(session, caller, reader.device_id, found.group, found.member)
    limit = min(params.limit, LONGEST_PAGE)
    shown, has_older = pages.backward(session, look, params.before_seq, limit)
    first = shown[0]["seq"] if shown else None
    floor = pages.floor(session, found.group)
    return {
        **both(found.group.id),
        "messages": shown,
        "window_start_seq": first,
        "next_before_seq": first,
        "has_older": has_older,
        "retention_floor_seq": floor,
        "earliest_available_seq": look.after + 1,
    }


class Recall(OfGroup):
    """Which messages are taken back."""

    message_ids: Annotated[list[MessageId], Field(min_length=1, max_length=MOST_RECALLED)]
    reason: Annotated[str, Field(max_length=255)] = ""


def recall(work: Work, caller: Caller, params: Recall) -> dict[str, Any]:
    """Take back one's own messages of the last two minutes."""
    standing = membership.inside(work.session, caller, params.group_id)
    group = membership.row(work, caller.tenant_id, standing.group.id)
    if group is None:
        raise GroupNotFound
    return recalling.recall(work, caller, group, params.message_ids, params.reason)


class PullEvents(OfSlot):
    """Which changes are wanted."""

    after_event_seq: Seq = 0
    limit: Limit = LONGEST_EVENTS


def pull_events(session: Session, caller: Caller, params: PullEvents) -> dict[str, Any]:
    """A page of what happened in a group, from one's own coming on."""
    found = membership.inside(session, caller, params.group_id)
    group, start = found.group, found.member.join_event_seq
    limit = min(params.limit, LONGEST_EVENTS)
    page, has_more = changes.after(session, group, max(params.after_event_seq, start), limit)
    reader = params.reader(caller)
    current = cursors.acked(session.connection(), reader, CursorScope.GROUP_EVENT, group.id)
    return {
        **both(group.id),
        "events": [change(each) for each in page],
        "has_more": has_more,
        "latest_event_seq": group.event_seq,
        "limit": limit,
        "retention_floor_event_seq": 0,
        "earliest_available_event_seq": start + 1,
        "cursor": {
            "current_seq": current,
            "join_seq": start,
            "latest_seq": group.event_seq,
            "retention_floor_seq": 0,
            "unread_count": max(0, group.event_seq - max(current, start)),
        },
    }


class AckEvents(OfSlot):
    """Up to where a slot has the changes."""

    event_seq: Seq


def ack_events(work: Work, caller: Caller, params: AckEvents) -> dict[str, Any]:
    """Move a slot's place among the changes forward."""
    value = _ack(work, caller, params, params.event_seq, CursorScope.GROUP_EVENT)
    return {
        **both(params.group_id),
        "success": True,
        "ack_seq": value,
        "effective_ack_seq": value,
        "cursor": value,
    }


def _ack(work: Work, caller: Caller, params: OfSlot, up_to: int, scope: CursorScope) -> int:
    found = membership.inside(work.session, caller, params.group_id)
    return cursors.acknowledge(
        work.connection, params.reader(caller), scope, found.group, found.member, up_to
    )


def _bounds(
    session: Session, reader: cursors.Reader, found: Inside, look: pages.View
) -> dict[str, Any]:
    """Where a page stands: what is there, what this slot has, what it may see."""
    group = found.group
    floor = pages.floor(session, group)
    current = cursors.acked(session.connection(), reader, CursorScope.GROUP, group.id)
    return {
        **both(group.id),
        "latest_message_seq": group.message_seq,
        "latest_seq": group.message_seq,
        "retention_floor_message_seq": floor,
        "earliest_available_message_seq": look.after + 1,
        "mention_mode": group.mention_mode,
        "cursor": {
            "current_seq": current,
            "join_seq": found.member.join_seq,
            "latest_seq": group.message_seq,
            "retention_floor_seq": floor,
            "unread_count": max(0, group.message_seq - max(current, look.after)),
        },
    }


WRITES = {
    "group.send": method.write(send, cost=Cost.SEND, prepare=_ready),
    "group.v2.send": method.write(send, cost=Cost.SEND, prepare=_ready),
    "group.v2.ack": method.write(ack),
    "group.ack_messages": method.write(ack),
    "group.recall": method.write(recall),
    "group.ack_events": method.write(ack_events),
}
READS = {
    "group.v2.pull": method.read(pull, prepare=_acked),
    "group.pull": method.read(pull, prepare=_acked),
    "group.history": method.read(history),
    "group.pull_events": method.read(pull_events),
}
