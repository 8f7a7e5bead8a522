"""One reader of a tenant's event log: what it missed, then what happens, as far as it may hear.

Whatever it is sent by (the JSON of `/v1/events`, the frames of the console) goes this way: each
event is allowed when it is published and again when it is sent; a change of rights makes the reader
look again, and ends it where they ended (SEC-31, SEC-32, SEC-50, UI-39, UI-40).
"""

from collections.abc import AsyncIterator, Callable, Sequence

from app.access import standing, topics
from app.access.standing import Rights
from app.identity.principal import Principal
from app.kernel import clock, db, deltas, event_log, feed, settings, streams
from app.kernel.event_log import Gap, Position
from app.kernel.feed import Item, News
from app.kernel.models import LoggedEvent
from app.kernel.streams import Passing

LOOK_S = 2.0  # how often the rights are read where news of other processes does not arrive

Told = Item | Passing
Concerns = Callable[[LoggedEvent], bool]


def _anything(event: LoggedEvent) -> bool:
    return True


class Following:
    """Where a client is in the log, and what it may hear of; `close` it.

    Args:
        kind: of the stream, for the numbers.
        after: the last position the client knows; empty: from now on.
        concerns: which events this kind of stream tells at all.
        at_most: how many missed events are told before it is a gap; None: as many as there are.

    Raises:
        TooManyStreams: the user has as many as one may have.
    """

    __slots__ = (
        "_after",
        "_at_most",
        "_beat_at_s",
        "_concerns",
        "_look_at_s",
        "position",
        "principal",
        "rights",
        "stream",
    )

    def __init__(
        self,
        principal: Principal,
        kind: str,
        after: str,
        concerns: Concerns = _anything,
        at_most: int | None = None,
    ) -> None:
        standing.listen()
        deltas.listen()
        feed.learn_with(_learner)
        self.principal = principal
        self.position = Position("", 0)
        self._after = after
        self._concerns = concerns
        self._at_most = at_most
        self.rights: Rights | None = None
        self._look_at_s = self._beat_at_s = 0.0
        self.stream = streams.of_process().open(
            standing.holder_of(principal), kind, settings.current().streams_per_user
        )

    def close(self) -> None:
        """Give back what the stream holds; harmless when it was given back."""
        feed.leave(self.principal.tenant_id, self._take)
        streams.of_process().close(self.stream)

    async def authorise(self) -> bool:
        """Read again what the client may hear of, and whether the stream may go on at all."""
        self.stream.must_look_again = False
        self.rights = await db.read(standing.rights, self.principal)
        heartbeat_s = settings.current().heartbeat_s
        self._look_at_s = clock.monotonic_s() + (heartbeat_s if db.hears_others() else LOOK_S)
        return self.rights is not None

    async def begin(self) -> Gap | None:
        """Find the place in the log; a gap where what the client said is no place at all."""
        newest = await db.read(event_log.newest, self.principal.tenant_id)
        wanted = Position.parse(self._after)
        self.position = wanted or newest
        return Gap(newest) if self._after and wanted is None else None

    async def batches(self) -> AsyncIterator[Sequence[Told]]:
        """What to tell, in order: what was missed, then what happens; empty when all is quiet.

        It is over when the rights are, when the client is gone or was too slow.
        """
        async for missed in self._backlog():
            yield missed
        live_from = await feed.follow(self.principal.tenant_id, self._take)
        is_behind = self.position != live_from
        while is_behind and await self.may_go_on():
            yield await self._page()
            # of another epoch the page was a gap, and the feed goes on from there
            is_behind = self.position.epoch == live_from.epoch and self.position.seq < live_from.seq
        while await self.may_go_on() and not self.stream.is_overflown:
            found = await self.stream.items(self._patience_s())
            yield [item for item in found if self._is_new(item)]

    async def may_tell(self, item: Told) -> bool:
        """Asked once more when `item` is about to be sent, since it may have waited."""
        if not await self.may_go_on() or self.rights is None:
            return False
        if not isinstance(item, News):
            return True
        event = item.event
        while (may_hear := self.rights.allow(event)) is None:
            await db.read(topics.of_process().learn, self.principal.tenant_id, [event])
        return may_hear and self._concerns(event)

    async def may_go_on(self) -> bool:
        """Whether there is anybody to tell, and the right to; reads the latter where it is due."""
        if self.stream.is_over:
            return False
        if self.stream.must_look_again or clock.monotonic_s() >= self._look_at_s:
            return await self.authorise()
        return self.rights is not None

    @property
    def is_due(self) -> bool:
        """Whether nothing was sent for a heartbeat."""
        return clock.monotonic_s() >= self._beat_at_s

    def has_spoken(self) -> None:
        """Something was sent."""
        self._beat_at_s = clock.monotonic_s() + settings.current().heartbeat_s

    def _patience_s(self) -> float:
        return max(0.0, min(self._look_at_s, self._beat_at_s) - clock.monotonic_s())

    def _take(self, item: Item) -> None:
        """Published: let it wait, if the client may hear of it."""
        if isinstance(item, Gap) or (
            self._concerns(item.event)
            and self.rights is not None
            and self.rights.allow(item.event) is not False
        ):
            self.stream.offer(item)

    def _is_new(self, item: Told) -> bool:
        """Whether it was not told already while catching up; notes how far the client is."""
        if isinstance(item, Passing):
            return True
        at = item.at if isinstance(item, Gap) else item.position
        is_known = at.epoch == self.position.epoch and at.seq <= self.position.seq
        if isinstance(item, News) and is_known:
            return False
        self.position = at
        return True

    async def _backlog(self) -> AsyncIterator[Sequence[Told]]:
        """What was missed, page by page; where it may be too much, all of it or one gap."""
        held: list[Told] = []
        is_behind = True
        while is_behind and await self.may_go_on():
            page = await self._page()
            is_behind = len(page) == event_log.PAGE
            if self._at_most is None or isinstance(page[0] if page else None, Gap):
                held = []
                yield page
                continue
            held += [item for item in page if await self.may_tell(item)]
            if len(held) > self._at_most:
                self.position = await db.read(event_log.newest, self.principal.tenant_id)
                held, is_behind = [Gap(self.position)], False
        if held:
            yield held

    async def _page(self) -> Sequence[Told]:
        """The next page of the log."""
        tenant_id = self.principal.tenant_id
        found = await db.read(feed.read, tenant_id, self.position.epoch, self.position.seq)
        if isinstance(found, Gap):
            self.position = found.at
            return [found]
        epoch = self.position.epoch
        if found and not epoch:  # asked before the first event of all
            epoch = (await db.read(event_log.newest, tenant_id)).epoch
        news = [News(Position(epoch, row.seq), row) for row in found]
        if news:
            self.position = news[-1].position
        return news


def _learner(tenant_id: str) -> topics.Learn:
    return topics.of_process().learner(tenant_id)
