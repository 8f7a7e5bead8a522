"""Sends an event stream: chunk by chunk, until either side ends it or the client stops reading.

One task for each stream and one that hears the client go; the heartbeats are the chunks' own, so
that a stream in which nothing happens costs a timer and no more (performance.md, S1 and S2).
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from functools import partial

from app.kernel.asgi.wire import App, Header, Receive, Scope, Send
from app.kernel.streams import Stream

SEND_TIMEOUT_S = 15.0
CHUNK = 16 * 1024  # bytes of frames that are sent together
LEFT = "assent.left"  # in a scope: what is to be poured afterwards
HEARTBEAT = b":\r\n\r\n"


class Afterwards:
    """Sends streams once everything that led to their answers has returned.

    So a stream that is open for hours holds on to no layer, no route and nothing they looked up.
    """

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; then pour what it left."""
        left = scope[LEFT] = []
        await self._app(scope, receive, send)
        if not left:
            return
        del scope[LEFT]
        scope.get("state", {}).clear()
        for key in [key for key in scope if key.startswith("fastapi_")]:
            del scope[key]
        await left.pop()(receive, send)


async def answer(
    stream: Stream,
    chunks: AsyncGenerator[bytes, None],
    close: Callable[[], None],
    headers: Iterable[Header],
    scope: Scope,
    receive: Receive,
    send: Send,
) -> None:
    """Begin to answer with `chunks`, and leave the rest to `Afterwards` where it is there.

    A chunk that is not taken in time leaves the answer unfinished, so that the server closes the
    connection; `close` is called in the end.
    """
    try:
        await send({"type": "http.response.start", "status": 200, "headers": [*headers]})
    except BaseException:
        close()
        raise
    pour = partial(_pour, stream, chunks, close)
    if LEFT in scope:
        scope[LEFT].append(pour)
    else:
        await pour(receive, send)


async def _pour(
    stream: Stream,
    chunks: AsyncGenerator[bytes, None],
    close: Callable[[], None],
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
        await chunks.aclose()


async def _hear(stream: Stream, receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    stream.leave()
