"""A message as its readers get it: who may, and in which form on the wire (aun.md, 5.4 and 6.1).

A hosted reader gets what the server read for it. Everybody else gets the envelope as it came, on
the devices that can open it, or the plain payload where there never was an envelope.
"""

from dataclasses import dataclass
from typing import Any

from app.aun.caller import Caller
from app.aun.models import Direction
from app.aun.outgoing import Live
from app.kernel import json

RECALLED = "message.recalled"


@dataclass(frozen=True, slots=True)
class Reader:
    """A device that reads; a hosted party reads on the server."""

    aid: str
    device_id: str
    is_hosted: bool = False

    @classmethod
    def of(cls, caller: Caller) -> "Reader":
        """Who calls."""
        return cls(caller.aid, caller.device_id, caller.is_hosted)

    @classmethod
    def at(cls, live: Live) -> "Reader":
        """Whoever holds a connection."""
        return cls(live.aid, live.device_id)

    def may_have(self, row: Any) -> bool:
        """Whether a message is for this device: it can open it, or it is plain and for all."""
        if self.is_hosted:
            return True
        if row.envelope is None:
            return row.to_device in {None, "", self.device_id}
        return any(self._row(device) in row.envelope for device in {self.device_id, ""})

    def _row(self, device_id: str) -> str:
        """How a recipient's row for a device begins in compact JSON; no text can hold that."""
        return json.dumps([self.aid, device_id]).decode()[:-1] + ","


def content(row: Any, reader: Reader) -> dict[str, Any]:
    """The members that carry what a message says, where a plain one is `legacy_v1`."""
    if reader.is_hosted:
        return _read_here(row)
    if row.envelope is not None:
        return {"version": "v2", "envelope_json": row.envelope}
    payload = json.of_column(row.payload)
    return {"version": "v1", "legacy_v1": {"payload": payload or {}, "to": row.receiver_aid}}


def direct(row: Any, reader: Reader) -> dict[str, Any]:
    """A row of an inbox, read by `rows`."""
    made = {
        "seq": row.seq,
        "message_id": row.message_id,
        "from_aid": row.sender_aid,
        "sender_aid": row.sender_aid,
        "sender_device_id": row.sender_device,
        "t_server": row.sent_ms,
        "type": row.type,
        "direction": row.direction,
        "need_render": bool(row.need_render),
        "prev_peer_seq": row.prev_peer_seq,
        **content(row, reader),
    }
    if row.direction == Direction.OUTBOUND_SYNC:
        made["to"] = row.receiver_aid
    return made


def flat(row: Any, reader: Reader) -> dict[str, Any]:
    """The same for clients before 0.5.21: no envelope of its own kind, everything side by side."""
    if row.envelope is not None and not reader.is_hosted:
        payload = json.of_column(row.envelope)
    else:
        payload = json.of_column(row.payload) or {}
    return {
        "from": row.sender_aid,
        "to": row.receiver_aid,
        "seq": row.seq,
        "message_id": row.message_id,
        "type": row.type,
        "payload": payload,
        "timestamp": row.sent_ms,
        "encrypted": row.envelope is not None,
        "sender_device_id": row.sender_device,
    }


def _read_here(row: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "version": "v1",
        "legacy_v1": {"payload": json.of_column(row.payload) or {}, "to": row.receiver_aid},
        "encrypted": row.envelope is not None,
    }
    if row.unreadable:
        made["unreadable"] = row.unreadable
    return made
