"""Faults of streams, provoked in front of the real application (console.md, 10.3).

The application knows nothing of it. `Control` wraps it in the test process; what the modes do to
`/live/stream` they do to another path by `path=`.
"""

import asyncio
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from app.kernel import db, event_log
from app.kernel.asgi.wire import App, Message, Receive, Scope, Send, answer

STREAM = "/live/stream"
MARKER = "test.marker"


@dataclass
class Mode:
    """One fault; `ok` passes everything on."""

    name: str = "ok"
    value: Any = None
    times: int = 1_000_000


@dataclass
class Seen:
    """A request that came: which path, for which browser session, after what, from where on."""

    path: str
    queries: dict[str, list[str]]


@dataclass(eq=False)
class Exchange:
    """One open answer."""

    seen: Seen
    send: Send
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    cut: asyncio.Event = field(default_factory=asyncio.Event)
    chunks: int = 0
    held: bytes = b""
    is_silent: bool = False


class Control:
    """An ASGI application around another one."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._modes: dict[str, Mode] = {}
        self._open: list[Exchange] = []
        self._released = threading.Event()
        self.seen: list[Seen] = []

    # --- what tests say -------------------------------------------------------------------------

    def stream(
        self, mode: str = "ok", value: Any = None, *, times: int = 10**6, path: str = STREAM
    ) -> None:
        """`ok`, `drop`, `status`, `hang`, `silent`, `buffer`, `split`, `double`, `slow`, `hold`."""
        if mode == "drop":
            for exchange in list(self._open):
                if exchange.seen.path == path:
                    exchange.loop.call_soon_threadsafe(exchange.cut.set)
            return
        if mode == "silent":  # those that are open; who comes anew is answered
            for exchange in list(self._open):
                exchange.is_silent = exchange.is_silent or exchange.seen.path == path
            return
        self._released.clear()
        self._modes[path] = Mode(mode, value, times)

    def release(self, path: str = "/live/regions") -> None:
        """Let go of answers that are held."""
        self._modes.pop(path, None)
        self._released.set()

    def reset(self) -> None:
        """No faults any more, and nothing seen."""
        self._modes.clear()
        self._released.set()
        self.seen.clear()

    def emit(
        self, tenant_id: str, partials: list[tuple[str, str, str]], user_id: str | None = None
    ) -> int:
        """Append a marker event for a user, or for everybody; returns its number."""
        data = {"partials": [list(each) for each in partials]}
        return db.transact_now(event_log.append, tenant_id, MARKER, "marker", data, user_id)

    def opened(self, path: str = STREAM) -> int:
        """How many answers are open now."""
        return sum(exchange.seen.path == path for exchange in list(self._open))

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop that serves."""
        return self._open[0].loop

    def asked(self, path: str = STREAM) -> list[dict[str, str]]:
        """The queries of all requests so far."""
        return [
            {name: values[0] for name, values in seen.queries.items()}
            for seen in list(self.seen)
            if seen.path == path
        ]

    def all_of(self, path: str, name: str) -> set[str]:
        """Every value of a parameter, in all requests so far."""
        return {
            value
            for seen in list(self.seen)
            if seen.path == path
            for value in seen.queries.get(name, [])
        }

    # --- what the application's clients meet ----------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or what the mode makes of it."""
        path = scope.get("path", "")
        if path.startswith("/control/") and scope["type"] == "http":
            await self._controlled(path, receive, send)
        elif scope["type"] == "http" and path in {
            STREAM,
            "/live/regions",
            "/v1/events",
            *self._modes,
        }:
            await self._watched(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _controlled(self, path: str, receive: Receive, send: Send) -> None:
        told = json.loads((await receive()).get("body") or b"{}")
        acts: dict[str, Callable[..., Any]] = {
            "/control/stream": self.stream,
            "/control/regions": lambda **more: (
                self.release() if more.get("release") else self.stream("hold", path="/live/regions")
            ),
            "/control/emit": self.emit,
        }
        await asyncio.to_thread(acts[path], **told)
        await answer(send, 204)

    async def _watched(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        seen = Seen(path, parse_qs(scope["query_string"].decode()))
        self.seen.append(seen)
        mode = self._modes.get(path, Mode())
        if mode.name == "status" and mode.times > 0:
            mode.times -= 1
            await answer(send, mode.value, {"retry-after": "1", "content-type": "text/plain"})
            return
        if mode.name == "hold":
            await asyncio.to_thread(self._released.wait, 20)
        if mode.name == "slow":
            await asyncio.sleep(mode.value)
        exchange = Exchange(seen, send)
        self._open.append(exchange)
        inner = asyncio.ensure_future(
            self._app(scope, receive, lambda message: self._sent(exchange, message))
        )
        cut = asyncio.ensure_future(exchange.cut.wait())
        try:
            await asyncio.wait({inner, cut}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._open.remove(exchange)
            cut.cancel()
            inner.cancel()

    async def _sent(self, exchange: Exchange, message: Message) -> None:
        """One message of the answer, as the mode of this moment passes it on."""
        mode = self._modes.get(exchange.seen.path, Mode())
        body = message.get("body", b"")
        if message["type"] != "http.response.body" or not message.get("more_body"):
            await exchange.send(message)
            return
        exchange.chunks += 1
        if exchange.is_silent or (mode.name == "hang" and exchange.chunks > 1):
            return
        if mode.name == "buffer":
            exchange.held += body
            if len(exchange.held) < mode.value:
                return
            body = b""
        body, exchange.held = exchange.held + body, b""
        if mode.name == "double" and b"id:" in body:
            body += body
        pieces = [bytes([each]) for each in body] if mode.name == "split" else [body]
        for piece in pieces:
            await exchange.send({**message, "body": piece})
