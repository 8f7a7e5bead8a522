"""First page of the trail under each filter, and an export, at 10⁶ entries (performance.md, C7).

The floor is the list without a filter. Each filter is asked once with a value that many entries
have, and once with one that only a few old entries have, the worst case for a list of the newest.
"""

import asyncio
import gc
import os
import random
import sqlite3
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from app.audit import chain, exports, queries
from app.audit.exports import Export
from app.audit.queries import EVERYTHING, Filters, Head
from app.identity.principal import Channel, Principal
from app.kernel import db
from tests import databases, people, session
from tests.bench.report import Report, Row

ENTRIES = int(os.environ.get("ASSENT_TEST_BENCH_ENTRIES", "1000000"))
ROUNDS = 5
GOAL_S = 0.030
FLOOR = "no filter"
RARE = 20  # entries, the oldest of the trail
TENANT = "T" * 26
BEGAN = datetime(2025, 1, 1, tzinfo=UTC)
STEP = timedelta(seconds=30)

# Filter → (a value many entries have, one few have).
ASKED: dict[str, tuple[Any, Any]] = {
    "user_id": ("U1", "URARE"),
    "agent_id": ("A1", "ARARE"),
    "agent_release": ("R1", "RRARE"),
    "model": ("m-large", "m-rare"),
    "model_version": ("2026-10", "v-rare"),
    "command": ("expense.report.submit", "rare.thing.do"),
    "risks": (("L1",), ("L4",)),
    "irreversible": (True, True),
    "outcomes": (("done",), ("unknown",)),
    "stage": ("authorize", "effect"),
    "reason": ("permission_denied", "rare_reason"),
    "approved_by": ("U2", "UAPPROVER"),
    "target_id": ("D1", "DRARE"),
    "conversation_id": ("C1", "CRARE"),
    "prompt_ref": ("P1", "PRARE"),
    "run_id": ("N1", "NRARE"),
    "channel": ("console", "a2a"),
    "consent": ("none", "other"),
    "by": ("agent", "person"),
}


def main() -> Report:
    """Fill a trail, then measure each filter in turn."""
    with session.run(), tempfile.TemporaryDirectory() as folder:
        with databases.migrated("sqlite", Path(folder)) as url:
            fill(Path(folder, "assent.db"))
            db.open(url)
            with people.ready():
                asked = subjects().items()
                rows = [row for name, filters in asked for row in measured(name, filters)]
                more = asyncio.run(exported())
            db.close()
        databases.finish()
    pages = [row for row in rows if not row.name.endswith("count")]
    slow = [row.name for row in pages if row.median_s > GOAL_S]
    return Report(
        topic="audit",
        says=f"first page at {ENTRIES:,} entries, goal {GOAL_S * 1e3:.0f} ms",
        rows=rows,
        floor=FLOOR,
        more={**more, "pages above the goal": len(slow)},
    )


def subjects() -> dict[str, Filters]:
    """Every filter with a common and a rare value, and some together."""
    found = {FLOOR: Filters()}
    for name, (common, rare) in ASKED.items():
        found[f"{name} common"] = Filters(**{name: common})
        found[f"{name} rare"] = Filters(**{name: rare})
    old, recent = BEGAN + STEP * 1_000, BEGAN + STEP * (ENTRIES - 1_000)
    return found | {
        "a day long ago": Filters(since=old, until=old + timedelta(days=1)),
        "the last hours": Filters(since=recent),
        "all, until long ago": Filters(until=old),
        "a beginning of codes": Filters(command="expense."),
        "L3 and L4 of agents": Filters(risks=("L3", "L4"), by="agent"),
        "a tag": Filters(commands=("expense.payment.send", "expense.report.approve")),
        "U1 without asking": Filters(
            user_id="U1", by="agent", consent="none", outcomes=("done", "dispatched")
        ),
        "U1's refusals": Filters(user_id="U1", outcomes=("refused",)),
    }


def measured(name: str, filters: Filters) -> list[Row]:
    """The first page of a filter, and the count beside it."""
    return [
        timed(name, lambda: db.read_now(queries.page, TENANT, filters)),
        timed(f"{name}: count", lambda: db.read_now(queries.count, TENANT, filters)),
    ]


def timed(name: str, act: Callable[[], Any]) -> Row:
    """`ROUNDS` times, after one that compiles the statement."""
    act()
    taken, cpu = [], []
    for _ in range(ROUNDS):
        began, used = time.perf_counter(), time.process_time()
        act()
        taken.append(time.perf_counter() - began)
        cpu.append(time.process_time() - used)
    return Row(name, taken, cpu)


