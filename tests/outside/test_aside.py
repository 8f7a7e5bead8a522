"""What a server lists costs nobody else anything: it is bounded, and read beside the loop."""

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from app.outside import aside, offers, schemas
from app.outside.connection import Connection
from app.outside.endpoint import Endpoint
from app.outside.offers import Listed
from app.outside.schemas import Unfit
from tests.outside.servers import CITY, Outsider, tool

Start = Callable[..., Outsider]


def patterned(number: int, pattern: str = "^[a-z]{2}%d$") -> dict[str, object]:
    """A schema with as many patterns."""
    parts = {f"p{each}": {"type": "string", "pattern": pattern % each} for each in range(number)}
    return {"type": "object", "properties": parts}


def costly(number: int) -> dict[str, object]:
    """The same, each of which takes milliseconds."""
    return patterned(number, "^(" + "|".join([r"\w\d\s\W"] * 12) + ")%d$")


@pytest.mark.requirement("SEC-68")
async def test_a_list_that_is_slow_to_read_stops_nobody(outside: Start) -> None:
    slow = [tool(f"t{number}", inputSchema=costly(15)) for number in range(8)]
    slow += [tool(f"u{number}", inputSchema=costly(300)) for number in range(8)]
    server = outside(Outsider(tools=slow))
    longest = 0.0

    async def beat() -> None:
        nonlocal longest
        before = time.process_time()
        while True:
            await asyncio.to_thread(threading.Event().wait, 0.005)
            now = time.process_time()
            before, longest = now, max(longest, now - before)

    beating = asyncio.create_task(beat())
    connection = Connection(Endpoint(server.url))
    await connection.ready()
    beating.cancel()

    rules = [offer.unfit for offer in connection.offers.values()]
    await connection.close()
    assert rules == [""] * 5 + ["too_many_patterns"] * 11
    assert longest < 1.0


@pytest.mark.requirement("SEC-68")
async def test_one_piece_is_read_at_a_time() -> None:
    names = await asyncio.gather(*(aside.run(threading.get_ident) for _ in range(8)))

    assert len(set(names)) == 1
    assert names[0] != threading.get_ident()


@pytest.mark.requirement("SEC-68")
def test_patterns_are_counted_for_a_tool_and_for_a_list() -> None:
    with pytest.raises(Unfit, match="too_many_patterns"):
        schemas.admitted(patterned(31))
    with pytest.raises(Unfit, match="too_many_patterns"):
        schemas.admitted(patterned(20, "^" + "a" * 110 + "%d$"))
    with pytest.raises(Unfit, match="invalid"):
        schemas.admitted(patterned(1, r"^\p{L}{200}%d$"))

    both = Listed("both", "", patterned(20), patterned(20))
    found = offers.of([both, *(Listed(f"t{each}", "", patterned(25), None) for each in range(8))])

    assert [each.unfit for each in found] == ["too_many_patterns", *[""] * 7, "too_many_patterns"]


@pytest.mark.requirement("SEC-68")
def test_a_list_is_at_most_a_megabyte() -> None:
    with pytest.raises(Unfit, match="list_too_large"):
        offers.of(Listed(f"t{each}", "x" * 60_000, CITY, None) for each in range(20))


@pytest.mark.requirement("SEC-68")
def test_what_is_pinned_is_not_admitted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    same, other, new = (Listed(name, "Says.", CITY, None) for name in ("same", "other", "new"))
    pinned = {each.name: each for each in offers.of([same, other])}
    seen: list[str] = []

    def admitted(schema: object, _spare: object) -> dict[str, object]:
        seen.append(str(schema))
        return {}

    monkeypatch.setattr(schemas, "admitted", admitted)
    found = offers.of([same, Listed("other", "Says more.", CITY, None), new], pinned)

    assert found[0] is pinned["same"]
    assert [each.name for each in found] == ["same", "other"]
    assert found[1].pin != pinned["other"].pin
    assert len(seen) == 1
