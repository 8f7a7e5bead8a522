"""A governed command over HTTP against the least it could cost (performance.md, C1 to C6, C8).

A rules-only L1 command of agents of many users, with a key, in a company of 1,000 people, 500
commands and 100,000 reports; everything durable. In each round every subject has a window, in turn.
The bound H of one interpreter is the time of the four rows and of the request without a database
together. `ASSENT_TEST_BENCH_ENTRIES` is the long trail of C8.
"""

import asyncio
import base64
import contextlib
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.commands import catalogue, pipeline
from app.commands.call import Call
from app.commands.stages import schema_validate
from app.kernel import db, settings
from app.kernel.db import Work
from tests import databases, people, postgres, session
from tests.bench import company, floors, load
from tests.bench.company import Person
from tests.bench.floors import Floor
from tests.bench.load import Caller, Seen
from tests.bench.report import Report, Row
from tests.server import RunningServer, environment, free_port
from tests.sources import ROOT

ROUNDS = int(os.environ.get("ASSENT_TEST_BENCH_ROUNDS", "3"))
WINDOW_S = 3.5  # of each round
SHORT_S = 2.0
CLIENTS, BURST = 64, 640
ENTRIES = int(os.environ.get("ASSENT_TEST_BENCH_ENTRIES", "1000000"))
FEW = 1_000
PATH = f"/v1/commands/{company.CODE}/calls"
H = "H: four rows + request"
SUBJECT, ROWS, REQUEST, NAIVE = "command", "four rows, grouped", "request alone", "naive service"
ONE, ONE_FLOOR = "command, 1 client", "four rows, serial"
PG, PG_FLOOR, PG_H = "command, PostgreSQL", "one statement, PostgreSQL", "H, PostgreSQL"
SHORT_TRAIL, LONG_TRAIL = f"command, {FEW:,} entries", f"command, {ENTRIES:,} entries"
UNLIMITED = "100000000/minute"


@dataclass
class Taken:
    """What every window came to, by subject."""

    floors: dict[str, list[Floor]] = field(default_factory=dict)
    seen: dict[str, list[Seen]] = field(default_factory=dict)

    def row(self, name: str) -> Row:
        """One line of the report."""
        each: list[Any] = self.floors.get(name) or self.seen[name]
        return Row(name, [one.per_op_s for one in each], [one.cpu_per_op_s for one in each])

    def p99_s(self, name: str) -> float:
        """The middle of the rounds' 99th percentiles."""
        return statistics.median(one.percentile_s(99) for one in self.seen[name])

    def p50_s(self, name: str) -> float:
        """The middle of the rounds' medians."""
        if name in self.floors:
            return statistics.median(one.p50_s for one in self.floors[name])
        return statistics.median(one.percentile_s(50) for one in self.seen[name])

    def ratio(self, name: str, floor: str) -> float:
        """How much of the floor's rate a subject reaches."""
        return self.row(floor).median_s / self.row(name).median_s


def main() -> Report:
    """Build the company on both databases, then measure everything in turn."""
    os.environ.pop("ASSENT_PORT", None)
    settings.current.cache_clear()
    with session.run(), tempfile.TemporaryDirectory() as made:
        folder, taken = Path(made), Taken()
        with contextlib.ExitStack() as stack:
            sqlite = stack.enter_context(filled("sqlite", folder / "sqlite"))
            trails = long_and_short(sqlite, folder)
            more = inside(sqlite)
            measure_sqlite(sqlite, folder, taken)
            measure_trails(trails, taken)
            with contextlib.suppress(postgres.NoPostgres):
                measure_postgresql(folder, taken)
        databases.finish()
    return reported(taken, more)


