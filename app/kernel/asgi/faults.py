"""The last net: an exception nobody handled is logged here, and the caller learns nothing of it.

A refusal that a layer raised, before there was a door to say it, is said here.
"""

import structlog

from app.kernel.asgi.refusals import Fault, refuse
from app.kernel.asgi.wire import App, Message, Receive, Scope, Send
from app.kernel.errors import AppError

CLOSED_BY_FAULT = 1011  # RFC 6455: the server met an unexpected condition

log = structlog.get_logger()


class Faults:
    """Answers 500, or a refusal, where nothing was answered yet, in HTML or as a problem.

    An answer that has begun is cut: the server sees it unfinished and closes the connection.
    """

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and catch what comes back."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        is_answered = False

        async def watched(message: Message) -> None:
            nonlocal is_answered
            await send(message)
            is_answered = True

        try:
            await self._app(scope, receive, watched)
        except Exception as fault:
            if isinstance(fault, AppError) and scope["type"] == "http" and not is_answered:
                await refuse(scope, send, fault)  # a busy database, while a layer looked who asks
                return
            log.exception("fault", fault=type(fault).__name__, exc_info=fault)
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": CLOSED_BY_FAULT})
            elif not is_answered:
                await refuse(scope, send, Fault())
