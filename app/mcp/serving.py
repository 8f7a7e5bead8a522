"""The SDK behind the door: loaded with the first request, as it takes a second of every start.

One task of its own runs the sessions, from the first request until the application stops.
"""

import asyncio
from contextvars import Context
from typing import TYPE_CHECKING

from app.kernel.asgi.wire import Receive, Scope, Send

if TYPE_CHECKING:
    from app.mcp.server import McpServer


class Serving:
    """An ASGI application that is there when somebody asks."""

    def __init__(self, version: str) -> None:
        self._version = version
        self._owner: asyncio.Task[None] | None = None
        self._served: asyncio.Future[McpServer] | None = None
        self._over = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that the door let in."""
        served = await self._serve()
        await served(scope, receive, send)

    async def stop(self) -> None:
        """End the sessions; harmless when none began."""
        owner, self._owner = self._owner, None
        if owner is not None:
            self._over.set()
            await asyncio.gather(owner, return_exceptions=True)

    async def _serve(self) -> "McpServer":
        if self._owner is None or self._owner.done():
            self._over = asyncio.Event()
            self._served = asyncio.get_running_loop().create_future()
            # in a context of its own: it outlives the request that came first
            running = self._run(self._served, self._over)
            self._owner = asyncio.create_task(running, context=Context())
        if self._served is None:
            raise RuntimeError("who began to serve says where")
        return await asyncio.shield(self._served)

    async def _run(self, served: "asyncio.Future[McpServer]", over: asyncio.Event) -> None:
        try:
            made = await asyncio.to_thread(_load, self._version)
            async with made.running():
                served.set_result(made)
                await over.wait()
        except BaseException as fault:
            if not served.done():
                served.set_exception(fault)
            raise


def _load(version: str) -> "McpServer":
    from app.mcp.server import McpServer  # noqa: PLC0415 - the SDK loads with the first request

    return McpServer(version)
