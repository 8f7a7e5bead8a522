"""The database: short units of work, and the only place that commits.

SQLite has one writer thread that commits waiting units together, each in its own savepoint;
PostgreSQL has a pool of threads. A unit is a plain function `(work, …)` with no effect but the
database, since it may be run again; a query is one `(session, …)`, or `(connection, …)` where
prepared SQL is enough. Coroutines hand them over and never hold a transaction open.
"""

import asyncio
import queue
import random
import select
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

import structlog
from sqlalchemy import Connection, Engine, NestedTransaction, event
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlmodel import Session, create_engine

from app.kernel import clock, events
from app.kernel.errors import Busy
from app.kernel.events import Broadcast, Event
from app.kernel.jobs import Job, Threads
from app.kernel.notices import PATIENCE, Notices
from app.kernel.prepared import say

log = structlog.get_logger(__name__)

GROUP = 64  # units committed together at the most
TRIES = 5
READERS = 4
POOL = 10  # connections, and threads, of PostgreSQL
TRUSTED_S = 5.0  # so long after its answer a connection that says nothing is taken to be alive
BUSY_TIMEOUT_MS = 5_000
RETRIED_SQLSTATES = {"40001", "40P01", "55P03"}  # serialization, deadlock, lock not available
OVERTAKEN_SQLSTATES = {"23503", "23505"}  # what a unit looked at first was written, or went, since

P = ParamSpec("P")
T = TypeVar("T")


class Work:
    """One unit's hold on the database.

    `connection` is for prepared SQL, `session` for models; both are in the same transaction.
    """

    def __init__(self, connection: Connection, *, shares_commit: bool = False) -> None:
        self.connection = connection
        self._shares_commit = shares_commit
        self._savepoint: NestedTransaction | None = None
        self._session: Session | None = None
        self._events: list[Event] = []
        self._actions: list[Callable[[], None]] = []

    @property
    def session(self) -> Session:
        """The session of this unit; what it loads stays readable after the commit."""
        if self._session is None:
            # what the session rolls back must be this unit's alone
            if self._shares_commit and not self.connection.in_nested_transaction():
                self._savepoint = self.connection.begin_nested()
            self._session = Session(
                self.connection,
                expire_on_commit=False,
                join_transaction_mode="rollback_only",
            )
        return self._session

    def announce(self, event: Event) -> None:
        """Tell listeners of `event`: those inside now, all others once it is committed."""
        self._events.append(event)
        events.tell_inside(self, event)

    def after_commit(self, action: Callable[[], None]) -> None:
        """Run `action` once the unit is committed, on a database thread; it must be quick."""
        self._actions.append(action)

    def flush(self) -> None:
        """Send what the session holds back; for this module."""
        if self._session is not None:
            self._session.flush()
            self._session.expunge_all()
            if self._savepoint is not None:
                self._savepoint.commit()

    def discard(self) -> None:
        """Let go of the session; for this module."""
        if self._session is not None:
            self._session.close()
            if self._savepoint is not None and self._savepoint.is_active:
                self._savepoint.rollback()

    def tell(self) -> None:
        """Deliver the events and run the actions of a committed unit; for this module."""
        for item in self._events:
            events.deliver(item)
        for action in self._actions:
            try:
                action()
            except Exception:
                log.exception("after_commit_failed")

    @property
    def broadcasts(self) -> list[Broadcast]:
        """The events that other processes have to hear of."""
        return [item for item in self._events if isinstance(item, Broadcast)]


Unit = Callable[Concatenate[Work, P], T]
Query = Callable[Concatenate[Session, P], T]
Glance = Callable[Concatenate[Connection, P], T]


