"""Agents at work: what a step costs, and how soon people see it (performance.md, R1 to R4).

R1 against DBOS and R2 against Chainlit, each in an environment of its own; one that cannot be
installed is left out, and the report says so. `agents_at_work` is the subject, in processes of its
own; R4 needs PostgreSQL, as replicas do.
"""

import asyncio
import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests import databases, session
from tests.bench import peers
from tests.bench.report import Report, Row
from tests.server import environment, free_port
from tests.sources import ROOT

ROUNDS = int(os.environ.get("ASSENT_TEST_BENCH_ROUNDS", "3"))
AT_ONCE, STEPS = 8, 40
ALONE = 20  # steps of a run that has the process for itself
ASKED = 30  # messages of a round of R2
RUNS, WINDOW_S = 50, 10
LEASE_S, TAKEOVERS = 3, 3
OVER = {"completed", "failed", "canceled", "interrupted", "outcome_unknown"}
PATIENCE_S = 120
STEP, DBOS = "engine step", "DBOS step"
STEP_ALONE, DBOS_ALONE = "engine step, alone", "DBOS step, alone"
DBOS_IS, CHAINLIT_IS = "dbos==3.4.0", "chainlit==2.12.0"
STAMP = re.compile(rb"\b1\d{18}\b")

More = dict[str, float]


def main() -> Report:
    """Everything, in turn."""
    with session.run(), tempfile.TemporaryDirectory() as folder:
        rows, more = _steps(Path(folder))
        more |= asyncio.run(_first_thoughts(Path(folder, "r2")))
        more |= asyncio.run(_streaming(Path(folder, "r3")))
        with databases.migrated("postgresql", Path(folder)) as url:
            more |= asyncio.run(_takeovers(Path(folder, "r4"), url))
        databases.finish()
    floor = DBOS if any(row.name == DBOS for row in rows) else STEP
    says = f"one step, {AT_ONCE} runs at once, SQLite"
    return Report("runs", says, rows, floor=floor, more=more)


def _ms(seconds: float) -> float:
    return round(seconds * 1_000, 2)


# --- R1: steps ------------------------------------------------------------------------------------


@contextlib.contextmanager
def _lines(*command: str) -> Iterator["subprocess.Popen[str]"]:
    """A process that answers a line with a line."""
    with subprocess.Popen(
        command, cwd=ROOT, env=environment(), text=True, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        try:
            _line(process)
            yield process
        finally:
            process.kill()


def _line(process: "subprocess.Popen[str]", asked: str = "") -> Any:
    assert process.stdin is not None
    assert process.stdout is not None
    if asked:
        process.stdin.write(f"{asked}\n")
        process.stdin.flush()
    answer = process.stdout.readline().strip()
    assert answer, "a subject or a peer has ended"
    return answer if answer == "ready" else json.loads(answer)


def _steps(folder: Path) -> tuple[list[Row], More]:
    """Ours and DBOS's, round after round."""
    ours = (sys.executable, "-m", "tests.bench.agents_at_work", "steps", str(folder / "r1"))
    subjects: dict[tuple[str, str], tuple[str, ...]] = {(STEP, STEP_ALONE): ours}
    more: More = {}
    if python := peers.python_of("dbos", DBOS_IS):
        peer = str(ROOT / "tests/bench/dbos_peer.py")
        subjects[(DBOS, DBOS_ALONE)] = (python, peer, str(folder / "dbos.db"))
    else:
        more[f"R1 DBOS left out, {DBOS_IS} cannot be installed here"] = 0
    taken: dict[str, Row] = {}
    with contextlib.ExitStack() as stack:
        started = {names: stack.enter_context(_lines(*each)) for names, each in subjects.items()}
        for number in range(ROUNDS + 1):
            for names, process in started.items():
                for name, runs, steps in zip(names, (AT_ONCE, 1), (STEPS, ALONE), strict=True):
                    seen = _line(process, f"{runs} {steps}")
                    if number:  # the first round warms up
                        row = taken.setdefault(name, Row(name, [], []))
                        row.taken_s.append(seen["seconds"] / seen["steps"])
                        row.cpu_s.append(seen["cpu_s"] / seen["steps"])
    if DBOS in taken:
        rate = taken[DBOS].median_s / taken[STEP].median_s
        more["R1 steps a second, as a share of DBOS's (goal 8)"] = round(rate, 2)
    return list(taken.values()), more


# --- the server -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Served:
    """A server in a process of its own, and who is signed in there."""

    process: asyncio.subprocess.Process
    port: int
    people: list[list[str]]

    async def get(self, path: str, cookie: str = "") -> bytes:
        """The body of an answer."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        told = f"Cookie: {cookie}\r\n" if cookie else ""
        head = f"GET {path} HTTP/1.1\r\nHost: localhost:{self.port}\r\n{told}Connection: close\r\n"
        writer.write(f"{head}\r\n".encode())
        answer = await asyncio.wait_for(reader.read(), PATIENCE_S)
        writer.close()
        head_, _, body = answer.partition(b"\r\n\r\n")
        assert head_.startswith(b"HTTP/1.1 200"), head_[:200]
        return body

    async def say(self, who: int, text: str) -> None:
        """Send a message to the agent."""
        await self.get(f"/say?who={who}&text={quote(text)}")

    async def runs(self) -> list[list[Any]]:
        """State, process and lease of every run."""
        found: list[list[Any]] = json.loads(await self.get("/runs"))
        return found

    async def stream(self, who: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """The live stream of a person's browser, open."""
        _, cookie, handle = self.people[who]
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=2**22)
        head = f"GET /live/stream?session={handle} HTTP/1.1\r\nHost: localhost:{self.port}\r\n"
        writer.write(f"{head}Cookie: {cookie}\r\n\r\n".encode())
        first = await asyncio.wait_for(reader.readuntil(b"\r\n"), PATIENCE_S)
        assert b" 200 " in first, first
        return reader, writer


