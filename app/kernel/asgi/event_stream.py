"""Sends an event stream: chunk by chunk, until either side ends it or the client stops reading.

One task for each stream and one that hears the client go; the heartbeats are the chunks' own, so
that a stream in which nothing happens costs a timer and no more (performance.md, S1 and S2).
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable

from app.kernel.asgi.wire import Header, Receive, Scope, Send
from app.kernel.streams import Stream

SEND_TIMEOUT_S = 15.0
CHUNK = 16 * 1024  # bytes of frames that are sent together
LEFT = "assent.left"  # in a scope: what is to be poured afterwards
HEARTBEAT = b":\r\n\r\n"


KEPT = ("type", "method", "http_version", "path")  # of a scope: what the server still looks at


class Left:
    """A stream that is left to pour once everything that led to its answer has returned.

    So one that is open for hours holds on to no layer, no route and nothing they looked up, nor to
    what was asked. Whoever serves the layers makes one of these for each request, and pours it.

    Attributes:
        over: is called when the stream is, for a layer that would have waited for it.
    """

    __slots__ = ("_chunks", "_close", "_headers", "_stream", "over")

    def __init__(self, scope: Scope) -> None:
        scope[LEFT] = self
        self._headers = scope["headers"]  # the server's own list: layers have had copies
        self._stream: Stream | None = None
        self._chunks: AsyncGenerator[bytes, None] | None = None
        self._close: Callable[[], None] = _nothing
        self.over: Callable[[], None] = _nothing

    def fill(
        self, stream: Stream, chunks: AsyncGenerator[bytes, None], close: Callable[[], None]
    ) -> None:
        """There is a stream."""
        self._stream, self._chunks, self._close = stream, chunks, close

    @property
    def is_filled(self) -> bool:
        """Whether there is one still to be poured."""
        return self._stream is not None

    def pour(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Send it; `scope` forgets what was asked."""
        stream, chunks, close = self._stream, self._chunks, self._close
        if stream is None or chunks is None:
            raise RuntimeError("nothing was left")
        kept = {name: scope[name] for name in KEPT if name in scope}
        scope.clear()
        scope.update(kept)
        if isinstance(self._headers, list):
            self._headers.clear()
        self.drop()
        return _pour(stream, chunks, close, self.over, receive, send)

    def drop(self) -> None:
        """Forget it."""
        self._stream = self._chunks = None
        self._close = _nothing

    def abandon(self) -> None:
        """A layer broke on the way back: nothing will be poured."""
        self._close()
        self.drop()


def _nothing() -> None:
    """Nobody waits."""


def left_of(scope: Scope) -> Left | None:
    """The stream that is left of a request, if its answer is one."""
    left: Left | None = scope.get(LEFT)
    return left if left is not None and left.is_filled else None


async def answer(
    stream: Stream,
    chunks: AsyncGenerator[bytes, None],
    close: Callable[[], None],
    headers: Iterable[Header],
    scope: Scope,
    receive: Receive,
    send: Send,
) -> None:
    """Begin to answer with `chunks`, and leave the rest to who pours it, where somebody does.

    A chunk that is not taken in time leaves the answer unfinished, so that the server closes the
    connection; `close` is called in the end.
    """
    try:
        await send({"type": "http.response.start", "status": 200, "headers": [*headers]})
    except BaseException:
        close()
        raise
    left: Left | None = scope.get(LEFT)
    if left is not None:
        left.fill(stream, chunks, close)
    else:
        await _pour(stream, chunks, close, _nothing, receive, send)


async def _pour(
    stream: Stream,
    chunks: AsyncGenerator[bytes, None],
    close: Callable[[], None],
    over: Callable[[], None],
    receive: Receive,
    send: Send,
) -> None:
    watching = asyncio.ensure_future(_hear(stream, receive))
    try:
        async for chunk in chunks:
            async with asyncio.timeout(SEND_TIMEOUT_S):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
    except TimeoutError:
        stream.is_overflown = True
    finally:
        watching.cancel()
        close()
        try:
            await chunks.aclose()
        finally:
            over()


async def _hear(stream: Stream, receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    stream.leave()
