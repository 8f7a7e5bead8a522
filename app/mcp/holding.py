"""Answers that take their time: few open streams for each user, and all end when rights end.

The SDK writes them; here is who watches over them (SEC-31, SEC-50).
"""

import asyncio
from typing import Any

from app.access import standing
from app.identity.tokens import DelegationPaused, InvalidToken
from app.kernel import clock, db, settings, streams
from app.kernel.asgi.wire import App, Message, Receive, Scope, Send
from app.kernel.streams import Stream
from app.mcp import entered
from app.mcp.entered import Entered

KIND = "mcp"
LOOK_S = 2.0  # where nobody tells us what changed
ENDED = (InvalidToken, DelegationPaused)


async def stream(who: Entered, app: App, scope: Scope, receive: Receive, send: Send) -> None:
    """Let `app` stream as long as the rights of `who` stand.

    Raises:
        TooManyStreams: its user has as many streams as one may have.
    """
    standing.listen()
    opened = streams.of_process().open(
        standing.holder_of(who.principal), KIND, settings.current().streams_per_user
    )
    answer = _Answer(app, scope, receive, send)
    try:
        await _follow(who, opened, answer.writing)
    finally:  # nothing is awaited here: who is told to end may be told again
        answer.writing.cancel()
        streams.of_process().close(opened)
    await answer.end()


async def short(who: Entered, app: App, scope: Scope, receive: Receive, send: Send) -> None:
    """Let `app` answer one request; should that take long, only while the rights stand.

    Raises:
        InvalidToken, DelegationPaused: they ended before the answer began.
    """
    answer, ended = _Answer(app, scope, receive, send), None
    try:
        while not answer.writing.done():
            await asyncio.wait({answer.writing}, timeout=LOOK_S)
            if not answer.writing.done():
                await entered.look_again(who)
    except ENDED as refused:
        ended = refused
    finally:
        answer.writing.cancel()
    await answer.end()
    if ended is not None and not answer.is_begun:
        raise ended


class _Answer:
    """What the application writes, in a task that can be ended."""

    def __init__(self, app: App, scope: Scope, receive: Receive, send: Send) -> None:
        self._send = send
        self.is_begun = self._is_whole = False
        self.writing = asyncio.ensure_future(app(scope, receive, self._watched))

    async def end(self) -> None:
        """Finish an answer that was cut short; raise what the application raised."""
        await asyncio.gather(self.writing, return_exceptions=True)
        if self.is_begun and not self._is_whole:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
        if not self.writing.cancelled() and (fault := self.writing.exception()) is not None:
            raise fault

    async def _watched(self, message: Message) -> None:
        is_body = message["type"] == "http.response.body"
        self.is_begun = self.is_begun or not is_body
        await self._send(message)
        self._is_whole = is_body and not message.get("more_body", False)


async def _follow(who: Entered, opened: Stream, writing: "asyncio.Future[Any]") -> None:
    """Return when the answer is over, or has to be."""
    looked_at_s = clock.monotonic_s()
    every_s = settings.current().heartbeat_s if db.hears_others() else LOOK_S
    while not writing.done() and not opened.is_over:
        news = asyncio.ensure_future(opened.items(every_s))
        either: set[asyncio.Future[Any]] = {writing, news}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            news.cancel()
        await asyncio.gather(news, return_exceptions=True)  # it lets go before the next one waits
        if opened.must_look_again or clock.monotonic_s() - looked_at_s >= every_s:
            opened.must_look_again = False
            looked_at_s = clock.monotonic_s()
            try:
                await entered.look_again(who)
            except ENDED:
                return