@contextlib.asynccontextmanager
async def _served(folder: Path, **more: str) -> AsyncIterator[Served]:
    served = await _start(folder, **more)
    try:
        yield served
    finally:
        await _end(served)


async def _start(folder: Path, **more: str) -> Served:
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.bench.agents_at_work", "serve", str(port), str(folder),
        cwd=ROOT, env={**environment(), **more}, stdout=subprocess.PIPE, limit=2**20,
    )  # fmt: skip
    assert process.stdout is not None
    line = await asyncio.wait_for(process.stdout.readline(), PATIENCE_S)
    assert line, "the server did not start"
    return Served(process, port, json.loads(line)["company"]["people"])


async def _end(served: Served) -> None:
    with contextlib.suppress(ProcessLookupError):
        served.process.kill()
    await served.process.wait()


# --- R2: the first thought ------------------------------------------------------------------------


async def _first_thoughts(folder: Path) -> More:
    """From what was admitted, and from what was sent, to the first thought in a browser."""
    admitted: list[float] = []
    sent: list[float] = []
    theirs: list[float] = []
    more: More = {}
    python = peers.python_of("chainlit", CHAINLIT_IS)
    async with contextlib.AsyncExitStack() as stack:
        served = await stack.enter_async_context(_served(folder))
        chat = stack.enter_context(_chainlit(python)) if python else None
        reader, _ = await served.stream(0)
        for number in range(ROUNDS + 1):
            seen = [await _think(served, reader) for _ in range(ASKED)]
            moments = json.loads(await served.get("/admitted"))[-ASKED:]
            other = await asyncio.to_thread(_line, chat, str(ASKED)) if chat else []
            if number:  # the first round warms up
                sent += [came - said for said, came in seen]
                pairs = zip(seen, moments, strict=True)
                admitted += [came - moment for (_, came), moment in pairs]
                theirs += other
    more |= _spread("R2 ms from admitted to first thought", admitted, "goal 15")
    more |= _spread("R2 ms from sent to first thought", sent)
    if theirs:
        more |= _spread("R2 ms from sent to first event, Chainlit", theirs)
        share = statistics.median(admitted) / statistics.median(theirs)
        more["R2 admitted to thought, as a share of Chainlit's (goal 0.5)"] = round(share, 2)
    else:
        more[f"R2 Chainlit left out, {CHAINLIT_IS} cannot be installed here"] = 0
    return more


async def _think(served: Served, reader: asyncio.StreamReader) -> tuple[float, float]:
    """When it was sent, and when the thought came."""
    said = time.time()
    await served.say(0, "think")
    async with asyncio.timeout(PATIENCE_S):
        while not (line := await reader.readline()).startswith(b"event: delta"):
            assert line, "the stream has ended"
        came = time.time()
        while any(run[0] in {"queued", "running"} for run in await served.runs()):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    return said, came


