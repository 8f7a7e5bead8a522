"""WebSockets go a way of their own, past the layers that are about requests and answers."""

from collections.abc import Awaitable, Mapping

from app.kernel.asgi.wire import App, Receive, Scope, Send


class SocketsAside:
    """Hands the WebSockets of some paths to applications of their own.

    Args:
        app: what takes everything else.
        sockets: by path, what serves its WebSockets.
    """

    def __init__(self, app: App, *, sockets: Mapping[str, App]) -> None:
        self._app, self._sockets = app, sockets

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """The coroutine that serves it; no frame of ours stays in between."""
        taken = self._sockets.get(scope["path"]) if scope["type"] == "websocket" else None
        return (taken or self._app)(scope, receive, send)
