"""Messages over sockets against the least they could cost, and a peer (performance.md, M1 to M5).

The server is a process of its own with SQLite; the clients share this one. `python -m
tests.bench.aun PORT` serves the floor of M4: WebSockets that are told one frame, and nothing else.
Matrix Synapse, the peer of M2, is left out where it cannot be had, and the report says so.
"""

import asyncio
import contextlib
import json
import os
import re
import resource
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn

from app.kernel.asgi.wire import Receive, Scope, Send
from app.operator.serve import SOCKETS
from tests.aun.serving import Party, Raw, Refused, text
from tests.bench import floors, synapse_peer
from tests.bench.floors import Floor
from tests.bench.report import Report, Row
from tests.bench.synapse_peer import Exchange
from tests.server import RunningServer, free_port
from tests.sources import ROOT

DOMAIN = "assent.localhost"
ROUNDS = int(os.environ.get("ASSENT_TEST_BENCH_ROUNDS", "3"))
ENTRIES = int(os.environ.get("ASSENT_TEST_BENCH_ENTRIES", "1000000"))
WINDOW_S, AT_ONCE = 3.5, 64
PEER_WINDOW_S, AT_ONCE_BESIDE_PEER = 10.0, 16
IDLE, WARM, FANS = 1_000, 100, 20
PAGE, PULLS = 200, 30
PAD = "x" * 150
SUBJECT, FLOOR = "message.send", "four rows, grouped"
TICKS = os.sysconf("SC_CLK_TCK")
PATIENCE_S = 120