async def transaction(unit: Unit[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `unit` and commit it; returns what it returned, once it is durable.

    Raises:
        Busy: the database had no place for it, five times over.
        Whatever the unit raises: everything it did is rolled back.
    """
    return await _current().submit(partial(_call, unit, args, kwargs), keep=True)


async def rehearsal(unit: Unit[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `unit` for real, then roll it back; no event is delivered and no action runs."""
    return await _current().submit(partial(_call, unit, args, kwargs), keep=False)


async def read(query: Query[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `query` on a consistent snapshot; writing in it fails."""
    return await _current().submit_read(partial(_call, query, args, kwargs))


async def look(query: Glance[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """`read` for prepared SQL, at a third of the price: nothing is made but the answer."""
    return await _current().submit_look(partial(_call, query, args, kwargs))


def transact_now(unit: Unit[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """`transaction` for code without an event loop: commands, start-up, threads."""
    return _current().write(partial(_call, unit, args, kwargs), keep=True)


def read_now(query: Query[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """`read` for code without an event loop."""
    return _current().run_read(partial(_call, query, args, kwargs))


def open(url: str) -> None:
    """Connect this process to the database at a SQLAlchemy `url`, whose schema is current."""
    global _database, _opened
    if _database is not None:
        raise RuntimeError("the database is open already")
    _opened += 1
    _database = _Sqlite(url) if url.startswith("sqlite") else _Postgres(url)


def close() -> None:
    """Finish what was handed over and let go of every connection; harmless when not open."""
    global _database
    if _database is not None:
        database, _database = _database, None
        database.close()


def opening() -> int:
    """Which one this process has open, by count: what is remembered of one is of no other."""
    return _opened


def is_sqlite() -> bool:
    """Whether the open database is the embedded one."""
    return isinstance(_current(), _Sqlite)


def may_pass(fault: DBAPIError) -> bool:
    """Whether the same unit may well succeed when it is run again, which `transaction` sees to."""
    return _is_passing(fault) or (not is_sqlite() and _was_overtaken(fault))


def hears_others() -> bool:
    """Whether news of other processes arrives; while not, streams look for themselves."""
    return _current().notices.is_listening


def engine_for(url: str, *, read_only: bool = False) -> Engine:
    """An engine of its own for migrations, backup and checks: no writer thread, no pool.

    With `read_only` a transaction is one consistent snapshot, and holds no writer up.
    """
    if url.startswith("sqlite"):
        begin = "BEGIN" if read_only else "BEGIN IMMEDIATE"
        return _sqlite_engine(url, begin=begin, pool_size=1, read_only=read_only)
    engine = create_engine(
        url,
        pool_size=1,
        max_overflow=1,
        connect_args={"options": "-c timezone=UTC", **PATIENCE},
    )
    if read_only:
        return engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    return engine


def _call(
    function: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any], handle: Any
) -> T:
    return function(handle, *args, **kwargs)


class _GroupLost(Exception):
    """SQLite gave up the whole transaction, not only the unit that failed."""


class _Database(ABC):
    notices: Notices
    _readers: Threads
    _read_engine: Engine

    async def submit(self, run: Callable[[Work], T], *, keep: bool) -> T:
        job = Job(run, keep=keep, loop=asyncio.get_running_loop())
        self._put(job)
        result: T = await job.answer
        return result

    async def submit_read(self, run: Callable[[Session], T]) -> T:
        return await self._submit_query(partial(self._read, run))

    async def submit_look(self, run: Callable[[Connection], T]) -> T:
        return await self._submit_query(partial(self._look, run))

    async def _submit_query(self, ask: Callable[[Engine | Connection], T]) -> T:
        job = Job(ask, loop=asyncio.get_running_loop())
        self._readers.put(job)
        result: T = await job.answer
        return result

    def write(self, run: Callable[[Work], T], *, keep: bool) -> T:
        """Run a unit and commit it, or roll it back unless `keep`; waits for it."""
        job = Job(run, keep=keep)
        self._put(job)
        result: T = job.answer.result()
        return result

    @abstractmethod
    def _put(self, job: Job) -> None:
        """Let the next writer that is free do it."""

    @abstractmethod
    def close(self) -> None:
        """Finish what was handed over, and let go of every connection."""

    def run_read(self, run: Callable[[Session], T]) -> T:
        """Run a query in this thread."""
        return self._answer(partial(self._read, run), self._read_engine)

    def _answer(self, ask: Callable[[Engine | Connection], T], bind: Engine | Connection) -> T:
        for attempt in range(1, TRIES + 1):
            try:
                return ask(bind)
            except DBAPIError as fault:
                if not _is_passing(fault):
                    raise
                if attempt == TRIES:
                    raise Busy from fault
                _wait(attempt)
        raise AssertionError("unreachable")

    def _read(self, run: Callable[[Session], T], bind: Engine | Connection) -> T:
        session = Session(bind, expire_on_commit=False)
        try:
            found = run(session)
            self._end_read(session)
        finally:
            session.close()  # forgets its objects, which stay readable, then its snapshot
        return found

    def _look(self, run: Callable[[Connection], T], bind: Engine | Connection) -> T:
        if isinstance(bind, Connection):
            with bind.begin():
                return run(bind)
        with bind.begin() as connection:
            return run(connection)

    @abstractmethod
    def _end_read(self, session: Session) -> None:
        """Give the snapshot of a query back, before its connection."""


class _Sqlite(_Database):
    """One writer that groups commits, and readers with connections of their own."""

    def __init__(self, url: str) -> None:
        self._engine = _sqlite_engine(url, begin="BEGIN IMMEDIATE", pool_size=1)
        pool = 2 * READERS  # one for each reader's own, the rest for threads that ask themselves
        self._read_engine = _sqlite_engine(url, begin="BEGIN", pool_size=pool, read_only=True)
        self._own, self._owned = threading.local(), list[Connection]()
        self._readers = Threads(READERS, "db-read", self._answer_job)
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self.notices = Notices()
        self._thread = threading.Thread(target=self._serve, name="db-write", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._jobs.put(None)
        self._thread.join()
        self._readers.close()
        for connection in self._owned:
            connection.close()
        self._engine.dispose()
        self._read_engine.dispose()

    def _answer_job(self, job: Job) -> Any:
        """Each reader keeps its connection: to fetch one from a pool costs more than a query."""
        connection: Connection | None = getattr(self._own, "connection", None)
        if connection is None:
            connection = self._own.connection = self._read_engine.connect()
            self._owned.append(connection)
        return self._answer(job.run, connection)

    def _put(self, job: Job) -> None:
        if threading.current_thread() is self._thread:
            raise RuntimeError("a unit cannot wait for another unit")
        self._jobs.put(job)

    def _end_read(self, session: Session) -> None:
        """Closing the session does."""

    def _serve(self) -> None:
        connection = self._engine.connect()
        while group := self._next_group():
            try:
                self._run_group(connection, group)
            except Exception as fault:  # whatever it was, the next ones must be written
                log.exception("writer_failed")
                for job in group:
                    job.failed(fault)
                Job.answer_all(group)
                connection.invalidate()
                connection.close()
                connection = self._engine.connect()
        connection.close()

    def _next_group(self) -> list[Job]:
        first = self._jobs.get()
        group = [first] if first else []
        while group and len(group) < GROUP:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                break
            if job is None:
                self._jobs.put(None)  # finish this group first
                break
            group.append(job)
        return group

    def _run_group(self, connection: Connection, group: list[Job]) -> None:
        jobs = [job for job in group if job.begins()]
        if not jobs:
            return
        done: list[tuple[Job, Work]] = []
        job = jobs[0]
        try:
            with connection.begin():
                for job in jobs:
                    try:
                        done.append((job, self._run_one(connection, job)))
                    except _GroupLost:
                        raise
                    except BaseException as fault:  # noqa: BLE001 - it belongs to the caller
                        job.failed(fault)
        except _GroupLost as lost:
            job.failed(lost.__cause__ or lost)
            self._again(connection, [other for other in jobs if other is not job])
            jobs, done = [job], []
        except DBAPIError as lost:
            if _is_open(connection):  # a commit that failed may leave it so, and nothing begins
                connection.connection.rollback()
            for job in jobs:
                job.failed(Busy() if _is_passing(lost) else lost)
            done = []
        for job, work in done:
            if job.keep:
                job.context.run(work.tell)
        Job.answer_all(jobs)

    def _run_one(self, connection: Connection, job: Job) -> Work:
        work = Work(connection, shares_commit=True)
        say(connection, "SAVEPOINT unit")
        try:
            job.did(job.context.run(job.run, work))
            work.flush()
        except BaseException as fault:
            if not _is_open(connection):
                raise _GroupLost from fault
            work.discard()
            say(connection, "ROLLBACK TO unit")
            say(connection, "RELEASE unit")
            raise
        work.discard()
        if not job.keep:
            say(connection, "ROLLBACK TO unit")
        say(connection, "RELEASE unit")
        return work

    def _again(self, connection: Connection, jobs: list[Job]) -> None:
        for job in jobs:
            job.tries += 1
            self._run_group(connection, [job])


class _Postgres(_Database):
    """A pool of connections, a thread each."""

    def __init__(self, url: str) -> None:
        engine = create_engine(
            url,
            pool_size=POOL,
            max_overflow=0,
            pool_pre_ping=True,
            connect_args={"options": "-c timezone=UTC -c lock_timeout=5000", **PATIENCE},
        )
        self._engine = _pinging_seldom(_spoken_plainly(engine))
        self._read_engine = self._engine.execution_options(
            isolation_level="REPEATABLE READ", postgresql_readonly=True
        )
        self._writers = Threads(POOL - READERS, "db-write", self._run)
        self._readers = Threads(
            READERS, "db-read", lambda job: self._answer(job.run, self._read_engine)
        )
        self.notices = Notices()
        self.notices.listen(url)

    def close(self) -> None:
        self._writers.close()
        self._readers.close()
        self.notices.close()
        self._engine.dispose()

    def _put(self, job: Job) -> None:
        self._writers.put(job)

    def _run(self, job: Job) -> Any:
        for attempt in range(1, TRIES + 1):
            try:
                return self._try(job)
            except DBAPIError as fault:
                # a unit that was overtaken sees on its next run what the faster one wrote
                may_pass = _is_passing(fault) or (_was_overtaken(fault) and attempt < TRIES)
                if not may_pass:
                    raise
                if attempt == TRIES:
                    raise Busy from fault
                _wait(attempt)
        raise AssertionError("unreachable")

    def _end_read(self, session: Session) -> None:
        """By COMMIT: after a ROLLBACK the driver forgets every statement it has prepared."""
        if session.in_transaction():
            driver: Any = session.connection().connection.driver_connection
            driver.commit()

    def _try(self, job: Job) -> Any:
        with self._engine.connect() as connection:
            work = Work(connection)
            try:
                with connection.begin() as commit:
                    result = job.run(work)
                    work.flush()
                    if job.keep and (told := work.broadcasts):
                        self.notices.send(connection, told)
                    if not job.keep:
                        commit.rollback()
            finally:
                work.discard()
        if job.keep:
            work.tell()
        return result


_database: _Sqlite | _Postgres | None = None
_opened = 0


def _current() -> _Sqlite | _Postgres:
    if _database is None:
        raise RuntimeError("the database is not open")
    return _database


def _spoken_plainly(engine: Engine) -> Engine:
    """Savepoints as plain text: SQLAlchemy would compile each of them anew."""
    engine.dialect.do_savepoint = _doing("SAVEPOINT")  # type: ignore[assignment, method-assign]
    engine.dialect.do_release_savepoint = _doing("RELEASE SAVEPOINT")  # type: ignore[assignment, method-assign]
    engine.dialect.do_rollback_to_savepoint = _doing("ROLLBACK TO SAVEPOINT")  # type: ignore[assignment, method-assign]
    return engine


def _pinging_seldom(engine: Engine) -> Engine:
    """Spare each unit the round trip of the pool's ping; a server that ended has said so already.

    Its last words, or the end of the connection, wait to be read; one that vanished without a word
    is found by the ping that is still made now and then.
    """
    ping, answered_s = engine.dialect.do_ping, WeakKeyDictionary[Any, float]()

    def ping_seldom(connection: Any) -> bool:
        now_s = clock.monotonic_s()
        if now_s - answered_s.get(connection, float("-inf")) < TRUSTED_S and _is_quiet(connection):
            return True
        answers = ping(connection)
        answered_s[connection] = now_s
        return answers

    engine.dialect.do_ping = ping_seldom  # type: ignore[assignment, method-assign]
    return engine


def _is_quiet(connection: Any) -> bool:
    """Whether an idle connection of the driver is open and nothing waits to be read from it."""
    if connection.closed:
        return False
    looking = select.poll()
    looking.register(connection.fileno(), select.POLLIN)
    return not looking.poll(0)


def _doing(verb: str) -> Callable[[Connection, str], None]:
    return lambda connection, name: say(connection, f"{verb} {name}")


def _sqlite_engine(url: str, *, begin: str, pool_size: int, read_only: bool = False) -> Engine:
    engine = create_engine(
        url,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=60,
        connect_args={"check_same_thread": False, "timeout": BUSY_TIMEOUT_MS / 1000},
    )

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # we say BEGIN ourselves
        for pragma in (
            "journal_mode=WAL",
            "synchronous=FULL",
            "foreign_keys=ON",
            "trusted_schema=OFF",
            "temp_store=MEMORY",
            *(("query_only=ON",) if read_only else ()),
        ):
            connection.execute(f"PRAGMA {pragma}").close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        say(connection, begin)

    return _spoken_plainly(engine)


def _is_open(connection: Connection) -> bool:
    return bool(connection.connection.dbapi_connection.in_transaction)  # type: ignore[union-attr]


def _is_passing(fault: DBAPIError) -> bool:
    if getattr(fault.orig, "sqlstate", None) in RETRIED_SQLSTATES:
        return True
    text = str(fault.orig)
    return isinstance(fault, OperationalError) and ("is locked" in text or "is busy" in text)


def _was_overtaken(fault: DBAPIError) -> bool:
    return getattr(fault.orig, "sqlstate", None) in OVERTAKEN_SQLSTATES


def _wait(attempt: int) -> None:
    time.sleep(random.uniform(0.5, 1.0) * 0.01 * 2**attempt)  # noqa: S311 - jitter, not a secret
