"""Somebody else's server on loopback: keeps what it is sent, and answers as a test wants."""

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.server import free_port


@dataclass(frozen=True)
class Received:
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        """What repeats are told by."""
        return self.headers["webhook-id"]

    @property
    def event(self) -> dict[str, Any]:
        """The message."""
        found: dict[str, Any] = json.loads(self.body)
        return found

    @property
    def type(self) -> str:
        """Of which type it is."""
        return str(self.event["type"])

    def is_signed_with(self, secret: str) -> bool:
        """Whether one of its signatures is made with `secret`, by Standard Webhooks."""
        key = base64.b64decode(secret.removeprefix("whsec_"))
        signed = f"{self.id}.{self.headers['webhook-timestamp']}.".encode() + self.body
        made = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        return f"v1,{made}" in self.headers["webhook-signature"].split()


@dataclass
class Receiver:
    """A server that may be down; `answer(request)` gives the status, 204 unless it is set."""

    port: int = field(default_factory=free_port)
    answer: Callable[[Received], int] = lambda _: 204
    received: list[Received] = field(default_factory=list)
    _server: ThreadingHTTPServer | None = None

    @property
    def pair(self) -> str:
        """Host and port, as an operator exempts them."""
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://{self.pair}/hook"

    @property
    def types(self) -> list[str]:
        """The types of what it got, in order."""
        return [each.type for each in self.received]

    def up(self) -> None:
        """Begin to listen."""
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers.get("content-length", 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                request = Received(self.path, headers, self.rfile.read(length))
                status = receiver.answer(request)
                receiver.received.append(request)
                self.send_response(status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def down(self) -> None:
        """Listen no more: a connection is refused."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None


@contextmanager
def listening(answer: Callable[[Received], int] | None = None) -> Iterator[Receiver]:
    """A receiver that is up."""
    made = Receiver()
    if answer is not None:
        made.answer = answer
    made.up()
    try:
        yield made
    finally:
        made.down()
