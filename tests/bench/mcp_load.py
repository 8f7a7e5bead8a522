"""MCP clients in a process of their own: each sends its next request when it has the last answer.

As `load.py`, for requests of the revision 2026-07-28; `{n}` in a body is a number that no other
request has, `{target}` one of the client's records in turn.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

import uvloop

from tests.bench.load import PATIENCE_S, WARM_S, Seen, cpu_s
from tests.sources import ROOT

REVISION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": REVISION,
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


@dataclass(frozen=True, slots=True)
class Asker:
    """One client: its token, the requests it sends in turn, and the records they are about."""

    token: str
    bodies: tuple[str, ...]
    targets: tuple[str, ...] = ("",)


def request(method: str, meta: dict[str, Any] | None = None, **params: Any) -> str:
    """The body of a request."""
    given = {**params, "_meta": {**META, **(meta or {})}}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": given})


def run(port: int, pid: int, askers: list[Asker], *, host: str, seconds: float) -> Seen:
    """Let the clients ask for so long, once the first answers came; `pid` is the server's."""
    told = {
        "port": port,
        "host": host,
        "seconds": seconds,
        "askers": [[each.token, each.bodies, each.targets] for each in askers],
    }
    with subprocess.Popen(
        [sys.executable, "-m", "tests.bench.mcp_load"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(told))
        process.stdin.close()
        process.stdout.readline()
        used = cpu_s(pid)
        process.stdout.readline()
        used = cpu_s(pid) - used
        saw = json.loads(process.stdout.readline())
    return Seen(saw["seconds"], saw["taken_s"], saw["statuses"], saw["odd"], used)


class _Load:
    """All clients together."""

    def __init__(self, told: dict[str, Any]) -> None:
        self._told = told
        self._taken_s: list[float] = []
        self._statuses: Counter[str] = Counter()
        self._odd: list[str] = []
        self._counts = self._is_over = False
        self._sent = 0

    async def run(self) -> None:
        """Ask, and say what was seen."""
        asking = [asyncio.create_task(self._ask(*each)) for each in self._told["askers"]]
        await asyncio.sleep(WARM_S)
        self._counts, began_s = True, time.perf_counter()
        _say("begin")
        await asyncio.sleep(self._told["seconds"])
        self._counts, seconds = False, time.perf_counter() - began_s
        _say("end")
        self._is_over = True
        await asyncio.wait(asking, timeout=PATIENCE_S)
        saw = {"seconds": seconds, "taken_s": self._taken_s}
        _say(json.dumps({**saw, "statuses": self._statuses, "odd": self._odd}))

    async def _ask(self, token: str, bodies: list[str], targets: list[str]) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._told["port"])
        number = 0
        while not self._is_over:
            began_s, size, status = time.perf_counter(), 0, "200"
            for body in bodies:  # together they are one operation
                number, self._sent = number + 1, self._sent + 1
                unique = f"{os.getpid()}-{time.monotonic_ns()}-{self._sent}"
                sent = body.replace("{n}", unique).replace(
                    "{target}", targets[number % len(targets)]
                )
                writer.write(self._head(token, sent).encode() + sent.encode())
                status, answer = await _answer(reader)
                size += len(answer)
                if (status != "200" or b'"isError":true' in answer) and len(self._odd) < 5:
                    self._odd.append(answer[:500].decode(errors="replace"))
            self._statuses[status] += 1
            if self._counts:
                self._taken_s.append(time.perf_counter() - began_s)
        writer.close()

    def _head(self, token: str, body: str) -> str:
        asked = json.loads(body)
        params = asked["params"]
        name = f"Mcp-Name: {params['name']}\r\n" if "name" in params else ""
        return (
            f"POST /mcp HTTP/1.1\r\nHost: {self._told['host']}\r\nAuthorization: Bearer {token}\r\n"
            "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
            f"Mcp-Protocol-Version: {REVISION}\r\nMcp-Method: {asked['method']}\r\n{name}"
            f"Content-Length: {len(body)}\r\n\r\n"
        )


async def _answer(reader: asyncio.StreamReader) -> tuple[str, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    _, _, rest = head.partition(b"content-length: ")
    return head[9:12].decode(), await reader.readexactly(int(rest.split(b"\r\n", 1)[0]))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    uvloop.run(_Load(json.loads(sys.stdin.read())).run())