@contextlib.contextmanager
def _chainlit(python: str) -> Iterator["subprocess.Popen[str]"]:
    port, peer = free_port(), str(ROOT / "tests/bench/chainlit_peer.py")
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(
            [python, "-m", "chainlit", "run", peer, "--headless", "--port", str(port)],
            cwd=folder, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            _listens(port)
            with _lines(python, peer, str(port)) as client:
                yield client
        finally:
            server.kill()
            server.wait()


def _listens(port: int) -> None:
    import socket

    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    sys.exit("Chainlit did not start")


def _spread(name: str, taken_s: list[float], goal: str = "") -> More:
    cuts = statistics.quantiles(taken_s, n=100) if len(taken_s) > 1 else taken_s * 99
    said = f" ({goal})" if goal else ""
    return {
        f"{name}, min": _ms(min(taken_s)),
        f"{name}, p50{said}": _ms(statistics.median(taken_s)),
        f"{name}, p99": _ms(cuts[98]),
    }


# --- R3: fifty at once ----------------------------------------------------------------------------


async def _streaming(folder: Path) -> More:
    """Fifty runs stream a hundred tokens a second each, to a browser each; pages meanwhile."""
    late_s: list[float] = []
    pages_s: list[float] = []
    async with _served(folder, ASSENT_RUNS_AT_ONCE=str(RUNS)) as served:
        idle_s = [await _page(served) for _ in range(20)]
        streams = [await served.stream(who) for who in range(RUNS)]  # writers are kept open
        readers = [asyncio.create_task(_read(reader, late_s)) for reader, _ in streams]
        await asyncio.gather(*(served.say(who, f"stream {WINDOW_S}") for who in range(RUNS)))
        async with asyncio.timeout(PATIENCE_S):
            while len(over := [run for run in await served.runs() if run[0] in OVER]) < RUNS:
                pages_s.append(await _page(served))
                await asyncio.sleep(0.1)
        assert all(run[0] == "completed" for run in over), over
        for task in readers:
            task.cancel()
    tokens = len(late_s)
    return {
        f"R3 tokens that came, of {RUNS * WINDOW_S * 100:,}": tokens,
        **_spread("R3 ms a token came late", late_s, "goal 150 at p99"),
        **_spread("R3 ms for a page of the console", pages_s, "goal 100"),
        "R3 ms for the page while nothing runs, p50": _ms(statistics.median(idle_s)),
    }


async def _read(reader: asyncio.StreamReader, late_s: list[float]) -> None:
    """Note how late each token is; the end brings all of them once more."""
    newest = 0
    while line := await reader.readline():
        came = time.time_ns()
        if b'"to":"thought-' not in line:
            continue
        for found in STAMP.findall(line):
            if (made := int(found)) > newest:
                newest = made
                late_s.append((came - made) / 1e9)


async def _page(served: Served) -> float:
    began = time.perf_counter()
    await served.get("/conversations", served.people[0][1])
    return time.perf_counter() - began


# --- R4: takeovers --------------------------------------------------------------------------------


async def _takeovers(folder: Path, url: str) -> More:
    """From the death of a worker to the claim of its run by another process."""
    env = {"ASSENT_DATABASE_URL": url, "ASSENT_RUN_LEASE_S": str(LEASE_S)}
    after_death, after_lease = [], []
    living = await _start(folder, **env)
    try:
        await living.say(0, "stream 600")
        await _held(living, other_than=None)
        for _ in range(TAKEOVERS):
            heir = await _start(folder, **env)
            _, holder, _ = await _held(living, other_than=None)
            await _end(living)
            died, living = time.time(), heir
            _, _, lease_until = (await living.runs())[0]
            await _held(living, other_than=holder)
            after_death.append(time.time() - died)
            after_lease.append(time.time() - lease_until)
    finally:
        await _end(living)
    goal = f"goal {LEASE_S + 1:g} s"
    return {
        f"R4 s from death to takeover, lease {LEASE_S} s, worst ({goal})": round(
            max(after_death), 2
        ),
        "R4 s from death to takeover, median": round(statistics.median(after_death), 2),
        "R4 s from the end of the lease to the takeover, worst": round(max(after_lease), 2),
    }


async def _held(served: Served, other_than: str | None) -> list[Any]:
    """The run, once a process other than that one has it."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            state, holder, lease_until = (await served.runs() or [["", None, 0]])[0]
            if state == "running" and holder and holder != other_than:
                return [state, holder, lease_until]
            await asyncio.sleep(0.02)
