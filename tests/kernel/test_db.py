"""Units of work, through the functions everybody uses, on both databases."""

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from sqlmodel import Session

from app.kernel import db, events
from app.kernel.db import Work
from app.kernel.events import Event
from app.kernel.prepared import Prepared

pytestmark = pytest.mark.requirement("KERNEL-1")


@pytest.fixture(autouse=True)
def table(opened: str) -> Iterator[None]:
    db.transact_now(_make_table)
    yield
    db.transact_now(_drop_table)


def _make_table(work: Work) -> None:
    work.connection.execute(text("CREATE TABLE note (says TEXT PRIMARY KEY)"))


def _drop_table(work: Work) -> None:
    work.connection.execute(text("DROP TABLE note"))


def keep(work: Work, says: str) -> str:
    work.connection.execute(text("INSERT INTO note VALUES (:says)"), {"says": says})
    return says


def notes(session: Session) -> list[str]:
    rows = session.connection().execute(text("SELECT says FROM note ORDER BY says"))
    return list(rows.scalars())


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept(Event):
    says: str


async def test_what_a_unit_did_is_there_when_it_returns() -> None:
    assert await db.transaction(keep, "a") == "a"

    assert await db.read(notes) == ["a"]


async def test_a_unit_that_fails_leaves_nothing_and_takes_nothing_of_its_group_along() -> None:
    def fail(work: Work, says: str) -> None:
        keep(work, says)
        raise LookupError(says)

    ended = await asyncio.gather(
        *(db.transaction(fail if n % 3 == 0 else keep, f"{n:03}") for n in range(120)),
        return_exceptions=True,
    )

    assert sum(isinstance(each, LookupError) for each in ended) == 40
    assert await db.read(notes) == [f"{n:03}" for n in range(120) if n % 3]


async def test_a_unit_that_breaks_a_constraint_fails_alone() -> None:
    first, second, other = await asyncio.gather(
        db.transaction(keep, "a"),
        db.transaction(keep, "a"),
        db.transaction(keep, "b"),
        return_exceptions=True,
    )

    assert [isinstance(each, Exception) for each in (first, second)].count(True) == 1
    assert other == "b"
    assert await db.read(notes) == ["a", "b"]


async def test_a_rehearsal_happens_and_leaves_nothing() -> None:
    heard: list[Event] = []
    end = events.subscribe(Kept, heard.append)

    def rehearse(work: Work) -> list[str]:
        keep(work, "a")
        work.announce(Kept(tenant_id="t", says="a"))
        work.after_commit(lambda: heard.append(Kept(tenant_id="t", says="after")))
        return notes(work.session)

    assert await db.rehearsal(rehearse) == ["a"]
    end()

    assert await db.read(notes) == []
    assert heard == []


async def test_an_event_is_delivered_after_its_commit_and_not_without_one() -> None:
    seen: list[tuple[str, list[str]]] = []

    def listen(event: Kept) -> None:
        seen.append((event.says, _on_another_thread()))

    def announce(work: Work, says: str, *, fails: bool = False) -> None:
        keep(work, says)
        work.announce(Kept(tenant_id="t", says=says))
        if fails:
            raise LookupError

    end = events.subscribe(Kept, listen)
    await db.transaction(announce, "a")
    with pytest.raises(LookupError):
        await db.transaction(announce, "b", fails=True)
    end()

    assert seen == [("a", ["a"])]


def _on_another_thread() -> list[str]:
    found: list[str] = []
    reader = threading.Thread(target=lambda: found.extend(db.read_now(notes)))
    reader.start()
    reader.join(5)
    return found


async def test_who_listens_inside_writes_in_the_same_transaction() -> None:
    def also(work: Work, event: Kept) -> None:
        keep(work, f"{event.says} too")

    def announce(work: Work, says: str, *, fails: bool = False) -> None:
        keep(work, says)
        work.announce(Kept(tenant_id="t", says=says))
        if fails:
            raise LookupError

    end = events.subscribe_inside(Kept, also)
    await db.transaction(announce, "a")
    with pytest.raises(LookupError):
        await db.transaction(announce, "b", fails=True)
    end()

    assert await db.read(notes) == ["a", "a too"]


