"""What a run writes: some of it waits for the next unit, and is committed before it, with it."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from sqlalchemy import Connection, event
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm.attributes import flag_modified
from sqlmodel import func, select
from structlog.testing import capture_logs

from app.kernel import db
from app.kernel.db import Work
from app.kernel.errors import Busy
from app.runs import lease, transcript, writing
from app.runs.errors import LeaseLost
from app.runs.run_models import Run, TranscriptEntry
from app.runs.session import RunSession
from app.runs.states import EntryKind
from tests.runs.sessions import Desks

pytestmark = pytest.mark.anyio

PATIENCE_S = 60


class Broken(Exception):
    """A fault of ours."""


def note(work: Work, run: RunSession, seq: int, text: str) -> str:
    lease.hold(work, run.claim)
    transcript.write(work, run.claim, seq, EntryKind.NOTE, {"text": text})
    return text


def breaks(_work: Work) -> None:
    raise Broken


def holds_back(work: Work, run: RunSession, seq: int) -> None:
    """Fail, but not before the session is flushed: there is such an entry."""
    row = TranscriptEntry(
        tenant_id=run.claim.tenant_id,
        run_id=run.claim.run_id,
        seq=seq,
        kind=EntryKind.NOTE,
        body={},
        turn=0,
    )
    work.session.add(row)


def asks(work: Work, run: RunSession) -> int:
    """The newest entry; the session is flushed before it looks."""
    newest = select(func.max(TranscriptEntry.seq)).where(TranscriptEntry.run_id == run.claim.run_id)
    return work.session.exec(newest).one() or 0


def gone() -> OperationalError:
    """The connection broke."""
    return OperationalError("COMMIT", {}, Exception("gone"))


class Held:
    """A unit that is in the middle of its transaction until it may go on."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.go_on = threading.Event()
        self._loop, self._begun = asyncio.get_running_loop(), asyncio.Event()
        self._fault = fault

    def unit(self, _work: Work) -> None:
        self._loop.call_soon_threadsafe(self._begun.set)
        assert self.go_on.wait(PATIENCE_S)
        if self._fault is not None:
            raise self._fault

    async def begun(self) -> None:
        """Return when it is there."""
        await asyncio.wait_for(self._begun.wait(), PATIENCE_S)


@asynccontextmanager
async def occupied_writers() -> AsyncIterator[None]:
    """Every thread that writes is busy while the block runs."""
    number = 1 if db.is_sqlite() else db.POOL - db.READERS
    held = [Held() for _ in range(number)]
    tasks = [asyncio.create_task(db.transaction(each.unit)) for each in held]
    for each in held:
        await each.begun()
    try:
        yield
    finally:
        for each in held:
            each.go_on.set()
        await asyncio.gather(*tasks)


def notes(desks: Desks) -> Sequence[str]:
    return [each.body["text"] for each in desks.entries() if each.kind == EntryKind.NOTE]


@pytest.mark.requirement("RUN-38", "RUN-36", "RUN-52")
async def test_what_waits_is_written_before_the_next_unit_and_with_it(desks: Desks) -> None:
    run = await desks.at_work()

    writing.later(run, note, run, 100, "first")
    writing.later(run, note, run, 101, "second")
    assert notes(desks) == []
    assert await writing.now(run, note, run, 102, "third") == "third"

    assert notes(desks) == ["first", "second", "third"]
    await writing.flush(run)
    assert notes(desks) == ["first", "second", "third"], "once"


@pytest.mark.requirement("RUN-38", "RUN-52")
async def test_a_unit_that_fails_writes_nothing_and_what_waits_goes_on_waiting(
    desks: Desks,
) -> None:
    run = await desks.at_work()
    writing.later(run, note, run, 100, "first")

    with pytest.raises(Broken):
        await writing.now(run, breaks)
    assert notes(desks) == []
    await writing.flush(run)

    assert notes(desks) == ["first"]


@pytest.mark.requirement("RUN-88", "RUN-52")
async def test_what_cannot_be_written_goes_with_what_came_after_it_and_is_named(
    desks: Desks,
) -> None:
    run = await desks.at_work()
    writing.later(run, note, run, 100, "first")
    writing.later(run, breaks)
    writing.later(run, note, run, 101, "after it")

    with pytest.raises(writing.NeverWritten) as raised, capture_logs() as logged:
        await writing.flush(run)
    await writing.now(run, note, run, 101, "the end")

    assert isinstance(raised.value.__cause__, Broken)
    assert notes(desks) == ["first", "the end"]
    (told,) = [each for each in logged if each["event"] == "never_written"]
    assert (told["run_id"], told["units"]) == (run.claim.run_id, ["breaks", "note"])


@pytest.mark.requirement("RUN-88", "RUN-52")
async def test_a_fault_that_a_session_holds_back_is_told_from_that_of_the_next_unit(
    desks: Desks,
) -> None:
    run = await desks.at_work()
    writing.later(run, note, run, 100, "first")
    writing.later(run, holds_back, run, 1)

    with pytest.raises(writing.NeverWritten):
        await writing.now(run, asks, run)

    assert await writing.now(run, asks, run) == 100
    assert notes(desks) == ["first"]


