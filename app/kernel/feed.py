"""A tenant's new events, read once for all its streams of this process.

A feed lives while somebody follows it. It reads the log when it hears of an event, every two
seconds while news of other processes does not arrive, and once a heartbeat in any case, so that a
lost notice costs no more than that (SEC-32).
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import structlog
from sqlmodel import Session

from app.kernel import db, event_log, events, metrics, settings
from app.kernel.event_log import Gap, Logged, Position
from app.kernel.models import LoggedEvent

POLL_S = 2.0  # while the listener is lost

log = structlog.get_logger(__name__)

late = metrics.counter("events_found_late", "Events found by looking, as no notice came.")


@dataclass(frozen=True, slots=True)
class News:
    """An event and where it stands; `drawn` keeps what a kind of stream made of it."""

    position: Position
    event: LoggedEvent
    drawn: dict[Any, Any] = field(default_factory=dict)


Item = News | Gap
Take = Callable[[Item], None]
Learn = Callable[[Session, Sequence[LoggedEvent]], None]
Learner = Callable[[str], Learn]  # for a tenant

_feeds: dict[str, "_Feed"] = {}
_learners: list[Learner] = []


def learn_with(learner: Learner) -> None:
    """Learn in the read that events come from what allowing them needs; once each.

    `learner` is called before the read's snapshot is taken, what it returns when the events are
    known.
    """
    if learner not in _learners:
        _learners.append(learner)


def read(session: Session, tenant_id: str, epoch: str, seq: int) -> list[LoggedEvent] | Gap:
    """A page of the events after a position, with what is to be learned of them."""
    learners = [learner(tenant_id) for learner in _learners]
    found = event_log.since(session, tenant_id, epoch, seq)
    if isinstance(found, list):
        for learn in learners:
            learn(session, found)
    return found


async def follow(tenant_id: str, take: Take) -> Position:
    """Call `take` with every event of a tenant after the returned position, on this loop."""
    feed = _feeds.get(tenant_id)
    if feed is None:
        feed = _feeds[tenant_id] = _Feed(tenant_id)
    feed.followers.append(take)  # counted at once, or the last other one's leaving would end it
    try:
        await feed.is_ready
    except BaseException:
        leave(tenant_id, take)
        raise
    return feed.position


def leave(tenant_id: str, take: Take) -> None:
    """Stop calling `take`; the last one to leave ends the feed."""
    feed = _feeds.get(tenant_id)
    if feed is None or take not in feed.followers:
        return
    feed.followers.remove(take)
    if not feed.followers:
        del _feeds[tenant_id]
        feed.end()


class _Feed:
    def __init__(self, tenant_id: str) -> None:
        self.tenant_id = tenant_id
        self.followers: list[Take] = []
        self.position = Position("", 0)
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._stop_hearing = events.subscribe(Logged, self._hear)
        self.is_ready = asyncio.ensure_future(self._begin())
        self._task = asyncio.create_task(self._serve())

    def end(self) -> None:
        self._stop_hearing()
        self._task.cancel()

    def _hear(self, logged: Logged) -> None:
        # who is awake already reads what is committed by then
        if logged.tenant_id == self.tenant_id and not self._news.is_set():
            with suppress(RuntimeError):  # the loop is gone
                self._loop.call_soon_threadsafe(self._news.set)

    async def _begin(self) -> None:
        self.position = await db.read(event_log.newest, self.tenant_id)

    async def _serve(self) -> None:
        await self.is_ready
        while True:
            was_told = await self._wait()
            try:
                await self._read_on(was_told)
            except Exception:
                log.exception("feed_failed")  # the database is away: look again in a moment
                await asyncio.sleep(POLL_S)

    async def _wait(self) -> bool:
        patience_s = settings.current().heartbeat_s if db.hears_others() else POLL_S
        try:
            await asyncio.wait_for(self._news.wait(), min(patience_s, POLL_S * 4))
        except TimeoutError:
            return False
        self._news.clear()
        return True

    async def _read_on(self, was_told: bool) -> None:
        while True:
            found = await db.read(read, self.tenant_id, self.position.epoch, self.position.seq)
            if isinstance(found, Gap):
                self.position = found.at
                self._give(found)
                return
            if found and not self.position.epoch:  # the first event of all made the log
                epoch = (await db.read(event_log.newest, self.tenant_id)).epoch
                self.position = Position(epoch, self.position.seq)
            if not was_told:
                late.inc(len(found))
            for event in found:
                self.position = Position(self.position.epoch, event.seq)
                self._give(News(self.position, event))
            if len(found) < event_log.PAGE:
                return

    def _give(self, item: Item) -> None:
        """Give it to all: one that fails keeps it from none of the others."""
        for take in list(self.followers):
            try:
                take(item)
            except Exception:
                log.exception("follower_failed", tenant_id=self.tenant_id)
