"""Clients in a process of their own: each sends its next call when it has the answer to the last.

`python -m tests.bench.load` reads what to do as JSON, writes `begin` and `end` around the time that
counts, and then what it saw, as JSON. Raw sockets: the less it costs, the more is left to measure.
"""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop

from tests.sources import ROOT

WARM_S = 1.0
PATIENCE_S = 60  # for the first answers, and for those that are still to come at the end
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Seen:
    """What the clients saw in the time that counts, and what the server used in it.

    Attributes:
        taken_s: of each answer.
        statuses: how often each status came, from the first request to the last.
        odd: some of the answers that were not 200.
        cpu_s: processor seconds of the server.
    """

    seconds: float
    taken_s: list[float]
    statuses: dict[str, int]
    odd: list[str]
    cpu_s: float

    @property
    def per_op_s(self) -> float:
        """Seconds of the whole for each answer: one divided by the rate."""
        return self.seconds / len(self.taken_s)

    @property
    def cpu_per_op_s(self) -> float:
        """Processor seconds of the server for each answer."""
        return self.cpu_s / len(self.taken_s)

    def percentile_s(self, percent: float) -> float:
        """The time within which so many answers came."""
        ordered = sorted(self.taken_s)
        return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


@dataclass(frozen=True, slots=True)
class Caller:
    """One client: its token, and the records it changes in turn."""

    token: str
    targets: tuple[str, ...]


def run(port: int, pid: int, callers: list[Caller], *, path: str, seconds: float) -> Seen:
    """Let one client for each of `callers` call `path` for so long, once the first answers came.

    `pid` is the server's process.
    """
    told = {
        "port": port,
        "path": path,
        "seconds": seconds,
        "callers": [[each.token, each.targets] for each in callers],
    }
    with subprocess.Popen(
        [sys.executable, "-m", "tests.bench.load"],
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


def cpu_s(pid: int) -> float:
    """Processor seconds a process has used, its threads together."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


class _Client(asyncio.Protocol):
    """One connection, one call at a time."""

    def __init__(self, load: "_Load", number: int, token: str, targets: list[str]) -> None:
        self._load, self._targets = load, targets
        self._prefix = f"{os.getpid()}-{number}-{time.monotonic_ns()}-"
        self._sent = 0
        self._began_s = 0.0
        self._heard = b""
        self._head = (
            f"POST {load.path} HTTP/1.1\r\nHost: localhost:{load.port}\r\n"
            f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\n"
        )

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._call()

    def data_received(self, data: bytes) -> None:
        self._heard += data
        head, found, body = self._heard.partition(b"\r\n\r\n")
        if not found:
            return
        _, _, rest = head.lower().partition(b"content-length: ")
        if len(body) < int(rest.split(b"\r\n", 1)[0]):
            return
        self._heard = b""
        if self._load.saw(head[9:12].decode(), body, self._began_s):
            self._call()
        else:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._load.left(exc)

    def _call(self) -> None:
        self._sent += 1
        target = self._targets[self._sent % len(self._targets)]
        body = (
            f'{{"input":{{"targetRecordId":"{target}","operationType":"UPDATE",'
            f'"title":"Trip {self._prefix}{self._sent}"}}}}'
        )
        text = (
            f"{self._head}Idempotency-Key: {self._prefix}{self._sent}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}"
        )
        self._began_s = time.perf_counter()
        self._transport.write(text.encode())  # type: ignore[attr-defined]


class _Load:
    """All clients together."""

    def __init__(self, told: dict[str, Any]) -> None:
        self.path, self.port = told["path"], told["port"]
        self._told = told
        self._taken_s: list[float] = []
        self._statuses: Counter[str] = Counter()
        self._odd: list[str] = []
        self._counts = self._is_over = False
        self._left = len(told["callers"])
        self._is_warm, self._all_left = asyncio.Event(), asyncio.Event()

    def saw(self, status: str, body: bytes, began_s: float) -> bool:
        """Note an answer; whether to go on."""
        if self._counts:
            self._taken_s.append(time.perf_counter() - began_s)
        self._statuses[status] += 1
        if self._statuses.total() >= len(self._told["callers"]):
            self._is_warm.set()
        if status != "200" and len(self._odd) < 5:
            self._odd.append(body.decode(errors="replace")[:500])
        return not self._is_over

    def left(self, fault: Exception | None) -> None:
        """A connection is gone."""
        if fault is not None or not self._is_over:
            self._statuses["broken"] += 1
        self._left -= 1
        if not self._left:
            self._all_left.set()

    async def run(self) -> None:
        """Call, and say what was seen."""
        loop = asyncio.get_running_loop()
        for number, (token, targets) in enumerate(self._told["callers"]):
            client = _Client(self, number, token, targets)
            await loop.create_connection(lambda made=client: made, "127.0.0.1", self.port)  # type: ignore[misc]
        await asyncio.sleep(WARM_S)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._is_warm.wait(), PATIENCE_S)
        self._counts, began_s = True, time.perf_counter()
        _say("begin")
        await asyncio.sleep(self._told["seconds"])
        self._counts, seconds = False, time.perf_counter() - began_s
        _say("end")
        self._is_over = True
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._all_left.wait(), PATIENCE_S)
        if self._left:
            self._statuses["unanswered"] = self._left
        saw = {"seconds": seconds, "taken_s": self._taken_s}
        _say(json.dumps({**saw, "statuses": self._statuses, "odd": self._odd}))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    uvloop.run(_Load(json.loads(sys.stdin.read())).run())
