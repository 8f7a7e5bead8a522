"""Heads of requests: how large they may be, and which headers may stand there once."""

from app.kernel.asgi.refusals import HeadTooLarge, RepeatedHeader, refuse
from app.kernel.asgi.wire import App, Receive, Scope, Send
from app.kernel.errors import AppError, NotFound

HEAD_BYTES = 16 * 1024
LINE_BYTES = 4  # colon, space and the end of a line
ONCE = frozenset({b"authorization", b"origin", b"sec-fetch-site", b"x-csrf-token", b"host"})


class HeadLimit:
    """Refuses a head over 16 KiB with 431, and a deciding header that is repeated with 400.

    Two values of such a header would let two readers of one request each believe another one.
    A path with a NUL in it names nothing: no database holds such a text (404).
    """

    def __init__(self, app: App, limit: int = HEAD_BYTES) -> None:
        self._app, self._limit = app, limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on whose head will do."""
        refusal = self._refusal(scope) if scope["type"] in ("http", "websocket") else None
        if refusal is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close"})  # before it is accepted: 403
        else:
            await refuse(scope, send, refusal)

    def _refusal(self, scope: Scope) -> AppError | None:
        if "\0" in scope["path"]:
            return NotFound()
        size = len(scope.get("raw_path") or b"") + len(scope["query_string"])
        seen: set[bytes] = set()
        for name, value in scope["headers"]:
            size += len(name) + len(value) + LINE_BYTES
            if name in ONCE:
                if name in seen:
                    return RepeatedHeader(header=name.decode())
                seen.add(name)
        return HeadTooLarge(limit=self._limit) if size > self._limit else None