async def test_a_fault_of_a_listener_or_an_action_changes_nothing_for_the_caller() -> None:
    def fault(_event: Kept) -> None:
        raise LookupError

    def announce(work: Work) -> str:
        work.announce(Kept(tenant_id="t", says="a"))
        work.after_commit(lambda: fault(Kept(tenant_id="t", says="a")))
        return keep(work, "a")

    end = events.subscribe(Kept, fault)
    assert await db.transaction(announce) == "a"
    end()

    assert await db.read(notes) == ["a"]


async def test_a_reader_cannot_write() -> None:
    def sneak(session: Session) -> None:
        session.connection().execute(text("INSERT INTO note VALUES ('a')"))

    def sneak_in(connection: Connection) -> None:
        connection.execute(text("INSERT INTO note VALUES ('a')"))

    for _ in range(2 * db.READERS):  # each has a connection of its own, and goes on with it
        with pytest.raises(Exception, match=r"read.?only"):
            await db.read(sneak)
        with pytest.raises(Exception, match=r"read.?only"):
            await db.look(sneak_in)

    assert await db.read(notes) == []
    assert await db.look(seen) == []
    await db.transaction(keep, "a")
    assert await db.look(seen) == await db.read(notes) == ["a"]


def seen(connection: Connection) -> list[str]:
    return [row[0] for row in Prepared("SELECT says FROM note ORDER BY says").run(connection)]


async def test_a_query_sees_one_moment_while_others_write() -> None:
    between = threading.Event()
    written = threading.Event()

    def look_twice(session: Session) -> tuple[list[str], list[str]]:
        first = notes(session)
        between.set()
        assert written.wait(5)
        return first, notes(session)

    await db.transaction(keep, "a")
    looking = asyncio.ensure_future(db.read(look_twice))
    assert await asyncio.to_thread(between.wait, 5)
    await db.transaction(keep, "b")
    written.set()

    assert await looking == (["a"], ["a"])
    assert await db.read(notes) == ["a", "b"]


async def test_a_unit_whose_caller_left_before_its_turn_is_not_run() -> None:
    if not db.is_sqlite():
        return  # the pool has a thread free for it: there is no turn to wait for
    holding, release = threading.Event(), threading.Event()

    def hold(work: Work) -> None:
        holding.set()
        assert release.wait(5)

    held = asyncio.ensure_future(db.transaction(hold))
    assert await asyncio.to_thread(holding.wait, 5)
    left = asyncio.ensure_future(db.transaction(keep, "a"))
    await asyncio.sleep(0)
    left.cancel()
    await asyncio.gather(left, return_exceptions=True)  # now it has left
    release.set()
    await held

    assert await db.transaction(keep, "b") == "b"
    assert await db.read(notes) == ["b"]


async def test_of_two_in_a_deadlock_the_victim_is_run_again() -> None:
    both_hold_one = threading.Barrier(2, timeout=60)
    runs: list[str] = []

    def touch(work: Work, says: str) -> None:
        work.connection.execute(
            text("UPDATE note SET says = says WHERE says = :says"), {"says": says}
        )

    def both(work: Work, first: str, second: str) -> None:
        runs.append(first)
        touch(work, first)
        if len(runs) <= 2 and not db.is_sqlite():  # which has one writer
            both_hold_one.wait()
        touch(work, second)

    await db.transaction(keep, "a")
    await db.transaction(keep, "b")

    await asyncio.gather(db.transaction(both, "a", "b"), db.transaction(both, "b", "a"))

    assert len(runs) == (2 if db.is_sqlite() else 3)


