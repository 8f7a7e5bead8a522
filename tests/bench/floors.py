"""The least a governed call could cost: its four rows in the driver alone, its request alone.

`python -m tests.bench.floors PORT` serves the endpoint of calls without a database: the same
layers, the same routes around it, the same body read the same way, one answer for all.
"""

import asyncio
import contextlib
import queue
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import psycopg
import uvloop

CLIENTS = 64
CONNECTIONS = 6  # as many as the product has for writing
ENTRY = orjson.dumps({f"column_{number}": "x" * 20 for number in range(20)}).decode()
ANSWER = orjson.dumps({f"field_{number}": "x" * 20 for number in range(12)}).decode()
TOLD = orjson.dumps({f"fact_{number}": "x" * 20 for number in range(6)}).decode()
TABLES = (
    "CREATE TABLE business (id TEXT PRIMARY KEY, title TEXT, version INTEGER, note TEXT)",
    "CREATE TABLE audit (seq {serial}, hash TEXT, entry {json})",
    "CREATE TABLE outcome (key TEXT PRIMARY KEY, answer {json}, at TEXT)",
    "CREATE TABLE outbox (id TEXT PRIMARY KEY, data {json}, state TEXT)",
)
ROWS = (
    "INSERT INTO business (id, title, version, note) VALUES (?, 'A trip', 1, 'A note')",
    "INSERT INTO audit (hash, entry) VALUES (?, ?)",
    "INSERT INTO outcome (key, answer, at) VALUES (?, ?, '2026-01-01 00:00:00')",
    "INSERT INTO outbox (id, data, state) VALUES (?, ?, 'pending')",
)
CTE = (
    "WITH a AS (INSERT INTO business (id, title, version, note) "
    "VALUES (%(id)s, 'A trip', 1, 'A note')), "
    "b AS (INSERT INTO audit (hash, entry) VALUES (%(id)s, %(entry)s)), "
    "c AS (INSERT INTO outcome (key, answer, at) "
    "VALUES (%(id)s, %(answer)s, '2026-01-01 00:00:00')) "
    "INSERT INTO outbox (id, data, state) VALUES (%(id)s, %(told)s, 'pending')"
)


@dataclass(frozen=True, slots=True)
class Floor:
    """One window of a floor in this process."""

    per_op_s: float
    cpu_per_op_s: float
    p50_s: float


def grouped(file: Path, seconds: float) -> Floor:
    """SQLite's: one writer that commits waiting units together, for 64 clients."""
    jobs: queue.SimpleQueue[Future[None] | None] = queue.SimpleQueue()
    writer = threading.Thread(target=_write_groups, args=(file, jobs))
    writer.start()

    def submit(future: "Future[None]") -> None:
        jobs.put(future)

    try:
        return _measured(submit, seconds)
    finally:
        jobs.put(None)
        writer.join()


