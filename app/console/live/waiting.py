"""What waits to be sent on one stream: in order, but growing text waits for no row.

One event of the log at a time is being drawn for a stream, what passes at once. Of events that draw
how things stand, and for which nothing was begun, the newest speaks for those before it: they send
nothing, and who comes back at an earlier place hears of them again (UI-34, UI-39).
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator

from app.access.following import Told
from app.console.live import families
from app.kernel import deltas
from app.kernel.feed import News
from app.kernel.models import LoggedEvent
from app.kernel.streams import Passing

Draw = Callable[[Told], bytes | Awaitable[bytes]]
What = tuple[str | None, ...]


class _Held:
    """One thing to tell, and its frame as soon as it is drawn."""

    __slots__ = ("drawing", "drawn", "item")

    def __init__(self, item: Told) -> None:
        self.item = item
        self.drawn: bytes | None = None
        self.drawing: asyncio.Future[bytes] | None = None

    @property
    def is_begun(self) -> bool:
        return self.drawn is not None or self.drawing is not None

    @property
    def is_delta(self) -> bool:
        """Whether it is text that grows, which an event that ends the text brings anyway."""
        return isinstance(self.item, Passing) and deltas.NAME in self.item.drawn


class Waiting:
    """What one stream still has to tell.

    Args:
        draw: gives the frame of a thing, or what it can be awaited from.
        wake: called when something was drawn that `draw` did not give at once.
    """

    __slots__ = ("_draw", "_held", "_newest", "_wake")

    def __init__(self, draw: Draw, wake: Callable[[], None]) -> None:
        self._draw = draw
        self._wake = wake
        self._held: list[_Held] = []
        self._newest: dict[What, _Held] = {}  # of how things stand

    def __len__(self) -> int:
        return len(self._held)

    def add(self, items: Iterable[Told]) -> None:
        """Let these wait, behind what waits already."""
        for item in items:
            self._held.append(held := _Held(item))
            if not isinstance(item, News):
                self._begin(held)
            elif families.found().is_standing(item.event):
                self._speaks(held, _what(item.event))
        self._begin_next()

    def take(self) -> Iterator[tuple[Told, bytes]]:
        """What can be sent now, each with its frame; what is empty is nobody's."""
        place, are_apart = 0, True  # those that stay before it
        while place < len(self._held):
            held = self._held[place]
            is_passing = isinstance(held.item, Passing)
            may_go = place == 0 or held.is_delta or (is_passing and are_apart)
            if may_go and held.drawn is not None:
                del self._held[place]
                if isinstance(held.item, News):
                    self._forget(held, _what(held.item.event))
                    self._begin_next()
                yield held.item, held.drawn
            elif isinstance(held.item, News):
                are_apart = are_apart and families.found().is_apart(held.item.event)
                place += 1
            else:
                return

    async def first(self) -> None:
        """Wait until the first of them is drawn."""
        if self._held and (drawing := self._held[0].drawing) is not None:
            await asyncio.wait({drawing})

    def close(self) -> None:
        """Let go of everything."""
        for held in self._held:
            if held.drawing is not None:
                held.drawing.cancel()
        self._held, self._newest = [], {}

    def _speaks(self, held: _Held, about: What) -> None:
        """Let it speak for the one before it about the same, if that was not begun."""
        older = self._newest.get(about)
        if older is not None and not older.is_begun:
            older.drawn = b""
        self._newest[about] = held

    def _forget(self, held: _Held, about: What) -> None:
        if self._newest.get(about) is held:
            del self._newest[about]

    def _begin_next(self) -> None:
        """Draw the first event of the log that is not drawn, and no other before it is."""
        for held in self._held:
            if isinstance(held.item, News) and held.drawn is None:
                self._begin(held)
                if held.drawn is None:
                    return

    def _begin(self, held: _Held) -> None:
        if held.is_begun:
            return
        found = self._draw(held.item)
        if isinstance(found, bytes):
            held.drawn = found
        else:
            held.drawing = asyncio.ensure_future(found)
            held.drawing.add_done_callback(lambda done: self._drawn(held, done))

    def _drawn(self, held: _Held, done: "asyncio.Future[bytes]") -> None:
        if not done.cancelled():
            held.drawn = done.result()
            self._wake()


def _what(event: LoggedEvent) -> What:
    """What an event is about, and who may hear of it."""
    return (
        event.kind,
        event.subject,
        event.user_id,
        event.topic,
        event.permission,
        event.org_id,
        event.owner_id,
    )
