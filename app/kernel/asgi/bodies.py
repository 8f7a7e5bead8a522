"""Bodies of requests: how large, and by when they are whole (SEC-47)."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from app.kernel.asgi.refusals import BodyTooLarge, BodyTooSlow, refuse
from app.kernel.asgi.wire import App, Message, Receive, Scope, Send, is_under, value
from app.kernel.errors import AppError

FORM_TYPES = ("application/x-www-form-urlencoded", "multipart/form-data")
CLOSE = (b"connection", b"close")


@dataclass(frozen=True, slots=True)
class Limit:
    """What a body may be: bytes, and seconds until it is whole."""

    size: int
    within_s: float = 30.0


DEFAULT = Limit(1 << 20)
FORM = Limit(64 * 1024)
UPLOAD = Limit(10 << 20, within_s=120.0)
AUN = Limit(4 << 20)


class BodyLimit:
    """Counts a body while it arrives, whether it announced its length or not: 413, or 408 if late.

    Args:
        app: what comes next.
        default: for all that is not named otherwise.
        form: for forms, wherever no prefix says otherwise.
        by_prefix: for a path and what is below it; the longest prefix wins.
    """

    def __init__(
        self,
        app: App,
        *,
        default: Limit = DEFAULT,
        form: Limit = FORM,
        by_prefix: Mapping[str, Limit] | None = None,
    ) -> None:
        self._app, self._default, self._form = app, default, form
        longest_first = sorted((by_prefix or {}).items(), key=lambda item: -len(item[0]))
        self._by_prefix = tuple(longest_first)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on whose body stays within its limit."""
        if scope["type"] != "http" or not (length := _announced(scope)):
            await self._app(scope, receive, send)
            return
        limit = self._limit_of(scope)
        if length.isdecimal() and int(length[:20]) > limit.size:
            await refuse(scope, send, BodyTooLarge(limit=limit.size), {"connection": "close"})
            return
        body = _Body(limit, receive, send)
        try:
            await self._app(scope, body.receive, body.send)
        except AppError as error:
            if error is not body.refusal:
                raise
        if body.refusal is not None and not body.is_answered:
            await refuse(scope, send, body.refusal, {"connection": "close"})

    def _limit_of(self, scope: Scope) -> Limit:
        for prefix, limit in self._by_prefix:
            if is_under(scope["path"], prefix):
                return limit
        is_form = value(scope, b"content-type").lower().startswith(FORM_TYPES)
        return self._form if is_form else self._default


class _Body:
    """One body on its way; once it is refused, nothing of the application's answer goes out."""

    def __init__(self, limit: Limit, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send
        self._left, self._is_whole = limit.size, False
        self._limit = limit
        self._due_s = asyncio.get_running_loop().time() + limit.within_s
        self.refusal: AppError | None = None
        self.is_answered = False

    async def receive(self) -> Message:
        """The next piece.

        Raises:
            BodyTooLarge, BodyTooSlow: and every later time again, should the application go on.
        """
        if self.refusal is not None:
            raise self.refusal
        if self._is_whole:
            return await self._receive()  # nothing but the end of the connection can come
        try:
            async with asyncio.timeout_at(self._due_s):
                message = await self._receive()
        except TimeoutError:
            self.refusal = BodyTooSlow(within_s=self._limit.within_s)
            raise self.refusal from None
        if message["type"] == "http.request":
            self._is_whole = not message.get("more_body", False)
            self._left -= len(message.get("body", b""))
            if self._left < 0:
                self.refusal = BodyTooLarge(limit=self._limit.size)
                raise self.refusal
        else:
            self._is_whole = True
        return message

    async def send(self, message: Message) -> None:
        """Pass the answer on; one that comes before the body's end closes the connection."""
        if self.refusal is not None and not self.is_answered:
            return
        if message["type"] == "http.response.start":
            self.is_answered = True
            if not self._is_whole:  # or the server would read, and drop, a body without end
                message = {**message, "headers": [*message.get("headers", ()), CLOSE]}
        await self._send(message)


def _announced(scope: Scope) -> str:
    """The length of the body, `chunked`, or nothing where there is none."""
    if value(scope, b"transfer-encoding"):
        return "chunked"
    length = value(scope, b"content-length").strip()
    return "" if length == "0" else length
