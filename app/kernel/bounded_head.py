"""uvicorn's httptools protocol, with a deadline and a size limit for the head of a request.

Without it (uvicorn 0.54, measured) a connection that sends a header line now and then, or nothing
at all, stays open for ever: `timeout_keep_alive` does not cover it. A header of 2 MB is accepted.
Used as `uvicorn.Config(app, http=BoundedHead)` (SEC-49).
"""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

STATUS = b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
TOO_LARGE = STATUS + b"connection: close\r\ncontent-length: 0\r\n\r\n"


class BoundedHead(HttpToolsProtocol):
    """Closes connections whose request head is late or large, and those that flood with trailers.

    Attributes:
        HEAD_S: how long a head may take, from its first byte; the first one from the connection.
        HEAD_BYTES: what may arrive before the head is whole. What fits into one read of the loop
            still passes: the layer `asgi.heads` checks for 16 KiB again.
        FRAMING: bytes a chunked body may spend around each byte of it.
    """

    HEAD_S = 10.0
    HEAD_BYTES = 64 * 1024
    FRAMING = 8

    _timer: asyncio.TimerHandle | None = None
    _received = 0  # bytes of a head, or of what surrounds a body: chunk sizes, trailers
    _in_head = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A new peer: its time for the first head starts."""
        super().connection_made(transport)
        self._arm()

    def data_received(self, data: bytes) -> None:
        """Bytes of a head or of a body; the parser tells which."""
        if self._in_head and self._timer is None:  # the next request on a kept connection
            self._arm()
        self._received += len(data)
        super().data_received(data)
        if self._received > self.HEAD_BYTES and not self.transport.is_closing():
            if self._in_head:
                self.transport.write(TOO_LARGE)
            self.transport.close()

    def on_headers_complete(self) -> None:
        """The head is whole; the application takes over."""
        self._in_head, self._received = False, 0
        self._disarm()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A piece of the body, which the application counts; what surrounds it counts here."""
        self._received = max(0, self._received - (1 + self.FRAMING) * len(body))
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The body is whole; what comes next is a head again."""
        super().on_message_complete()
        self._in_head, self._received = True, 0

    def connection_lost(self, exc: Exception | None) -> None:
        """The peer is gone."""
        self._disarm()
        super().connection_lost(exc)

    def _arm(self) -> None:
        self._disarm()
        self._timer = self.loop.call_later(self.HEAD_S, self._give_up)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.abort()
