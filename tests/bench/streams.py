"""A thousand clients of one stream: frames a second, memory of an idle one, catching up.

`python -m tests.bench.streams KIND PORT FOLDER` serves one subject in a process of its own: ours
(the whole application, cookie and rights included), the least ASGI can do (`raw`), and
sse-starlette as it comes (`stock`). `POST /publish?n=100` tells all its clients so many events.
What a tab holds open is `live`: the stream of the console, of which the idle memory counts.
"""

import asyncio
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import uvicorn

from app.kernel.asgi.wire import Receive, Scope, Send
from tests.bench.report import Report, Row
from tests.server import free_port
from tests.sources import ROOT

CLIENTS, BURST, ROUNDS, MISSED = 1_000, 50, 7, 10_000
WARM = 200  # clients that are there before memory is counted
PAD = "x" * 150  # an event of some 250 bytes
TICKS = os.sysconf("SC_CLK_TCK")
WIDTH = 48  # of the answer to /publish: a position
LENGTH = [(b"content-length", b"48")]
EVENTS = "/v1/events"
KINDS = ("raw", "ours", "stock")
LIVE = "live"
START_LIMIT_S = 60


def main() -> Report:
    """All subjects, round after round, each with its thousand clients connected."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 16_384), hard))
    with tempfile.TemporaryDirectory() as folder:
        try:
            return asyncio.run(_measured(Path(folder)))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@dataclass
class Subject:
    """A server, its clients, and what the rounds took."""

    kind: str
    process: asyncio.subprocess.Process
    port: int
    cookie: str
    clients: "Clients"
    taken_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    idle_kib: float = 0.0

    async def round(self) -> None:
        """Tell all clients of a burst; until the last of them has the last of it."""
        wanted = self.clients.frames + CLIENTS * BURST
        used, began = _cpu_s(self.process.pid), time.perf_counter()
        await _publish(self.port, BURST)
        await self.clients.until(wanted)
        passed = time.perf_counter() - began
        self.taken_s.append(passed / (CLIENTS * BURST))
        self.cpu_s.append((_cpu_s(self.process.pid) - used) / (CLIENTS * BURST))


class Clients:
    """A thousand readers that count frames."""

    def __init__(self) -> None:
        self.frames = 0
        self._wanted = 0
        self._reached = asyncio.Event()
        self.transports: list[asyncio.BaseTransport] = []

    async def connect(self, port: int, request: bytes, count: int) -> None:
        """So many more, fifty at a time.

        Raises:
            TimeoutError: an answer was none, or not 200.
        """
        loop = asyncio.get_running_loop()
        for _ in range(count // 50):
            made = await asyncio.gather(
                *(
                    loop.create_connection(lambda: _Reader(self, request), "127.0.0.1", port)
                    for _ in range(50)
                )
            )
            self.transports += [transport for transport, _ in made]
            async with asyncio.timeout(START_LIMIT_S):
                await asyncio.gather(*(reader.is_open.wait() for _, reader in made))

    def count(self, frames: int) -> None:
        self.frames += frames
        if self.frames >= self._wanted:
            self._reached.set()

    async def until(self, wanted: int) -> None:
        self._wanted = wanted
        self._reached.clear()
        if self.frames < wanted:
            await asyncio.wait_for(self._reached.wait(), 120)


class _Reader(asyncio.Protocol):
    def __init__(self, clients: Clients, request: bytes) -> None:
        self._clients, self._request = clients, request
        self.is_open = asyncio.Event()

    def connection_made(self, transport: Any) -> None:
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if not self.is_open.is_set() and data.startswith(b"HTTP/1.1 200"):
            self.is_open.set()
        if frames := data.count(PAD.encode()):
            self._clients.count(frames)


async def _measured(folder: Path) -> Report:
    live = await _started(LIVE, folder)
    live.process.kill()
    await live.process.wait()
    subjects = [await _started(kind, folder) for kind in KINDS]
    try:
        for number in range(ROUNDS + 1):
            for subject in subjects if number % 2 else reversed(subjects):
                await subject.round()
        ours = next(subject for subject in subjects if subject.kind == "ours")
        caught_up_s = await _caught_up(ours)
    finally:
        for subject in subjects:
            subject.process.kill()  # streams that never end would keep it
        await asyncio.gather(*(subject.process.wait() for subject in subjects))
    rows = [Row(each.kind, each.taken_s[1:], each.cpu_s[1:]) for each in subjects]
    return Report(
        "streams",
        f"one frame to one of {CLIENTS} clients",
        rows,
        floor="raw",
        more={
            **{f"KiB for an idle client, {each.kind}": each.idle_kib for each in (*subjects, live)},
            f"ms to catch up {MISSED} events": caught_up_s * 1_000,
        },
    )


async def _started(kind: str, folder: Path) -> Subject:
    port = free_port()
    data = folder / kind
    data.mkdir()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.bench.streams", kind, str(port), str(data),
        cwd=ROOT, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    line = await asyncio.wait_for(process.stdout.readline(), START_LIMIT_S)
    assert line.startswith(b"ready"), f"{kind} did not start"
    path, _, cookie = line.decode().strip().removeprefix("ready ").partition(" ")
    subject = Subject(kind, process, port, cookie, Clients())
    request = _request(port, cookie, path=path)
    await subject.clients.connect(port, request, WARM)
    await asyncio.sleep(2)
    before = _rss_kib(process.pid)
    await subject.clients.connect(port, request, CLIENTS - WARM)
    await asyncio.sleep(2)
    subject.idle_kib = round((_rss_kib(process.pid) - before) / (CLIENTS - WARM), 1)
    return subject


async def _caught_up(subject: Subject) -> float:
    """Seconds until a client has everything that happened since it left."""
    for transport in subject.clients.transports:
        transport.close()
    start = await _publish(subject.port, 1)
    for _ in range(MISSED // 1_000):
        await _publish(subject.port, 1_000)
    reader, writer = await asyncio.open_connection("127.0.0.1", subject.port, limit=2**24)
    began, frames = time.perf_counter(), 0
    writer.write(_request(subject.port, subject.cookie, start))
    while frames < MISSED:
        frames += (await reader.read(2**20)).count(PAD.encode())
    passed = time.perf_counter() - began
    writer.close()
    return passed


async def _publish(port: int, count: int) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    host = f"Host: localhost:{port}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    writer.write(f"POST /publish?n={count} HTTP/1.1\r\n{host}".encode())
    answer = (await reader.read()).decode()
    writer.close()
    return answer.rpartition("\r\n")[2].strip()


def _request(port: int, cookie: str, after: str = "", path: str = EVENTS) -> bytes:
    resume = f"Last-Event-ID: {after}\r\n" if after else ""
    head = f"GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\nCookie: {cookie}\r\n{resume}\r\n"
    return head.encode()


def _rss_kib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


# --- the servers ----------------------------------------------------------------------------------

FRAME = (
    f'id: 01JZZZZZZZZZZZZZZZZZZZZZZZ:1\r\nevent: bench\r\ndata: {{"pad":"{PAD}"}}\r\n\r\n'.encode()
)


def _serve(kind: str, port: int, folder: Path) -> None:
    if kind in ("ours", LIVE):
        _serve_ours(port, folder, is_live=kind == LIVE)
    else:
        _run(_Raw() if kind == "raw" else _Stock(), port, "")


def _run(app: Any, port: int, cookie: str, path: str = EVENTS) -> None:
    config = uvicorn.Config(
        app, host="127.0.0.1", port=port, log_config=None, access_log=False, lifespan="off",
        loop="uvloop", backlog=2_048,
    )  # fmt: skip
    server = uvicorn.Server(config)
    startup = server.startup

    async def started(*arguments: Any, **named: Any) -> None:
        await startup(*arguments, **named)
        sys.stdout.write(f"ready {path} {cookie}\n")
        sys.stdout.flush()

    server.startup = started  # type: ignore[method-assign]
    server.run()


class _Broadcast:
    """Bounded queues, one for each client, and a publisher."""

    def __init__(self) -> None:
        self.queues: set[asyncio.Queue[bytes]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/publish":
            for _ in range(int(parse_qs(scope["query_string"].decode())["n"][0])):
                for waiting in self.queues:
                    waiting.put_nowait(FRAME)
            await send({"type": "http.response.start", "status": 200, "headers": LENGTH})
            await send({"type": "http.response.body", "body": b"".ljust(WIDTH)})
            return
        waiting = asyncio.Queue[bytes](1_000)
        self.queues.add(waiting)
        try:
            await self.stream(waiting, scope, receive, send)
        finally:
            self.queues.discard(waiting)

    async def stream(
        self, waiting: "asyncio.Queue[bytes]", scope: Scope, receive: Receive, send: Send
    ) -> None:
        raise NotImplementedError


class _Raw(_Broadcast):
    async def stream(
        self, waiting: "asyncio.Queue[bytes]", scope: Scope, receive: Receive, send: Send
    ) -> None:
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b":\r\n\r\n", "more_body": True})
        while True:
            frame = await waiting.get()
            await send({"type": "http.response.body", "body": frame, "more_body": True})


class _Stock(_Broadcast):
    async def stream(
        self, waiting: "asyncio.Queue[bytes]", scope: Scope, receive: Receive, send: Send
    ) -> None:
        from sse_starlette import EventSourceResponse

        async def frames() -> AsyncIterator[dict[str, str]]:
            yield {"comment": ""}
            while True:
                await waiting.get()
                yield {
                    "id": "01JZZZZZZZZZZZZZZZZZZZZZZZ:1",
                    "event": "bench",
                    "data": f'{{"pad":"{PAD}"}}',
                }

        await EventSourceResponse(frames(), send_timeout=15)(scope, receive, send)


def _serve_ours(port: int, folder: Path, *, is_live: bool) -> None:
    os.environ |= {
        "ASSENT_PORT": str(port),
        "ASSENT_DATA_DIR": str(folder),
        "ASSENT_STREAMS_PER_USER": "5000",
        "ASSENT_RATE_SESSIONS": "1000000/minute",
        "ASSENT_LOG_LEVEL": "ERROR",
    }
    from app import main
    from app.console.live.handles import handle_of
    from app.kernel import db, event_log, logs, settings
    from tests.api import streaming

    logs.configure(as_json=True, level="error")
    settings.current.cache_clear()
    main.start(settings.current())
    who = streaming.person("reader")
    made = main.create_app()

    def append(work: Any, count: int) -> None:
        for _ in range(count):
            event_log.append(work, who.tenant_id, "bench", "bench", {"pad": PAD})

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] != "/publish":
            await made(scope, receive, send)
            return
        await db.transaction(append, int(parse_qs(scope["query_string"].decode())["n"][0]))
        at = str(await db.read(event_log.newest, who.tenant_id)).encode().ljust(WIDTH)
        await send({"type": "http.response.start", "status": 200, "headers": LENGTH})
        await send({"type": "http.response.body", "body": at})

    path = f"/live/stream?session={handle_of(who.session_id)}" if is_live else EVENTS
    try:
        _run(app, port, who.cookie, path)
    finally:
        main.stop()


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
