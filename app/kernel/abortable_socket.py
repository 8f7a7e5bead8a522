"""uvicorn's WebSocket protocol, whose application can end a connection that takes no more bytes.

Without it a socket whose reader stopped stays open: uvicorn waits for room in the transport before
it sends anything, the closing frame included. It also writes a frame at once where there is room,
for whoever tells thousands the same: a task for each would cost more than the writing. Used as
`uvicorn.Config(app, ws=AbortableSocket)`.
"""

from collections.abc import Callable

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import InvalidState

from app.kernel.asgi.wire import Scope

_ABORT, _WRITE = "abort_socket", "write_socket"


class AbortableSocket(WebSocketsSansIOProtocol):
    """Hands its application ways to drop the connection, and to write to it, at once."""

    async def run_asgi(self) -> None:
        """Serve the connection."""
        self.scope["state"][_ABORT] = self.transport.abort
        self.scope["state"][_WRITE] = self.write_now
        await super().run_asgi()

    def write_now(self, text: bytes) -> bool:
        """Write a text frame; False, and nothing is written, where that would have to wait."""
        is_open = self.handshake_complete and not (self.disconnected or self.close_sent)
        if not is_open or not self.writable.is_set() or self.transport.is_closing():
            return False
        try:
            self.conn.send_text(text)
        except InvalidState:  # it is over
            return False
        self.transport.write(b"".join(self.conn.data_to_send()))
        return True


def abort_of(scope: Scope) -> Callable[[], None]:
    """What drops the connection of a scope; nothing where the server offers no such thing."""
    found: Callable[[], None] = scope.get("state", {}).get(_ABORT, lambda: None)
    return found


def write_of(scope: Scope) -> Callable[[bytes], bool]:
    """What writes a text frame at once; it never does where the server offers no such thing."""
    found: Callable[[bytes], bool] = scope.get("state", {}).get(_WRITE, lambda text: False)
    return found