async def exported() -> dict[str, float]:
    """An export of everything: how long, and how much memory it took above idle."""
    principal = Principal.person(
        tenant_id=TENANT, user_id="U1", session_id="S", epoch=0, channel=Channel.CONSOLE
    )
    head = Head(ENTRIES, "")
    more: dict[str, float] = {}
    for format in ("csv", "jsonl"):
        export = Export(format, principal, {}, Filters(), UTC, head, lambda *_: EVERYTHING)
        gc.collect()
        idle, most, size, began = resident_mb(), 0.0, 0, time.perf_counter()
        async for number, piece in _numbered(exports.pieces(export)):
            size += len(piece)
            if number % 50 == 0:
                most = max(most, resident_mb())
        more[f"{format} export, s"] = round(time.perf_counter() - began, 1)
        more[f"{format} export, MB"] = round(size / 1e6)
        more[f"{format} export, MB of memory above idle"] = round(
            max(most, resident_mb()) - idle, 1
        )
    return more


async def _numbered(pieces: Any) -> Any:
    number = 0
    async for piece in pieces:
        yield number, piece
        number += 1


def resident_mb() -> float:
    """Memory of this process now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def fill(file: Path) -> None:
    """Write the trail past the application: its hashes mean nothing here."""
    marks = ", ".join("?" for _ in chain.COLUMNS)
    names = ", ".join(chain.COLUMNS)
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute(
            "INSERT INTO tenant (id, slug, name, status, locale, settings, created_at) "
            "VALUES (?, 'bench', 'Bench', 'active', 'en', '{}', '2025-01-01 00:00:00.000000')",
            [TENANT],
        )
        indexes = connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'index' "
            "AND tbl_name = 'audit_entry' AND sql IS NOT NULL"
        ).fetchall()
        for name, _ in indexes:
            connection.execute(f'DROP INDEX "{name}"')  # made at the end it takes a tenth
        connection.executemany(
            f"INSERT INTO audit_entry ({names}) VALUES ({marks})",  # noqa: S608 - our columns
            (entry(seq, random.Random(seq)) for seq in range(1, ENTRIES + 1)),  # noqa: S311
        )
        for _, made in indexes:
            connection.execute(made)
    connection.close()


def entry(seq: int, dice: random.Random) -> list[Any]:
    """One row, as the application would have stored it."""
    is_rare = seq <= RARE
    by_agent = (not is_rare and dice.random() < 0.7) or is_rare
    refused = dice.random() < 0.1
    command = "rare.thing.do" if is_rare else dice.choices(COMMANDS, WEIGHTS)[0]
    given: dict[str, Any] = {
        "tenant_id": TENANT,
        "seq": seq,
        "prev_hash": "0" * 64,
        "hash": f"{seq:064x}",
        "at": (BEGAN + STEP * seq).strftime("%Y-%m-%d %H:%M:%S.%f"),
        "call_id": f"{seq:026d}",
        "command": command,
        "version": 1,
        "risk": "L4" if is_rare else dice.choices(["L0", "L1", "L2", "L3"], [50, 30, 17, 3])[0],
        "idempotent": 0,
        "reversible": 0 if is_rare else 1,
        "outcome": "unknown" if is_rare else "refused" if refused else "done",
        "stage": "effect" if is_rare else "authorize" if refused else None,
        "reason": "rare_reason" if is_rare else "permission_denied" if refused else None,
        "user_id": "URARE" if is_rare else f"U{min(int(dice.expovariate(0.05)), 200)}",
        "channel": "a2a" if is_rare else "run" if by_agent else "console",
        "target_id": "DRARE" if is_rare else f"D{dice.randrange(5_000)}",
        "target_type": "expense.report",
        "approved_by": "UAPPROVER" if is_rare else "U2" if dice.random() < 0.02 else None,
        "approved_at": None,
        "input_redacted": '{"amount_minor":120000,"note":"出差, two nights","lines":[1,2,3]}',
        "changes": '[{"record":"expense.report","id":"01J0","label":"EXP-2041",'
        '"operation":"update","version":3,"fields":{"state":["draft","submitted"]}}]',
        "timings": '{"load":"0.12","authorize":"0.31","schema_validate":"0.2","effect":"0.9"}',
    }
    if by_agent:
        number = dice.randrange(1, 10)
        given |= {
            "agent_id": "ARARE" if is_rare else f"A{number}",
            "agent_release": "RRARE" if is_rare else f"R{number}",
            "model": "m-rare" if is_rare else "m-large",
            "model_version": "v-rare" if is_rare else dice.choice(["2026-10", "2026-11"]),
            "conversation_id": "CRARE" if is_rare else f"C{dice.randrange(10_000)}",
            "prompt_ref": "PRARE" if is_rare else f"P{dice.randrange(100_000)}",
            "run_id": "NRARE" if is_rare else f"N{dice.randrange(100_000)}",
        }
    return [given.get(name) for name in chain.COLUMNS]


COMMANDS = [
    "expense.report.submit",
    "expense.report.list",
    "expense.report.approve",
    "expense.payment.send",
    "inventory.item.move",
    "identity.session.start",
]
WEIGHTS = [20, 50, 10, 1, 15, 4]
