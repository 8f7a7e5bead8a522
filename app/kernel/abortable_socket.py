"""uvicorn's WebSocket protocol, whose application can end a connection that takes no more bytes.

Without it a socket whose reader stopped stays open: uvicorn waits for room in the transport before
it sends anything, the closing frame included. It also writes a frame at once where there is room,
for whoever tells thousands the same: a task for each would cost more than the writing, and so would
making the frame anew. Used as `uvicorn.Config(app, ws=AbortableSocket)`.
"""

import struct
from collections.abc import Callable

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.protocol import State

from app.kernel.asgi.wire import Scope

_ABORT, _WRITE = "abort_socket", "write_socket"
_WHOLE_TEXT = 0x81  # RFC 6455, 5.2: the final frame of a text message, which is its first
_SHORT, _MEDIUM = 126, 1 << 16  # from these lengths on the head is longer


class AbortableSocket(WebSocketsSansIOProtocol):
    """Hands its application ways to drop the connection, and to write to it, at once."""

    async def run_asgi(self) -> None:
        """Serve the connection."""
        self.scope["state"][_ABORT] = self.transport.abort
        self.scope["state"][_WRITE] = self.write_now
        await super().run_asgi()

    def write_now(self, frame: bytes) -> bool:
        """Write what `framed` made; False, and nothing is written, where that would have to wait.

        It never does where the connection has extensions: they would change the frame.
        """
        is_open = self.conn.state is State.OPEN and not self.disconnected
        if not is_open or not self.writable.is_set() or self.transport.is_closing():
            return False
        if self.conn.extensions:
            return False
        self.transport.write(frame)
        return True


def framed(text: bytes) -> bytes:
    """A text message as a server puts it on the wire, the same for every socket."""
    length = len(text)
    if length < _SHORT:
        return struct.pack("!BB", _WHOLE_TEXT, length) + text
    if length < _MEDIUM:
        return struct.pack("!BBH", _WHOLE_TEXT, 126, length) + text
    return struct.pack("!BBQ", _WHOLE_TEXT, 127, length) + text


def abort_of(scope: Scope) -> Callable[[], None]:
    """What drops the connection of a scope; nothing where the server offers no such thing."""
    found: Callable[[], None] = scope.get("state", {}).get(_ABORT, lambda: None)
    return found


def write_of(scope: Scope) -> Callable[[bytes], bool]:
    """What writes a frame at once; it never does where the server offers no such thing."""
    found: Callable[[bytes], bool] = scope.get("state", {}).get(_WRITE, lambda frame: False)
    return found