@dataclass(frozen=True, slots=True)
class Filled:
    """A database with the company in it; its data folder is the server's."""

    url: str
    folder: Path
    people: list[Person]

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """With this process at it, too."""
        db.open(self.url)
        try:
            with people.ready(declared=True):
                yield
        finally:
            db.close()

    def callers(self, clients: int) -> list[Caller]:
        """So many clients, whose tokens are good for five minutes."""
        with self.opened():
            return company.callers(self.people[:clients])

    def server(self) -> RunningServer:
        """The real one, on this database."""
        key = base64.urlsafe_b64encode(bytes(32)).decode()
        return RunningServer(
            self.folder,
            self.url,
            env={
                "ASSENT_MASTER_KEY": key,
                "ASSENT_PUBLIC_URL": settings.current().origin,
                "ASSENT_LOG_LEVEL": "WARNING",
                "ASSENT_RATE_CALLS": UNLIMITED,
                "ASSENT_RATE_WRITES": UNLIMITED,
            },
            afresh=True,
        )

    @contextlib.contextmanager
    def served(self) -> Iterator[RunningServer]:
        """The server, with 500 commands in force."""
        with self.server() as server:
            with self.opened():
                company.publish_more(self.people[0].tenant_id)
            yield server


@contextlib.contextmanager
def filled(kind: databases.Kind, folder: Path) -> Iterator[Filled]:
    """A new database with the company in it."""
    folder.mkdir()
    with databases.migrated(kind, folder) as url:
        db.open(url)
        try:
            with people.ready():
                made = company.make()
        finally:
            db.close()
        yield Filled(url, folder, made)


def long_and_short(sqlite: Filled, folder: Path) -> dict[str, Filled]:
    """Two copies, with few and with many entries in the trail."""
    copies = {}
    for name, entries in ((SHORT_TRAIL, FEW), (LONG_TRAIL, ENTRIES)):
        data = folder / f"trail-{entries}"
        data.mkdir()
        file = data / "assent.db"
        with sqlite3.connect(sqlite.folder / "assent.db") as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        shutil.copyfile(sqlite.folder / "assent.db", file)
        copy = copies[name] = Filled(databases.sqlite_url(file), data, sqlite.people)
        with copy.opened(), without_indexes(file):
            company.lengthen_trail(copy.people[0].tenant_id, entries)
    return copies


@contextlib.contextmanager
def without_indexes(file: Path) -> Iterator[None]:
    """Let the trail grow without its indexes, which are made at the end: it takes a tenth."""
    with sqlite3.connect(file) as connection:
        indexes = connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'index' "
            "AND tbl_name = 'audit_entry' AND sql IS NOT NULL"
        ).fetchall()
        for name, _ in indexes:
            connection.execute(f'DROP INDEX "{name}"')
    yield
    with connection:
        for _, made in indexes:
            connection.execute(made)
    connection.close()


def measure_sqlite(sqlite: Filled, folder: Path, taken: Taken) -> None:
    """C1, C2 and C3."""
    file = folder / "floor.db"
    with sqlite.served() as server, endpoint() as bare, naive(folder / "naive.db") as peer:
        for _ in range(ROUNDS):
            callers = sqlite.callers(BURST)
            some = callers[:CLIENTS]
            called = {
                SUBJECT: (server.port, server.pid, some, WINDOW_S),
                REQUEST: (*bare, some, WINDOW_S),
                NAIVE: (*peer, some, WINDOW_S),
                ONE: (server.port, server.pid, some[:1], WINDOW_S),
                "burst": (server.port, server.pid, callers, SHORT_S),
            }
            rows: dict[str, Callable[[Path, float], Floor]] = {
                ROWS: floors.grouped,
                ONE_FLOOR: floors.serial,
            }
            for name, (port, pid, clients, seconds) in called.items():
                note(taken, name, load.run(port, pid, clients, path=PATH, seconds=seconds))
            for name, write in rows.items():
                taken.floors.setdefault(name, []).append(write(file, WINDOW_S))
        locked = server.log().count("locked")
    taken.seen["burst"].append(_with_locks(taken.seen["burst"][-1], locked))


def _with_locks(seen: Seen, locked: int) -> Seen:
    odd = ["locked, in the log"] * locked
    return Seen(seen.seconds, seen.taken_s, {}, odd, seen.cpu_s)