@pytest.mark.requirement("RUN-88", "RUN-52")
async def test_what_waits_is_written_though_the_store_refuses_the_next_unit(desks: Desks) -> None:
    run = await desks.at_work()
    writing.later(run, note, run, 100, "first")

    with pytest.raises(Exception, match=r"UNIQUE|unique"):
        await writing.now(run, holds_back, run, 1)
    await writing.flush(run)

    assert notes(desks) == ["first"]


@pytest.mark.requirement("RUN-88", "RUN-115")
@pytest.mark.parametrize("fault", [Busy, gone])
@pytest.mark.parametrize("who", ["of what waits", "of the next"])
async def test_what_waits_outlasts_a_store_that_is_away(
    desks: Desks, fault: Callable[[], Exception], who: str
) -> None:
    run = await desks.at_work()
    away = [fault()]

    def fails_once(_work: Work) -> None:
        if away:
            raise away.pop()

    writing.later(run, note, run, 100, "first")
    if who == "of what waits":
        writing.later(run, fails_once)
    writing.later(run, note, run, 101, "second")

    with pytest.raises((Busy, OperationalError)):
        await writing.now(run, fails_once)
    assert notes(desks) == []
    await writing.flush(run)

    assert notes(desks) == ["first", "second"]


@pytest.mark.requirement("RUN-52", "RUN-115")
@pytest.mark.parametrize("is_stored", [True, False])
async def test_what_a_commit_that_nobody_heard_of_has_stored_is_not_written_again(
    desks: Desks, is_stored: bool
) -> None:
    run = await desks.at_work()

    def ends_unheard(work: Work) -> None:
        """Let the connection break right before, or right after, the server commits."""
        driver: Any = work.connection.connection.driver_connection

        def end(_connection: Connection) -> None:
            if db.is_sqlite():  # it is in this process: what it did not commit is not stored
                raise gone()
            if is_stored:
                driver.commit()
            driver.close()

        event.listen(work.connection, "commit", end, once=True)

    writing.later(run, note, run, 100, "first")
    with capture_logs() as logged:
        with pytest.raises(OperationalError):
            await writing.now(run, ends_unheard)
        assert notes(desks) == (["first"] if is_stored and not db.is_sqlite() else [])
        writing.later(run, note, run, 101, "second")
        assert await writing.now(run, note, run, 102, "third") == "third"

    assert notes(desks) == ["first", "second", "third"]
    assert [each for each in logged if each["event"] == "never_written"] == []


@pytest.mark.requirement("RUN-68", "RUN-52")
async def test_a_cancel_while_the_commit_is_queued_loses_nothing_of_what_waits(
    desks: Desks,
) -> None:
    run = await desks.at_work()
    writing.later(run, note, run, 100, "first")
    writing.later(run, note, run, 101, "second")

    async with occupied_writers():
        task = asyncio.create_task(writing.now(run, note, run, 102, "third"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, PATIENCE_S)
    await writing.flush(run)

    assert notes(desks)[:2] == ["first", "second"]


@pytest.mark.requirement("RUN-68", "RUN-52")
@pytest.mark.parametrize("times", [1, 2])
async def test_a_cancel_while_the_commit_is_on_its_way_writes_nothing_twice(
    desks: Desks, times: int
) -> None:
    run = await desks.at_work()
    held = Held()
    writing.later(run, note, run, 100, "first")

    task = asyncio.create_task(writing.now(run, held.unit))
    await held.begun()
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    last = asyncio.create_task(writing.now(run, note, run, 101, "the end"))
    await asyncio.sleep(0)
    held.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, PATIENCE_S)

    assert await asyncio.wait_for(last, PATIENCE_S) == "the end"
    assert notes(desks) == ["first", "the end"]
    assert not run.unwritten


@pytest.mark.requirement("RUN-68", "RUN-52")
async def test_a_cancel_while_a_commit_that_fails_is_on_its_way_loses_nothing(
    desks: Desks,
) -> None:
    run = await desks.at_work()
    held = Held(Broken())
    writing.later(run, note, run, 100, "first")

    task = asyncio.create_task(writing.now(run, held.unit))
    await held.begun()
    task.cancel()
    held.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, PATIENCE_S)
    await writing.flush(run)

    assert notes(desks) == ["first"]


@pytest.mark.requirement("RUN-52", "RUN-63")
async def test_a_worker_that_was_replaced_writes_nothing_of_what_waited(desks: Desks) -> None:
    run = await desks.at_work()
    writing.later(run, note, run, 100, "late")
    desks.force(Run, (run.claim.tenant_id, run.claim.run_id), claim_token="another")

    with pytest.raises(LeaseLost):
        await writing.now(run, note, run, 101, "later")
    await writing.flush(run)

    assert notes(desks) == []
    assert not run.unwritten, "nobody else writes it for the one who took over"


@pytest.mark.requirement("RUN-103")
async def test_an_entry_whose_provider_said_nothing_has_none_however_it_was_stored(
    desks: Desks,
) -> None:
    run = await desks.at_work()
    await writing.now(run, note, run, 100, "first")
    db.transact_now(_store_null, run)

    found = await db.read(transcript.load, run.claim)

    assert [each.provider_body for each in found if each.seq == 100] == [None]


def _store_null(work: Work, run: RunSession) -> None:
    row = work.session.get_one(TranscriptEntry, (run.claim.tenant_id, run.claim.run_id, 100))
    row.provider_body = None
    flag_modified(row, "provider_body")
