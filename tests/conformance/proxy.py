"""A loopback proxy that adds a token: the official suite cannot send headers.

It turns its own host and origin into the product's and passes every other one through, or a
scenario about rebinding would test the proxy.
"""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

HEAD_END = b"\r\n\r\n"


class Proxy:
    """Passes each connection on to `port`, its head with a bearer token."""

    def __init__(self, port: int, host: str, token: str) -> None:
        self._to, self._host, self._token = port, host, token
        self.port = 0

    async def serve(self, started: threading.Event, over: asyncio.Event) -> None:
        """Serve until `over`."""
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        async with server:
            await over.wait()

    async def _connected(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        writers = [back]
        try:
            head = await near.readuntil(HEAD_END)
            far, forth = await asyncio.open_connection("127.0.0.1", self._to)
            writers.append(forth)
            forth.write(self._changed(head))
            ways = [asyncio.create_task(_pipe(near, forth)), asyncio.create_task(_pipe(far, back))]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            for writer in writers:
                writer.transport.abort()

    def _changed(self, head: bytes) -> bytes:
        own = f"127.0.0.1:{self.port}"
        first, *lines = head.removesuffix(HEAD_END).decode("latin-1").split("\r\n")
        kept = [line for line in lines if not line.lower().startswith("connection:")]
        changed = [
            line.replace(own, self._host) if line.lower().startswith(("host:", "origin:")) else line
            for line in kept
        ]
        more = [f"Authorization: Bearer {self._token}", "Connection: close"]
        return "\r\n".join([first, *changed, *more]).encode("latin-1") + HEAD_END


async def _pipe(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        while piece := await source.read(65_536):
            target.write(piece)
            await target.drain()
    except OSError:
        return


@contextmanager
def proxied(port: int, host: str, token: str) -> Iterator[int]:
    """The port of a proxy in a thread of its own."""
    proxy, started = Proxy(port, host, token), threading.Event()
    loop, over = asyncio.new_event_loop(), asyncio.Event()

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(proxy.serve(started, over))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert started.wait(10)
        yield proxy.port
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