def measure_trails(trails: dict[str, Filled], taken: Taken) -> None:
    """C8."""
    with contextlib.ExitStack() as stack:
        servers = {name: stack.enter_context(each.served()) for name, each in trails.items()}
        for _ in range(ROUNDS):
            for name, server in servers.items():
                callers = trails[name].callers(CLIENTS)
                seen = load.run(server.port, server.pid, callers, path=PATH, seconds=SHORT_S)
                note(taken, name, seen)


def measure_postgresql(folder: Path, taken: Taken) -> None:
    """C4."""
    with filled("postgresql", folder / "postgresql") as made, made.served() as server:
        plain = made.url.replace("+psycopg", "")
        for _ in range(ROUNDS):
            callers = made.callers(CLIENTS)
            seen = load.run(server.port, server.pid, callers, path=PATH, seconds=WINDOW_S)
            note(taken, PG, seen)
            floor = floors.one_statement(plain, WINDOW_S)
            taken.floors.setdefault(PG_FLOOR, []).append(floor)


def note(taken: Taken, name: str, seen: Seen) -> None:
    """Keep a window."""
    if not seen.taken_s:
        sys.exit(f"{name}: no answer counted; {seen.statuses} {seen.odd}")
    taken.seen.setdefault(name, []).append(seen)


@contextlib.contextmanager
def endpoint() -> Iterator[tuple[int, int]]:
    """The endpoint without a database; port and process."""
    port = free_port()
    env = {"ASSENT_PORT": str(port), "ASSENT_LOG_LEVEL": "WARNING"}
    with _process("tests.bench.floors", str(port), env=env, port=port) as pid:
        yield port, pid


@contextlib.contextmanager
def naive(file: Path) -> Iterator[tuple[int, int]]:
    """The naive service; port and process."""
    port = free_port()
    with _process("tests.bench.naive", str(file), str(port), env={}, port=port) as pid:
        yield port, pid


@contextlib.contextmanager
def _process(module: str, *arguments: str, env: dict[str, str], port: int) -> Iterator[int]:
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(command, cwd=ROOT, env={**environment(), **env}) as process:
        try:
            _wait_for(process, port)
            yield process.pid
        finally:
            process.terminate()


def _wait_for(process: "subprocess.Popen[bytes]", port: int) -> None:
    while process.poll() is None:
        with contextlib.suppress(OSError), _connected(port):
            return
        time.sleep(0.05)
    sys.exit("a peer did not start")


def _connected(port: int) -> Any:
    import socket

    return socket.create_connection(("127.0.0.1", port), timeout=1)


def inside(sqlite: Filled) -> dict[str, float]:
    """C5 and C6, in this process."""
    with sqlite.server():
        pass  # the pack's commands are published at its first start
    with sqlite.opened():
        company.publish_more(sqlite.people[0].tenant_id)
        return {**of_catalogue(sqlite.people), **asyncio.run(of_guards(sqlite.people))}


def of_catalogue(persons: list[Person]) -> dict[str, float]:
    """How long a catalogue of 500 commands takes: kept, not kept, first of all."""

    def timed(person: Person) -> float:
        began = time.perf_counter()
        found = db.read_now(catalogue.of, person.principal)
        assert len(found.entries) > company.COMMANDS * 0.8
        return (time.perf_counter() - began) * 1e3

    first = timed(persons[0])
    cold = [timed(each) for each in persons[1:10]]
    warm = [timed(each) for each in persons[1:10]]
    return {
        "C5 catalogue, first of a process, ms": round(first, 2),
        "C5 catalogue cold, ms (goal 50)": round(statistics.median(cold), 2),
        "C5 catalogue warm, ms (goal 5)": round(statistics.median(warm), 3),
    }


