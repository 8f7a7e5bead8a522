"""What a composer of pushes works with: who is connected here, and what they are to hear."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session


@dataclass(frozen=True, slots=True)
class Live:
    """A connection of this process."""

    id: str
    tenant_id: str
    aid: str
    device_id: str
    slot_key: str
    is_long: bool = True
    is_peer_dialect: bool = True
    is_queue: bool = False  # a message goes to one of its AID's connections alone (aun.md, 10)
    is_affine: bool = False  # of a queue: messages of one sender go to the same connection


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One event for connections that get the same bytes; `name` is without `event/`."""

    to: Sequence[Live]
    name: str
    params: dict[str, Any]


Lookup = Callable[[str], Sequence[Live]]  # the connections of an AID in this process
# (session, event, lookup): on a reader thread, in the order of commits
Composer = Callable[[Session, Any, Lookup], Iterable[Outgoing]]
