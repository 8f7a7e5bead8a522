"""A bare ASGI application behind the real uvicorn, on loopback, for what only a socket can show."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any

import uvicorn

from app.kernel.asgi.wire import App, Receive, Scope, Send
from app.kernel.bounded_head import BoundedHead

PATIENCE_S = 10


class Served(uvicorn.Server):
    """Says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listens = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listens.set()


@contextlib.contextmanager
def serving(app: App, http: type[BoundedHead] = BoundedHead, **config: Any) -> Iterator[int]:
    """Serve `app`; gives the port."""
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        settings: dict[str, Any] = {
            "http": http, "ws": "websockets-sansio", "lifespan": "off", "log_config": None,
            "proxy_headers": False, "server_header": False, "timeout_graceful_shutdown": 1, **config
        }  # fmt: skip
        server = Served(uvicorn.Config(app, **settings))
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            assert server.listens.wait(PATIENCE_S)
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(PATIENCE_S)
            assert not thread.is_alive()


@contextlib.contextmanager
def peer(port: int) -> Iterator[socket.socket]:
    """A connection whose every read ends in time."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as connection:
        yield connection


def rest_of(connection: socket.socket) -> bytes:
    """Everything until the other side closes; a reset is an end as well."""
    got = bytearray()
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(65_536):
            got += piece
    return bytes(got)


def ask(port: int, *parts: bytes) -> bytes:
    """Send `parts` as they are; everything that comes back until the connection ends."""
    with peer(port) as connection:
        with contextlib.suppress(ConnectionError):
            for part in parts:
                connection.sendall(part)
        return rest_of(connection)


def get(port: int, path: str = "/", **headers: str) -> bytes:
    """The answer to a GET on a connection that is then closed."""
    lines = {"host": f"localhost:{port}", "connection": "close"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return ask(port, f"GET {path} HTTP/1.1\r\n{head}\r\n".encode("latin-1"))


def status_of(raw: bytes) -> int:
    """The status of a raw answer; 0 where there is none."""
    return int(raw.split(b" ", 2)[1]) if raw.startswith(b"HTTP/1.1 ") else 0


def header_of(raw: bytes, name: str) -> str:
    """One header of a raw answer, or an empty text."""
    head = raw.partition(b"\r\n\r\n")[0].decode("latin-1")
    for line in head.split("\r\n")[1:]:
        key, _, value = line.partition(": ")
        if key.lower() == name.lower():
            return value
    return ""


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Reads the body, then says how long it was."""
    size, more = 0, True
    while more:
        message = await receive()
        size += len(message.get("body", b""))
        more = message.get("more_body", False)
    body = str(size).encode()
    headers = [(b"content-length", str(len(body)).encode()), (b"content-type", b"text/plain")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