def main() -> Report:
    """Everything against one server, in turn."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 16_384), hard))
    with tempfile.TemporaryDirectory() as folder:
        try:
            return _measured(Path(folder))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@dataclass
class Sends:
    """What the rounds of M1 took, by subject, and how long deliveries came after answers."""

    taken_s: dict[str, list[float]] = field(default_factory=dict)
    cpu_s: dict[str, list[float]] = field(default_factory=dict)
    late_s: list[float] = field(default_factory=list)

    def add(self, name: str, floor: Floor) -> None:
        self.taken_s.setdefault(name, []).append(floor.per_op_s)
        self.cpu_s.setdefault(name, []).append(floor.cpu_per_op_s)


def _measured(folder: Path) -> Report:
    env = {"ASSENT_AUN_REGISTRATION": "open", "ASSENT_RATE_AUN_AUTH": "1000000/minute"}
    server = RunningServer(folder / "data", env={**env, "ASSENT_LOG_LEVEL": "ERROR"}, afresh=True)
    server.command("migrate")
    server.command("tenant", "add", "acme", "--name", "Acme", "--owner", "olga")
    server.start()
    try:
        sends = Sends()
        parties = asyncio.run(_ready(server.port, IDLE))
        for _ in range(ROUNDS):
            sends.add(FLOOR, floors.grouped(folder / "floor.db", WINDOW_S))
            sends.add(SUBJECT, asyncio.run(_send(server, parties[:AT_ONCE], sends.late_s)))
        more = asyncio.run(_beside_peer(folder, parties[:AT_ONCE_BESIDE_PEER]))
        more |= asyncio.run(_crowd(server, parties))
        reader, sender = parties[0], parties[-1]
        asyncio.run(_one(sender, reader))
        server.stop()
        _fill(server.data / "assent.db", sender.aid, reader.aid)
        server.start()
        more |= asyncio.run(_pull(reader, sender.aid))
    finally:
        server.stop()
    late = statistics.quantiles(sends.late_s, n=100)
    more |= {"M1 ms from answer to delivery, p50": _ms(late[49]), "p99": _ms(late[98])}
    rows = [Row(name, sends.taken_s[name], sends.cpu_s[name]) for name in (FLOOR, SUBJECT)]
    return Report("aun", f"a message, {AT_ONCE} clients", rows, floor=FLOOR, more=more)


async def _ready(port: int, count: int) -> list[Party]:
    parties = [Party(f"bench{number:04}.{DOMAIN}", port) for number in range(count)]
    for at in range(0, count, 20):
        await asyncio.gather(*(party.ready() for party in parties[at : at + 20]))
    return parties


# --- M1: sends ------------------------------------------------------------------------------------


async def _send(server: RunningServer, parties: list[Party], late_s: list[float]) -> Floor:
    """A window of sends, each client to the next one."""
    taken: list[float] = []
    answered: dict[str, float] = {}
    came: dict[str, float] = {}
    more = asyncio.Event()

    class Ear(list[dict[str, Any]]):
        def append(self, frame: dict[str, Any]) -> None:
            if frame.get("method") == "event/message.received":
                came[frame["params"].get("message_id", "")] = time.perf_counter()
                more.set()

    async def client(number: int, socket: Raw, until_s: float) -> None:
        socket.heard = Ear()
        to = parties[(number + 1) % len(parties)].aid
        while (at := time.perf_counter()) < until_s:
            with contextlib.suppress(Refused):
                made = await socket.call("message.send", to=to, payload=text(PAD))
                answered[made["message_id"]] = time.perf_counter()
                taken.append(time.perf_counter() - at)

    async with contextlib.AsyncExitStack() as stack:
        sockets = [await stack.enter_async_context(each.connected()) for each in parties]
        used, began = _cpu_s(server.pid), time.perf_counter()
        until_s = began + WINDOW_S
        await asyncio.gather(*(client(n, each, until_s) for n, each in enumerate(sockets)))
        passed, used = time.perf_counter() - began, _cpu_s(server.pid) - used
        async with asyncio.timeout(PATIENCE_S):
            while not answered.keys() <= came.keys():
                await more.wait()
                more.clear()
    late_s += [max(0.0, came[each] - at) for each, at in answered.items()]
    return Floor(passed / len(taken), used / len(taken), statistics.median(taken))


# --- M2: a peer -----------------------------------------------------------------------------------


async def _beside_peer(folder: Path, parties: list[Party]) -> dict[str, float]:
    """Messages a second, and how long they take to their readers, here and in Matrix Synapse."""
    python = synapse_peer.python()
    if python is None:
        return {"M2 left out, Matrix Synapse cannot be installed here": 0}
    ours, theirs = [], []
    async with synapse_peer.served(python, folder / "synapse", len(parties)) as clients:
        await synapse_peer.exchange(clients, 2, PAD)
        for _ in range(ROUNDS):
            theirs.append(await synapse_peer.exchange(clients, PEER_WINDOW_S, PAD))
            ours.append(await _exchange(parties))
    rates = [statistics.median(each.per_s for each in made) for made in (ours, theirs)]
    waits = [
        statistics.median(statistics.median(each.delivered_s) for each in made)
        for made in (ours, theirs)
    ]
    return {
        "M2 messages a second": round(rates[0]),
        "M2 messages a second, Synapse": round(rates[1], 1),
        "M2 times the rate of Synapse": round(rates[0] / rates[1], 1),
        "M2 ms to the reader, p50": _ms(waits[0]),
        "M2 ms to the reader, p50, Synapse": _ms(waits[1]),
        "M2 share of Synapse's wait": round(waits[0] / waits[1], 3),
    }


async def _exchange(parties: list[Party]) -> Exchange:
    """A window of sends, each client to the next one, until all of them were read."""
    began_at: dict[str, float] = {}
    delivered_s: list[float] = []
    more = asyncio.Event()

    class Ear(list[dict[str, Any]]):
        def append(self, frame: dict[str, Any]) -> None:
            if frame.get("method") == "event/message.received":
                at = began_at.get(frame["params"].get("message_id", ""))
                if at is not None:
                    delivered_s.append(time.perf_counter() - at)
                    more.set()

    async def client(number: int, socket: Raw, until_s: float) -> None:
        socket.heard = Ear()
        to = parties[(number + 1) % len(parties)].aid
        while (at := time.perf_counter()) < until_s:
            message_id = f"m-{number}-{int(at * 1e6)}"
            began_at[message_id] = at
            try:
                await socket.call("message.send", to=to, message_id=message_id, payload=text(PAD))
            except Refused:
                del began_at[message_id]

    async with contextlib.AsyncExitStack() as stack:
        sockets = [await stack.enter_async_context(each.connected()) for each in parties]
        began = time.perf_counter()
        until_s = began + PEER_WINDOW_S
        await asyncio.gather(*(client(n, each, until_s) for n, each in enumerate(sockets)))
        passed = time.perf_counter() - began
        async with asyncio.timeout(PATIENCE_S):
            while len(delivered_s) < len(began_at):
                await more.wait()
                more.clear()
    return Exchange(passed, delivered_s)


# --- M3 and M4: a thousand connections ------------------------------------------------------------


class Client(asyncio.Protocol):
    """A WebSocket that says at most one thing and counts what it hears."""

    def __init__(self, crowd: "Crowd", port: int, say: Callable[[str], dict[str, Any]] | None):
        self._crowd, self._port, self._say = crowd, port, say
        self._seen = b""
        self.is_open = asyncio.Event()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        transport.write(
            f"GET /aun/ws HTTP/1.1\r\nHost: gateway.{DOMAIN}:{self._port}\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n".encode()
        )

    def data_received(self, data: bytes) -> None:
        if self.is_open.is_set():
            self._crowd.count(data.count(PAD.encode()))
            return
        self._seen += data
        if self._say is None:
            if b" 101 " in self._seen:
                self.is_open.set()
        elif b'"status":"ok"' in self._seen:
            self.is_open.set()
        elif nonce := re.search(rb'"nonce":"([^"]+)"', self._seen):
            params = self._say(nonce[1].decode())
            asked = {"jsonrpc": "2.0", "id": 1, "method": "auth.connect", "params": params}
            raw = json.dumps(asked).encode()
            self.transport.write(b"\x81\xfe" + len(raw).to_bytes(2, "big") + bytes(4) + raw)
            self._seen = b""


@dataclass
class Crowd:
    """Many connections, and what they heard together."""

    port: int
    clients: list[Client] = field(default_factory=list)
    heard: int = 0
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def join(self, sayings: list[Callable[[str], dict[str, Any]] | None]) -> None:
        """One more for each of these."""
        loop = asyncio.get_running_loop()
        for at in range(0, len(sayings), 25):
            new = [Client(self, self.port, each) for each in sayings[at : at + 25]]
            for client in new:
                await loop.create_connection(lambda made=client: made, "127.0.0.1", self.port)  # type: ignore[misc]
            async with asyncio.timeout(PATIENCE_S):
                await asyncio.gather(*(client.is_open.wait() for client in new))
            self.clients += new

    def count(self, frames: int) -> None:
        self.heard += frames
        self._changed.set()

    async def until(self, wanted: int) -> None:
        """Until so much was heard."""
        async with asyncio.timeout(PATIENCE_S):
            while self.heard < wanted:
                self._changed.clear()
                await self._changed.wait()

    def leave(self) -> None:
        """Close every one."""
        for client in self.clients:
            client.transport.close()


async def _crowd(server: RunningServer, parties: list[Party]) -> dict[str, float]:
    """Memory of an idle connection, and one group message to all of them."""
    owner, members = parties[0], parties[1:]
    group = await _group(owner, members)
    crowd = Crowd(server.port)
    await crowd.join([each.connect_params for each in members[:WARM]])
    before = _rss_kib(server.pid)
    await crowd.join([each.connect_params for each in members[WARM:]])
    each_kib = (_rss_kib(server.pid) - before) / (len(members) - WARM)
    port = free_port()
    floor = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.bench.aun", str(port), cwd=ROOT
    )
    raw = Crowd(port)
    ours_s, raw_s = [], []
    try:
        await _listens(port)
        await raw.join([None] * len(members))
        async with owner.connected() as socket:
            for number in range(FANS):
                ours_s.append(await _fan(crowd, lambda: _say(socket, group)))
                if number % 2 == 0:
                    raw_s.append(await _fan(raw, lambda: _publish(port)))
        raw.leave()
    finally:
        floor.kill()
        await floor.wait()
        crowd.leave()
    ours, least = statistics.median(ours_s[1:]), statistics.median(raw_s[1:])
    return {
        "M3 KiB for an idle connection": round(each_kib, 1),
        f"M4 ms to tell {len(members)} members": _ms(ours),
        f"M4 ms to tell {len(members)} sockets, raw ASGI": _ms(least),
        "M4 share of the raw rate": round(least / ours, 2),
    }


async def _fan(crowd: Crowd, tell: Callable[[], Any]) -> float:
    wanted, began = crowd.heard + len(crowd.clients), time.perf_counter()
    await tell()
    await crowd.until(wanted)
    return time.perf_counter() - began


async def _say(socket: Raw, group: str) -> None:
    await socket.call("group.send", group_id=group, payload=text(PAD), encrypt=False)


async def _group(owner: Party, members: list[Party]) -> str:
    async with owner.connected() as socket:
        first = [each.aid for each in members[:200]]
        made = await socket.call("group.create", name="Everybody", members=first)
        group_id: str = made["group"]["group_id"]
        for member in members[200:]:
            while True:
                try:
                    await socket.call("group.add_member", group_id=group_id, aid=member.aid)
                except Refused as refused:
                    await asyncio.sleep(refused.data["retry_after_ms"] / 1_000)
                else:
                    break
    return group_id


# --- M5: a page of a long inbox -------------------------------------------------------------------


async def _one(sender: Party, reader: Party) -> None:
    async with sender.connected() as socket:
        await socket.call("message.send", to=reader.aid, payload=text(PAD))


def _fill(file: Path, sender: str, reader: str) -> None:
    """The newest message of the inbox, so many times more."""
    with contextlib.closing(sqlite3.connect(file)) as database, database:
        columns = [row[1] for row in database.execute("PRAGMA table_info(message)")]
        new = {
            "id": "printf('01ZZZZZZZZZZZZZZZZ%010d', n)",
            "message_id": "printf('m-bench-%d', n)",
            "seq": "NULL",
        }
        chosen = ", ".join(new.get(name, f"one.{name}") for name in columns)
        numbers = (
            "WITH RECURSIVE many(n) AS "  # noqa: S608
            f"(SELECT 1 UNION ALL SELECT n + 1 FROM many WHERE n < {ENTRIES})"
        )
        database.execute(
            f"INSERT INTO message ({', '.join(columns)}) {numbers} SELECT {chosen} FROM many, "  # noqa: S608
            "(SELECT * FROM message WHERE sender_aid = ? AND receiver_aid = ? LIMIT 1) AS one",
            [sender, reader],
        )
        [(tenant, top)] = database.execute(
            "SELECT tenant_id, seq FROM inbox_counter WHERE aid = ?", [reader]
        ).fetchall()
        [(previous,)] = database.execute(
            "SELECT max(seq) FROM inbox_entry WHERE aid = ? AND sender_aid = ?", [reader, sender]
        ).fetchall()
        database.execute(
            "INSERT INTO inbox_entry (tenant_id, aid, seq, message, sender_aid, prev_peer_seq, "  # noqa: S608
            f"direction) {numbers} SELECT ?, ?, ? + n, printf('01ZZZZZZZZZZZZZZZZ%010d', n), ?, "
            "CASE n WHEN 1 THEN ? ELSE ? + n - 1 END, 'inbound' FROM many",
            [tenant, reader, top, sender, previous, top],
        )
        database.execute("UPDATE inbox_counter SET seq = ? WHERE aid = ?", [top + ENTRIES, reader])


async def _pull(reader: Party, sender: str) -> dict[str, float]:
    taken = []
    async with reader.connected() as socket:
        for number in range(PULLS):
            after = number * (ENTRIES // (PULLS + 1))
            began = time.perf_counter()
            page = await socket.call(
                "message.v2.pull", cursor_scope="peer", sender_aid=sender, after_seq=after,
                limit=PAGE, device_id=reader.device, slot_id="default",
            )  # fmt: skip
            taken.append(time.perf_counter() - began)
            assert len(page["messages"]) == PAGE
    return {f"M5 ms for a page of {PAGE} of {ENTRIES:,}": _ms(statistics.median(taken))}


def _ms(seconds: float) -> float:
    return round(seconds * 1_000, 2)


def _rss_kib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


# --- the floor of M4 ------------------------------------------------------------------------------

FRAME = json.dumps(
    {"jsonrpc": "2.0", "method": "event/group.message_created", "params": PAD + "y" * 400}
)


async def _listens(port: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return


async def _publish(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"POST /publish HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    await reader.read()
    writer.close()


class _Raw:
    """One frame to every socket."""

    def __init__(self) -> None:
        self._sends: list[Send] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            for each in self._sends:
                await each({"type": "websocket.send", "text": FRAME})
            await send({"type": "http.response.start", "status": 204, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        await receive()
        await send({"type": "websocket.accept"})
        self._sends.append(send)
        while (await receive())["type"] != "websocket.disconnect":
            pass


if __name__ == "__main__":
    uvicorn.run(
        _Raw(), host="127.0.0.1", port=int(sys.argv[1]), **SOCKETS, loop="uvloop", lifespan="off",
        log_config=None, access_log=False, backlog=2_048,
    )  # fmt: skip