async def test_who_was_overtaken_runs_again_and_learns_by_whom() -> None:
    both_looked = threading.Barrier(2, timeout=60)

    def keep_if_free(work: Work) -> None:
        if "a" in notes(work.session):
            raise LookupError
        if not db.is_sqlite():  # which has one writer
            both_looked.wait()
        keep(work, "a")

    ended = await asyncio.gather(
        db.transaction(keep_if_free), db.transaction(keep_if_free), return_exceptions=True
    )

    assert sorted(type(each).__name__ for each in ended) == ["LookupError", "NoneType"]


async def test_a_connection_that_breaks_under_a_unit_costs_that_unit_alone() -> None:
    def tear(work: Work) -> None:
        keep(work, "a")
        work.connection.invalidate()

    with pytest.raises(SQLAlchemyError):
        await db.transaction(tear)

    assert await db.transaction(keep, "b") == "b"
    assert await db.read(notes) == ["b"]


async def test_a_commit_that_is_refused_costs_what_it_held_alone() -> None:
    def create(work: Work) -> None:
        work.connection.execute(text("CREATE TABLE one (id INTEGER PRIMARY KEY)"))
        refers = "REFERENCES one (id) DEFERRABLE INITIALLY DEFERRED"
        work.connection.execute(text(f"CREATE TABLE other (id INTEGER {refers})"))

    def refer_to_nothing(work: Work) -> None:
        work.connection.execute(text("INSERT INTO other VALUES (1)"))

    await db.transaction(create)
    with pytest.raises(IntegrityError):
        await db.transaction(refer_to_nothing)

    assert await db.transaction(keep, "b") == "b"
    assert await db.read(notes) == ["b"]


def test_nobody_waits_long_for_a_database_server_that_went_away() -> None:
    if db.is_sqlite():
        return  # it is a file

    def parameters(work: Work) -> dict[str, str]:
        connection: Any = work.connection.connection.dbapi_connection
        return dict(connection.info.get_parameters())

    given = db.transact_now(parameters)

    assert given["connect_timeout"] == "5"
    assert given["keepalives_idle"] == "10"


def test_a_unit_cannot_wait_for_another_unit() -> None:
    if not db.is_sqlite():
        return  # another connection serves it

    def nest(work: Work) -> None:
        db.transact_now(keep, "a")

    with pytest.raises(RuntimeError, match="cannot wait"):
        db.transact_now(nest)


async def test_connections_that_the_server_ended_while_they_rested_cost_no_unit(
    opened: str,
) -> None:
    if db.is_sqlite():
        return  # nobody else ends them
    together = threading.Barrier(3, timeout=60)

    def backend(work: Work) -> int:
        together.wait()  # so that each has a connection of its own
        found: int = work.connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
        return found

    async def three() -> set[int]:
        return set(await asyncio.gather(*(db.transaction(backend) for _ in range(3))))

    first = await three()
    outside = db.engine_for(opened)
    with outside.connect() as connection:
        ended = text("SELECT pg_terminate_backend(:pid, 20000)")  # waits until it is gone
        assert all(connection.execute(ended, {"pid": pid}).scalar() for pid in first)
    outside.dispose()

    assert (await three()).isdisjoint(first)


async def test_a_connection_in_use_is_asked_whether_it_lives_only_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if db.is_sqlite():
        return  # it is a file
    sent: list[Any] = []

    def run(work: Work) -> None:
        driver: Any = work.connection.connection.driver_connection
        sent.append(driver)
        notes(work.session)

    await asyncio.gather(*(db.transaction(run) for _ in range(30)))
    pings: list[Any] = []
    ping = type(sent[0]).cursor

    def noted(connection: Any, *arguments: Any, **more: Any) -> Any:
        if connection.autocommit:  # as it is for a ping alone
            pings.append(connection)
        return ping(connection, *arguments, **more)

    monkeypatch.setattr(type(sent[0]), "cursor", noted)
    await asyncio.gather(*(db.transaction(run) for _ in range(30)))
    assert len(pings) <= db.POOL  # not one for each unit
