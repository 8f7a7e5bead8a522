"""Commands as tools over MCP, against the SDK alone and what one writes in an afternoon (T1, T2).

A governed call with a key, of agents of many users, everything durable; a list of 1,000 tools, page
by page, as a client reads it. In each round every subject has a window, in turn.
"""

import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
from sqlalchemy import update
from sqlmodel import col

from app.identity import tokens as token_of
from app.identity.doors import Door
from app.identity.models import Delegation
from app.identity.tokens import Standing
from app.kernel import clock, db, settings
from app.kernel.db import Work
from tests import databases, session
from tests.bench import commands, company, mcp_load, peers
from tests.bench.commands import UNLIMITED, Filled
from tests.bench.company import Person
from tests.bench.load import Seen
from tests.bench.mcp_load import Asker, request
from tests.bench.report import Report, Row
from tests.server import RunningServer, environment, free_port
from tests.sources import ROOT

ROUNDS = int(os.environ.get("ASSENT_TEST_BENCH_ROUNDS", "3"))
WINDOW_S = 3.5  # of each round
CLIENTS, READERS, TOOLS = 32, 4, 1_000
PEER_IS = "fastmcp==4.1.6"
CALL, TRIVIAL, PEER = "governed call", "trivial tool of the SDK", "fastmcp + SQLModel"
LIST, SDK_LIST = "1,000 tools, in pages", "1,000 tools of the SDK"


def main() -> Report:
    """Build the company, then measure everything in turn."""
    os.environ.pop("ASSENT_PORT", None)
    settings.current.cache_clear()
    company.COMMANDS = TOOLS
    taken: dict[str, list[Seen]] = {}
    with session.run(), tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        with commands.filled("sqlite", folder / "sqlite") as sqlite:
            measure(sqlite, folder, taken)
        databases.finish()
    return reported(taken)


