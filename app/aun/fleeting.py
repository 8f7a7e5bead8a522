"""A message that lives for seconds, and how it goes out (aun.md, 5.6)."""

from dataclasses import dataclass, field
from typing import Any

from app.kernel import json

SHORTEST_S, LONGEST_S = 1, 3_600


@dataclass(slots=True, kw_only=True)
class Fleeting:
    """A message as it is kept.

    Attributes:
        number: ascending for its receiver.
        has: devices and slots that acknowledged it.
    """

    tenant_id: str
    sender_aid: str
    receiver_aid: str
    message_id: str
    sender_device: str
    sent_ms: int
    expires_ms: int
    type: str = ""
    payload: dict[str, Any] | None = None
    envelope: str | None = None
    need_render: bool = True
    to_device: str | None = None
    number: int = 0
    epoch: str = ""
    has: set[str] = field(default_factory=set)
    is_told: bool = False  # whoever is connected was told, or will be

    @property
    def cursor(self) -> str:
        """Its place, for clients to hand back."""
        return f"v1:{self.epoch}:{self.number}"

    def tell(self) -> None:
        """Note that whoever is connected was told."""
        self.is_told = True

    @property
    def size(self) -> int:
        """How many bytes it says."""
        return len(self.envelope or json.dumps(self.payload))


def row(each: Fleeting) -> dict[str, Any]:
    """How it goes out, in an event and in a page: without a number of any inbox."""
    made = {
        "storage": "volatile",
        "volatile_cursor": each.cursor,
        "created_at": each.sent_ms,
        "expires_at": each.expires_ms,
        "message_id": each.message_id,
        "from_aid": each.sender_aid,
        "from": each.sender_aid,
        "to": each.receiver_aid,
        "sender_device_id": each.sender_device,
        "t_server": each.sent_ms,
        "timestamp": each.sent_ms,
        "type": each.type,
        "need_render": each.need_render,
    }
    if each.envelope is not None:
        return made | {"version": "v2", "envelope_json": each.envelope}
    return made | {"payload": each.payload or {}, "encrypted": False}
