"""Open streams: few for each user, a bounded buffer each, closed from anywhere (SEC-50, SEC-31).

A stream belongs to one event loop. Whoever ends it or makes it look again may be on any thread.
The JSON stream and the console's live layer both take theirs here.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from app.kernel import beats, metrics
from app.kernel.beats import Moment
from app.kernel.errors import TooMany
from app.kernel.events import Event
from app.kernel.i18n import N_

BUFFER = 256  # items that wait for one client
BUFFER_BYTES = 1024 * 1024  # of what is this client's own; events are shared

open_streams = metrics.gauge("streams_open", "Streams that are open.", ["kind"])
closed_streams = metrics.counter("streams_closed", "Streams that are over.", ["kind", "state"])


class TooManyStreams(TooMany):
    """This user has as many streams open as one user may have."""

    reason = "too_many_streams"
    says = N_("Too many live connections are open. Close another window and try again.")


@dataclass(frozen=True, slots=True)
class Holder:
    """Who reads a stream; `session_id` only where a person does."""

    tenant_id: str
    user_id: str
    session_id: str | None = None
    delegation_id: str | None = None
    agent_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Passing:
    """News that are never logged: who misses them misses nothing. `drawn` keeps their frames."""

    event: Event
    drawn: dict[Any, Any] = field(default_factory=dict)
    size: int = 0


class Stream:
    """One client's stream: what waits for it, and whether it may go on."""

    __slots__ = (
        "_bytes",
        "_is_awake",
        "_loop",
        "_moment",
        "_waiter",
        "_waiting",
        "holder",
        "is_ended",
        "is_left",
        "is_overflown",
        "kind",
        "must_look_again",
    )

    def __init__(self, holder: Holder, kind: str) -> None:
        self.holder = holder
        self.kind = kind
        self.is_ended = False  # rights ended: say nothing more
        self.is_left = False  # the client is gone, or the server is going
        self.is_overflown = False  # the client was too slow: it shall come back and resume
        self.must_look_again = False  # rights changed: authorise anew before the next item
        self._loop = asyncio.get_running_loop()
        self._waiting: list[Any] = []
        self._bytes = 0
        self._is_awake = False
        self._waiter: asyncio.Future[None] | None = None
        self._moment: Moment | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing more will be said."""
        return self.is_ended or self.is_left

    def offer(self, item: Any) -> None:
        """Let `item` wait for the client; on the stream's loop."""
        if self.is_over or self.is_overflown:
            return
        if isinstance(item, Passing):
            self._bytes += item.size
        if len(self._waiting) >= BUFFER or self._bytes > BUFFER_BYTES:
            self.is_overflown = True
            self._waiting = []
        else:
            self._waiting.append(item)
        self.wake()

    async def items(self, within_s: float) -> list[Any]:
        """What waits, in order; nothing after so many seconds, or when something else is up."""
        if not self._is_awake:
            self._waiter = self._loop.create_future()
            if self._moment is None:  # an earlier one that is not due yet only wakes early
                self._moment = beats.wake(self._loop, self, within_s)
            try:
                await self._waiter
            finally:
                self._waiter = None
        self._is_awake = False
        found, self._waiting, self._bytes = self._waiting, [], 0
        return found

    def wake(self) -> None:
        """Let `items` return, whatever there is; on the stream's loop."""
        self._is_awake = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def end(self) -> None:
        """Close it; from any thread."""
        self._from_anywhere("is_ended")

    def leave(self) -> None:
        """There is nobody to tell any more; from any thread."""
        self._from_anywhere("is_left")

    def look_again(self) -> None:
        """Let it authorise itself anew before it says anything more; from any thread."""
        self._from_anywhere("must_look_again")

    def offer_from_anywhere(self, item: Any) -> None:
        """`offer`, from any thread."""
        with suppress(RuntimeError):  # the loop is gone, and the stream with it
            self._loop.call_soon_threadsafe(self.offer, item)

    def stop(self) -> None:
        """Wait no more; for the one who closes it."""
        if self._moment is not None:
            self._moment.discard(self)
            self._moment = None

    def tire(self) -> None:
        """It waited long enough."""
        self._moment = None
        self.wake()

    def _from_anywhere(self, flag: str) -> None:
        setattr(self, flag, True)  # at once: the next frame already asks
        with suppress(RuntimeError):  # likewise
            self._loop.call_soon_threadsafe(self.wake)


class Streams:
    """All open streams of this process."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], set[Stream]] = {}
        self._lock = threading.Lock()

    @contextmanager
    def opened(self, holder: Holder, kind: str, limit: int) -> Iterator[Stream]:
        """A stream that counts for its user as long as the block runs."""
        stream = self.open(holder, kind, limit)
        try:
            yield stream
        finally:
            self.close(stream)

    def open(self, holder: Holder, kind: str, limit: int) -> Stream:
        """A new stream; `close` it.

        Raises:
            TooManyStreams: the user has `limit` of them.
        """
        stream = Stream(holder, kind)
        with self._lock:
            of_user = self._open.setdefault((holder.tenant_id, holder.user_id), set())
            if len(of_user) >= limit:
                raise TooManyStreams(retry_after_s=5)
            of_user.add(stream)
        open_streams.labels(kind).inc()
        return stream

    def close(self, stream: Stream) -> None:
        """Forget a stream; harmless when it is forgotten."""
        key = (stream.holder.tenant_id, stream.holder.user_id)
        with self._lock:
            of_user = self._open.get(key, set())
            if stream not in of_user:
                return
            of_user.discard(stream)
            if not of_user:
                self._open.pop(key, None)
        stream.stop()
        open_streams.labels(stream.kind).dec()
        state = "ended" if stream.is_ended else "overflow" if stream.is_overflown else "left"
        closed_streams.labels(stream.kind, state).inc()

    def matching(self, matches: Callable[[Holder], bool]) -> list[Stream]:
        """The open streams whose holder `matches`."""
        with self._lock:
            return [
                stream
                for of_user in self._open.values()
                for stream in of_user
                if matches(stream.holder)
            ]

    def of_user(self, tenant_id: str, user_id: str) -> list[Stream]:
        """The open streams of one user."""
        with self._lock:
            return list(self._open.get((tenant_id, user_id), ()))

    def of_kind(self, tenant_id: str, kind: str) -> list[Stream]:
        """The open streams of one kind in a tenant."""
        with self._lock:
            return [
                stream
                for (of_tenant, _), of_user in self._open.items()
                for stream in of_user
                if of_tenant == tenant_id and stream.kind == kind
            ]

    def leave_all(self) -> None:
        """Let every stream end, as the server does; the clients come back at their positions."""
        for stream in self.matching(lambda _: True):
            stream.leave()

    def count(self) -> int:
        """How many are open."""
        with self._lock:
            return sum(len(of_user) for of_user in self._open.values())


_process = Streams()


def of_process() -> Streams:
    """The streams of this process."""
    return _process
