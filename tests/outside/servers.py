"""Servers of others on loopback: they list what a test wants, and answer as badly as it wants."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

OBJECT = {"type": "object", "properties": {}, "additionalProperties": False}
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "Which one."}},
    "required": ["city"],
    "additionalProperties": False,
}
COMPLETE = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
Answer = Callable[["Outsider", dict[str, Any]], dict[str, Any] | None]


def tool(name: str = "forecast", description: str = "The weather.", **more: Any) -> dict[str, Any]:
    """A tool as a server lists it."""
    return {"name": name, "description": description, "inputSchema": CITY, **more}


def text(words: str, **more: Any) -> dict[str, Any]:
    """What a tool gives back."""
    return {"content": [{"type": "text", "text": words}], **more}


def sunny(_server: "Outsider", params: dict[str, Any]) -> dict[str, Any]:
    """It is always sunny."""
    return text(f"Sunny in {params['arguments'].get('city', '?')}.")


@dataclass
class Outsider:
    """One server.

    Attributes:
        answer: gives the result of `tools/call`; None: it hangs until it is stopped.
        raw: of a method: answers it with bytes of its own, status and headers.
        is_modern: it knows the stateless revision.
        cursor: of a further page, after each page.
        called: the parameters of every call, in order.
    """

    tools: list[dict[str, Any]] = field(default_factory=lambda: [tool()])
    answer: Answer = sunny
    raw: dict[str, Callable[[BaseHTTPRequestHandler], None]] = field(default_factory=dict)
    token: str = ""
    is_modern: bool = False
    cursor: str | None = None
    called: list[dict[str, Any]] = field(default_factory=list)
    methods: list[str] = field(default_factory=list)
    ids: list[Any] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    open_sockets: set[int] = field(default_factory=set)
    over: threading.Event = field(default_factory=threading.Event)
    port: int = 0
    _moved: threading.Condition = field(default_factory=threading.Condition)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}/mcp"

    @property
    def pair(self) -> str:
        """Host and port, as an operator exempts them."""
        return f"127.0.0.1:{self.port}"

    def connect(self, socket: int) -> None:
        """Somebody came."""
        with self._moved:
            self.open_sockets.add(socket)

    def leave(self, socket: int) -> None:
        """Somebody went."""
        with self._moved:
            self.open_sockets.discard(socket)
            self._moved.notify_all()

    async def is_left(self) -> bool:
        """Whether everybody goes, within seconds."""
        return await asyncio.to_thread(self._waited, lambda: not self.open_sockets)

    async def is_called(self) -> bool:
        """Whether a tool is called, within seconds."""
        return await asyncio.to_thread(self._waited, lambda: bool(self.called))

    def get(self, _path: str) -> tuple[int, Any]:
        """What it answers beside its one address."""
        return 404, {}

    def post(self, _path: str, _body: bytes) -> tuple[int, Any]:
        """The same to a POST."""
        return 404, {}

    def _waited(self, condition: Callable[[], bool]) -> bool:
        with self._moved:
            return self._moved.wait_for(condition, 60)

    def result(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        """What it says to a request; None: nothing, for ever."""
        match method:
            case "initialize":
                return {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "outsider", "version": "1"},
                }
            case "server/discover" if self.is_modern:
                return {
                    **COMPLETE,
                    "supportedVersions": ["2026-07-28"],
                    "capabilities": {"tools": {}},
                }
            case "tools/list":
                further = {"nextCursor": self.cursor} if self.cursor else {}
                return {"tools": self.tools, **(COMPLETE if self.is_modern else {}), **further}
            case "tools/call":
                with self._moved:
                    self.called.append(params)
                    self._moved.notify_all()
                return self.answer(self, params)
        raise KeyError(method)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    outsider: Outsider

    def setup(self) -> None:
        super().setup()
        self.outsider.connect(id(self))

    def finish(self) -> None:
        super().finish()
        self.outsider.leave(id(self))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.path != "/mcp":
            self.reply(*self.outsider.post(self.path, body))
            return
        asked = json.loads(body)
        server, method = self.outsider, asked.get("method", "")
        server.methods.append(method)
        server.ids.append(asked.get("id"))
        server.tokens.append(self.headers.get("authorization", ""))
        if server.token and server.tokens[-1] != f"Bearer {server.token}":
            self.reply(401, {"error": "unauthorized"})
        elif method in server.raw:
            server.raw[method](self)
        elif "id" not in asked:
            self.reply(202, None)
        else:
            self._answer(asked, method)

    def do_DELETE(self) -> None:
        self.reply(204, None)

    def do_GET(self) -> None:
        if self.path != "/mcp":
            self.reply(*self.outsider.get(self.path))
            return
        self.outsider.methods.append("GET")
        self.reply(405, None)

    def _answer(self, asked: dict[str, Any], method: str) -> None:
        head = {"jsonrpc": "2.0", "id": asked["id"]}
        try:
            result = self.outsider.result(method, asked.get("params", {}))
        except KeyError:
            self.reply(200, {**head, "error": {"code": -32601, "message": "no such method"}})
            return
        if result is None:
            self.outsider.over.wait(60)
            self.close_connection = True
            return
        self.reply(200, {**head, "result": result})

    def reply(self, status: int, body: Any) -> None:
        """Send one answer."""
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        if data:
            self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def running(outsider: Outsider | None = None) -> Iterator[Outsider]:
    """A server as long as the block runs."""
    made = outsider or Outsider()
    handler = type("Handler", (_Handler,), {"outsider": made})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    made.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.over.set()
        server.shutdown()
        server.server_close()
        thread.join()
