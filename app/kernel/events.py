"""Typed events: news for whoever stands above, delivered after the commit of what they tell.

A listener `inside` runs in the transaction itself and may write; only the audit trail does that.
A `Broadcast` reaches the other processes of the deployment as well (PostgreSQL's NOTIFY).
"""

import dataclasses
import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import structlog

if TYPE_CHECKING:
    from app.kernel.db import Work

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something happened in a tenant."""

    tenant_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Broadcast(Event):
    """An event that other processes have to hear of too. Its fields are plain JSON values."""

    kinds: ClassVar[dict[str, type["Broadcast"]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        # slots=True makes each class twice; the second, final one stays
        Broadcast.kinds[cls.__name__] = cls

    def to_wire(self) -> str:
        """The event as text for other processes."""
        return json.dumps([type(self).__name__, dataclasses.asdict(self)])

    @staticmethod
    def from_wire(text: str) -> "Broadcast":
        """The event another process announced.

        Raises:
            KeyError, TypeError, ValueError: it is from a version that knows other events.
        """
        name, fields = json.loads(text)
        return Broadcast.kinds[name](**fields)


E = TypeVar("E", bound=Event)

_listeners: dict[type[Event], list[Callable[[Any], None]]] = defaultdict(list)
_inside: dict[type[Event], list[Callable[["Work", Any], None]]] = defaultdict(list)


def subscribe(kind: type[E], listener: Callable[[E], None]) -> Callable[[], None]:
    """Call `listener` after each commit that announced a `kind`, subclasses included.

    It runs on a database thread and must be quick; a fault in it is logged and changes nothing.
    Returns a function that ends the subscription.
    """
    _listeners[kind].append(listener)
    return lambda: _listeners[kind].remove(listener)


def subscribe_inside(kind: type[E], listener: Callable[["Work", E], None]) -> Callable[[], None]:
    """Call `listener(work, event)` in the announcing transaction; a fault in it rolls back."""
    _inside[kind].append(listener)
    return lambda: _inside[kind].remove(listener)


def tell_inside(work: "Work", event: Event) -> None:
    """Hand `event` to those who listen inside the transaction."""
    for kind in type(event).__mro__:
        if listening := _inside.get(kind):
            for inside in tuple(listening):
                inside(work, event)


def deliver(event: Event) -> None:
    """Hand a committed `event` to its listeners."""
    for kind in type(event).__mro__:
        for listener in tuple(_listeners.get(kind, ())):
            try:
                listener(event)
            except Exception:
                log.exception("listener_failed", event_type=type(event).__name__)