async def of_guards(persons: list[Person]) -> dict[str, float]:
    """Processor time of the stages that say whether a call may run."""
    guards = await db.rehearsal(_guarded, persons[:200])
    guards = (await db.rehearsal(_guarded, persons[200:600]))[0], guards[1]
    taken = sorted(guards[0])
    return {
        "C6 schema stage, CPU µs (goal 5)": round(guards[1], 2),
        "C6 all guard stages, CPU µs (goal 250)": round(statistics.median(taken), 1),
    }


def _guarded(work: Work, persons: list[Person]) -> tuple[list[float], float]:
    taken = []
    for number, each in enumerate(persons):
        call = Call(
            code=company.CODE,
            input={
                "targetRecordId": each.reports[0],
                "operationType": "UPDATE",
                "title": f"Trip {number}",
            },
            principal=each.principal,
            idempotency_key=f"guard-{number}",
        )
        ctx = pipeline._context(work, call)
        began = time.thread_time_ns()
        for stage in pipeline.MAY_IT_RUN:
            pipeline._run(stage, ctx)
        taken.append((time.thread_time_ns() - began) / 1e3)
    began, times = time.thread_time_ns(), 2_000
    for _ in range(times):
        schema_validate.run(ctx)
    return taken, (time.thread_time_ns() - began) / 1e3 / times


def reported(taken: Taken, more: dict[str, float]) -> Report:
    """All of it, with what was reached of each goal."""
    names = [SUBJECT, ROWS, REQUEST, NAIVE, ONE, ONE_FLOOR, "burst", SHORT_TRAIL, LONG_TRAIL]
    rows = [taken.row(name) for name in names]
    bound = _bound(taken, ROWS, H)
    reached = {
        "C1 rate of H (goal 0.35, then 0.6)": bound.median_s / taken.row(SUBJECT).median_s,
        "C1 times naive (goal 12)": taken.ratio(SUBJECT, NAIVE),
        "C1 p99 ms": taken.p99_s(SUBJECT) * 1e3,
        "C1 naive p99 ms": taken.p99_s(NAIVE) * 1e3,
        "C1 p99 of naive's (goal 0.083)": taken.p99_s(SUBJECT) / taken.p99_s(NAIVE),
        "C2 p50 ms": taken.p50_s(ONE) * 1e3,
        "C2 p50 times serial commit's (goal 3)": taken.p50_s(ONE) / taken.p50_s(ONE_FLOOR),
        "C3 answers that were not 200, 64 clients": _odd(taken, SUBJECT),
        f"C3 answers that were not 200, {BURST} clients": _odd(taken, "burst"),
        "C3 locked": sum(
            "locked" in text
            for name in (SUBJECT, "burst")
            for one in taken.seen[name]
            for text in one.odd
        ),
        "C8 CPU of a call, long trail (goal 1.3)": statistics.median(taken.row(LONG_TRAIL).cpu_s)
        / statistics.median(taken.row(SHORT_TRAIL).cpu_s),
    }
    rows.append(bound)
    if PG in taken.seen:
        rows += [taken.row(PG), taken.row(PG_FLOOR), _bound(taken, PG_FLOOR, PG_H)]
        reached["C4 rate of one statement's (goal 0.5)"] = taken.ratio(PG, PG_FLOOR)
        reached["C4 rate of H"] = rows[-1].median_s / taken.row(PG).median_s
    return Report(
        topic="commands",
        says=f"a governed call, {CLIENTS} clients where not said otherwise",
        rows=rows,
        floor=H,
        more={**{name: round(value, 3) for name, value in reached.items()}, **more},
    )


def _bound(taken: Taken, rows: str, name: str) -> Row:
    four, request = taken.row(rows), taken.row(REQUEST)
    return Row(
        name,
        [sum(each) for each in zip(four.taken_s, request.taken_s, strict=True)],
        [sum(each) for each in zip(four.cpu_s, request.cpu_s, strict=True)],
    )


def _odd(taken: Taken, name: str) -> int:
    return sum(
        number
        for one in taken.seen[name]
        for status, number in one.statuses.items()
        if status != "200"
    )