def serial(file: Path, seconds: float) -> Floor:
    """SQLite's, one commit after the other, nobody else there."""
    connection, taken, number = _opened(file), [], 0
    began, used = time.perf_counter(), time.process_time()
    while time.perf_counter() - began < seconds:
        at = time.perf_counter()
        connection.execute("BEGIN IMMEDIATE")
        _insert(connection, f"{at}-{number}")
        connection.execute("COMMIT")
        taken.append(time.perf_counter() - at)
        number += 1
    passed, used = time.perf_counter() - began, time.process_time() - used
    connection.close()
    return Floor(passed / number, used / number, sorted(taken)[number // 2])


def one_statement(url: str, seconds: float) -> Floor:
    """PostgreSQL's: the four rows in one statement, 64 clients over as many connections as ours."""
    local, opened = threading.local(), []

    def write(future: "Future[None]") -> None:
        if not hasattr(local, "connection"):
            local.connection = psycopg.connect(url, autocommit=True)
            opened.append(local.connection)
        id = f"{threading.get_ident()}-{time.perf_counter_ns()}"
        local.connection.execute(CTE, {"id": id, "entry": ENTRY, "answer": ANSWER, "told": TOLD})
        future.set_result(None)

    with psycopg.connect(url, autocommit=True) as connection:
        for table in TABLES:
            made = table.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS")
            connection.execute(made.format(serial="BIGSERIAL PRIMARY KEY", json="JSONB"))
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        floor = _measured(lambda future: pool.submit(write, future), seconds)
    for connection in opened:
        connection.close()
    return floor


def _measured(submit: Callable[["Future[None]"], object], seconds: float) -> Floor:
    taken: list[float] = []

    async def client(until_s: float) -> None:
        while (at := time.perf_counter()) < until_s:
            future: Future[None] = Future()
            submit(future)
            await asyncio.wrap_future(future)
            taken.append(time.perf_counter() - at)

    async def clients() -> None:
        until_s = time.perf_counter() + seconds
        await asyncio.gather(*(client(until_s) for _ in range(CLIENTS)))

    began, used = time.perf_counter(), time.process_time()
    uvloop.run(clients())
    passed, used = time.perf_counter() - began, time.process_time() - used
    return Floor(passed / len(taken), used / len(taken), sorted(taken)[len(taken) // 2])


def _write_groups(file: Path, jobs: "queue.SimpleQueue[Future[None] | None]") -> None:
    connection, number = _opened(file), 0
    began = time.monotonic_ns()
    job = jobs.get()
    while job is not None:
        group: list[Future[None]] = [job]
        with contextlib.suppress(queue.Empty):
            while len(group) < CLIENTS and (more := jobs.get_nowait()) is not None:
                group.append(more)
        connection.execute("BEGIN IMMEDIATE")
        for _ in group:
            number += 1
            connection.execute("SAVEPOINT unit")
            _insert(connection, f"{began}-{number}")
            connection.execute("RELEASE unit")
        connection.execute("COMMIT")
        for each in group:
            each.set_result(None)
        job = jobs.get()
    connection.close()


def _insert(connection: sqlite3.Connection, id: str) -> None:
    business, audit, outcome, outbox = ROWS
    connection.execute(business, [id])
    connection.execute(audit, [id, ENTRY])
    connection.execute(outcome, [id, ANSWER])
    connection.execute(outbox, [id, TOLD])


def _opened(file: Path) -> sqlite3.Connection:
    is_new = not file.exists()
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    for table in TABLES if is_new else ():
        connection.execute(table.format(serial="INTEGER PRIMARY KEY", json="TEXT"))
    return connection


def serve(port: int) -> None:
    """The endpoint of calls, without a database."""
    import uvicorn
    from fastapi import APIRouter, FastAPI, Request
    from fastapi.responses import Response

    from app import main
    from app.api import calls
    from app.api.direct import Direct, answered_by
    from app.kernel import json, settings
    from app.kernel.bounded_head import BoundedHead
    from app.operator.serve import pass_over_what_stays

    answer: dict[str, Any] = orjson.loads(ANSWER)
    router = APIRouter(prefix="/v1", route_class=Direct)

    async def call(request: Request) -> Response:
        asked = calls.CallRequest.model_validate(json.loads(await request.body()), strict=True)
        said = {"cmdCode": request.path_params["cmd_code"], "preview": asked.preview, **answer}
        return Response(json.dumps(said), media_type="application/json")

    @router.post("/commands/{cmd_code}/calls")
    @answered_by(call)
    async def described(cmd_code: str) -> None:
        """The endpoint, without its words."""

    app = FastAPI(
        middleware=main.layers(settings.current()),
        redirect_slashes=False,
        telemetry=main.NO_TELEMETRY,
    )
    for each in main.routers():
        app.include_router(router if each is calls.router else each)
    pass_over_what_stays()
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=port,
        http=BoundedHead,
        loop="uvloop",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        lifespan="off",
    )


if __name__ == "__main__":
    from app.kernel import logs

    logs.configure(as_json=True, level="warning")
    serve(int(sys.argv[1]))