def measure(sqlite: Filled, folder: Path, taken: dict[str, list[Seen]]) -> None:
    """T1 and T2."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(unlimited(sqlite))
        sdk = stack.enter_context(served(sys.executable, "-m", "tests.bench.mcp_floor"))
        python = peers.python_of("fastmcp", PEER_IS, "sqlmodel")
        script = str(ROOT / "tests/bench/mcp_peer.py")
        peer = python and stack.enter_context(served(python, "-P", script, str(folder / "peer.db")))
        pages = cursors(sqlite, server.port)
        for _ in range(ROUNDS):
            asked = {
                CALL: (server.port, server.pid, governed(sqlite)),
                TRIVIAL: (*sdk, trivial()),
                LIST: (server.port, server.pid, readers(sqlite, pages)),
                SDK_LIST: (*sdk, [Asker("x", (request("tools/list"),))] * READERS),
            }
            if peer:
                asked[PEER] = (*peer, afternoon())
            for name, (port, pid, askers) in asked.items():
                host = host_of(sqlite) if pid == server.pid else f"127.0.0.1:{port}"
                seen = mcp_load.run(port, pid, askers, host=host, seconds=WINDOW_S)
                if seen.odd or not seen.taken_s:
                    sys.exit(f"{name}: {seen.statuses} {seen.odd}")
                taken.setdefault(name, []).append(seen)


@contextlib.contextmanager
def unlimited(sqlite: Filled) -> Iterator[RunningServer]:
    """The server, with 1,000 commands in force; nobody counts how often one asks."""
    server = sqlite.server()
    server.env["ASSENT_RATE_SESSIONS"] = UNLIMITED
    with server:
        with sqlite.opened():
            company.publish_more(sqlite.people[0].tenant_id)
        yield server


def governed(sqlite: Filled) -> list[Asker]:
    """Clients that change titles of reports of theirs."""
    body = request(
        "tools/call",
        {"assent/idempotencyKey": "{n}"},
        name=company.CODE,
        arguments={
            "targetRecordId": "{target}",
            "operationType": "UPDATE",
            "title": "Trip {n}",
        },
    )
    return [Asker(each, (body,), targets) for each, targets in tokens(sqlite, CLIENTS)]


def trivial() -> list[Asker]:
    """Clients of a tool that says what it was told."""
    body = request("tools/call", name="bench.thing.no1", arguments={"title": "Trip {n}"})
    return [Asker("x", (body,))] * CLIENTS


def afternoon() -> list[Asker]:
    """Clients of the peer."""
    arguments = {"record": "{target}", "title": "Trip {n}", "key": "{n}"}
    body = request("tools/call", name="update", arguments=arguments)
    records = tuple(f"record-{number}" for number in range(100))
    return [Asker("x", (body,), records)] * CLIENTS


def readers(sqlite: Filled, pages: list[str]) -> list[Asker]:
    """Clients that read the whole list."""
    bodies = tuple(listing(each) for each in pages)
    return [Asker(each, bodies) for each, _ in tokens(sqlite, READERS)]


def listing(cursor: str) -> str:
    """The request of a page; of the first one without a cursor."""
    return request("tools/list", cursor=cursor) if cursor else request("tools/list")


def cursors(sqlite: Filled, port: int) -> list[str]:
    """The cursors of all pages, the first one empty."""
    [(token, _)] = tokens(sqlite, 1)
    head = {
        "Authorization": f"Bearer {token}",
        "Host": host_of(sqlite),
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "Mcp-Protocol-Version": mcp_load.REVISION,
        "Mcp-Method": "tools/list",
    }
    found, count = [""], 0
    while True:
        body = listing(found[-1])
        answer = httpx2.post(f"http://127.0.0.1:{port}/mcp", content=body, headers=head)
        result: dict[str, Any] = answer.json()["result"]
        count += len(result["tools"])
        if "nextCursor" not in result:
            break
        found.append(result["nextCursor"])
    if count < TOOLS * 0.9:
        sys.exit(f"the list has {count} tools only")
    return found


def tokens(sqlite: Filled, clients: int) -> list[tuple[str, tuple[str, ...]]]:
    """Fresh tokens of this door, and the reports of their users."""
    with sqlite.opened():
        return db.transact_now(_tokens, sqlite.people[:clients])


def _tokens(work: Work, people: list[Person]) -> list[tuple[str, tuple[str, ...]]]:
    scopes = [each.value for each in Door.MCP.scopes]
    wider = update(Delegation).where(
        col(Delegation.id).in_([each.delegation_id for each in people])
    )
    work.session.execute(wider.values(scopes=scopes))
    return [
        (
            token_of.make(
                work.session,
                Standing(
                    tenant_id=each.tenant_id,
                    user_id=each.id,
                    epoch=1,
                    actors=(each.agent_id,),
                    client_id=each.agent_id,
                    delegation_id=each.delegation_id,
                    auth_time=clock.now(),
                    amr=("pwd",),
                ),
                scope=" ".join(scopes),
                audience=Door.MCP.resource,
            ),
            each.reports,
        )
        for each in people
    ]


def host_of(_sqlite: Filled) -> str:
    """The name the product answers to, wherever it listens."""
    return urlsplit(settings.current().origin).netloc


@contextlib.contextmanager
def served(*command: str) -> Iterator[tuple[int, int]]:
    """A server of a command that takes a port; port and process."""
    port = free_port()
    with subprocess.Popen([*command, str(port)], cwd=ROOT, env=environment()) as process:
        try:
            commands._wait_for(process, port)
            yield port, process.pid
        finally:
            process.terminate()


def reported(taken: dict[str, list[Seen]]) -> Report:
    """All of it, with what was reached of each goal."""
    rows = {
        name: Row(name, [one.per_op_s for one in seen], [one.cpu_per_op_s for one in seen])
        for name, seen in taken.items()
    }
    reached = {
        "T1 rate of the SDK's trivial tool (goal 0.5)": rows[TRIVIAL].median_s
        / rows[CALL].median_s,
        "T2 times the SDK's own list (goal 30)": rows[SDK_LIST].median_s / rows[LIST].median_s,
        "T1 p99 ms": statistics.median(one.percentile_s(99) for one in taken[CALL]) * 1e3,
    }
    if PEER in rows:
        reached["T1 times fastmcp's (goal 5)"] = rows[PEER].median_s / rows[CALL].median_s
    else:
        reached[f"T1 {PEER} left out, {PEER_IS} cannot be installed here"] = 0
    return Report(
        topic="mcp",
        says=f"tools/call with {CLIENTS} clients, tools/list with {READERS}, 2026-07-28",
        rows=list(rows.values()),
        floor=TRIVIAL,
        more={name: round(value, 3) for name, value in reached.items()},
    )
