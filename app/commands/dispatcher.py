"""Tells others what stands in the outbox: at once after a commit, and after a crash, by looking.

What is for the house's own tables is done in short transactions, one event at a time for each
record. What goes over the network is claimed with a lease, sent outside of any transaction, and
written down after. Each receiver has a lane of its own, so that one that hangs holds up no other.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Hashable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import cache, partial
from typing import Any

import structlog
from sqlalchemy import bindparam, delete, exists, func, tuple_
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import aliased
from sqlmodel import Session, col, select
from sqlmodel.sql.expression import SelectOfScalar

from app.commands import backoff, deliveries, external, outbox, posting, snapshots, told, webhooks
from app.commands.outbox_models import (
    EffectState,
    ExternalEffect,
    OutboxEvent,
    Waiting,
    WebhookDelivery,
    WebhookSubscription,
)
from app.commands.stages import api_call, domain_event, governance_snapshot, webhook
from app.commands.undelivered import CannotTell
from app.kernel import clock, db, metrics, settings
from app.kernel.db import Work
from app.kernel.due import Due
from app.kernel.prepared import Prepared

log = structlog.get_logger(__name__)

LOOK_S = 1.0  # between looks: other processes, and waits that are over
TOGETHER_S = 0.05  # what is committed within this time is told together
GRACE_S = 3.0  # for what is on its way when the process ends
BATCH = 50  # events in one transaction: calls that commit wait behind it
EFFECTS_AT_ONCE = 8
KEEP_DEAD = timedelta(days=30)

_EVENTS, _SNAPSHOTS = Due("outbox_event"), Due("governance_snapshot")
_RECEIVERS, _DELIVERIES = Due("webhook_receiver"), Due("webhook_delivery")
_EFFECTS = Due("external_effect")

Lane = Callable[[], Awaitable[bool]]  # sends until nothing is due; whether anything was

Receivers = Sequence[WebhookSubscription]

TELLING: dict[str, Callable[[Work, OutboxEvent, Receivers], None]] = {
    "domain_event": domain_event.run,
    "api_call": api_call.run,
    "webhook": webhook.run,
}

waiting = metrics.gauge("outbox_waiting", "What has still to be told or sent.", ["kind"])
given_up = metrics.gauge("outbox_dead", "What was given up and waits for a person.", ["kind"])

_DUE = Prepared(
    "SELECT EXISTS (SELECT 1 FROM outbox_event WHERE state = 'pending' AND due_at <= :now) "
    "AS telling, "
    "EXISTS (SELECT 1 FROM webhook_delivery WHERE state = 'pending' AND due_at <= :now) "
    "AS sending, "
    "EXISTS (SELECT 1 FROM external_effect WHERE state IN ('waiting', 'started') "
    "AND due_at <= :now) AS performing"
)
_DONE = Prepared(
    "UPDATE outbox_event SET state = 'done', done_at = :now, last_error = '' "
    "WHERE tenant_id = :tenant_id AND id = :id"
)
_GIVE_UP = Prepared(
    "UPDATE outbox_event SET state = 'dead', attempts = attempts + 1, last_error = :last_error "
    "WHERE tenant_id = :tenant_id AND id = :id AND state = 'pending'"
)
_FAILED = Prepared(
    "UPDATE outbox_event SET state = :state, attempts = attempts + 1, due_at = :due_at, "
    "last_error = :last_error WHERE tenant_id = :tenant_id AND id = :id"
)


class Dispatcher:
    """One for a process; `start` it on the loop that shall do the sending."""

    def __init__(self) -> None:
        self._news = asyncio.Event()
        self._lanes: dict[Hashable, asyncio.Task[bool]] = {}
        self._effects = asyncio.Semaphore(EFFECTS_AT_ONCE)
        self._task: asyncio.Task[None] | None = None
        self._stop_hearing: Callable[[], None] = lambda: None
        self._snapshots_at = 0.0

    def start(self) -> None:
        """Look now, and whenever there is news."""
        loop = asyncio.get_running_loop()

        def hear() -> None:
            if self._news.is_set():
                return  # it is about to look, and finds this too
            with suppress(RuntimeError):  # the loop is gone
                loop.call_soon_threadsafe(self._news.set)

        self._stop_hearing = outbox.on_wake(hear)
        self._news.set()
        self._task = asyncio.create_task(self._serve())

    async def stop(self) -> None:
        """Begin nothing more; what is on its way has a moment, or is sent again later."""
        self._stop_hearing()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if lanes := list(self._lanes.values()):
            await asyncio.wait(lanes, timeout=GRACE_S)
            for lane in lanes:
                lane.cancel()
            await asyncio.gather(*lanes, return_exceptions=True)

    async def drain(self) -> None:
        """Do all that is due, and return when nothing is."""
        goes_on = True
        while goes_on:
            goes_on = await self._look(takes_snapshots=True)
            goes_on |= any(await asyncio.gather(*self._lanes.values()))

    async def _serve(self) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), LOOK_S)
            self._news.clear()
            try:
                await self._look(takes_snapshots=clock.monotonic_s() >= self._snapshots_at)
                await asyncio.sleep(TOGETHER_S)
            except Exception:  # the database is away: look again in a moment
                log.exception("dispatcher_failed")
                await asyncio.sleep(LOOK_S)

    async def _look(self, *, takes_snapshots: bool) -> bool:
        """Tell what is for our own tables, and begin to send the rest; whether it told anything."""
        found = False
        while (due := await db.read(_due)).telling and await _EVENTS.together(tell, _keys) > 0:
            found = True
        if takes_snapshots:  # nobody waits for them, and many together cost less
            self._snapshots_at = clock.monotonic_s() + LOOK_S
            for key in _SNAPSHOTS.ready((each,) for each in await db.read(snapshots.behind)):
                with _SNAPSHOTS.trying(key):
                    take = partial(_take_snapshots, one_by_one=_SNAPSHOTS.is_hopeless(key))
                    while await db.transaction(take, *key):
                        found = True
        for receiver in await db.read(deliveries.waiting_for) if due.sending else ():
            self._begin(_RECEIVERS, receiver, partial(_deliver_all, *receiver))
        for effect in await db.read(external.due, _EFFECTS.resting) if due.performing else ():
            self._begin(_EFFECTS, effect, partial(self._perform, *effect))
        return found

    def _begin(self, kind: Due, key: tuple[str, str], run: Lane) -> None:
        """Run a lane, unless it runs already, or failed a moment ago."""
        lane = (kind, key)
        if lane not in self._lanes and not kind.rests(key):
            task = self._lanes[lane] = asyncio.create_task(_guarded(kind, key, run))
            task.add_done_callback(lambda _: self._end(lane, task))

    def _end(self, key: Hashable, task: "asyncio.Task[bool]") -> None:
        self._lanes.pop(key, None)
        if not task.cancelled() and task.result():
            self._news.set()  # something may have come while the lane was about to end

    async def _perform(self, tenant_id: str, call_id: str) -> bool:
        async with self._effects:
            if _EFFECTS.is_hopeless((tenant_id, call_id)):
                await db.transaction(external.give_up, tenant_id, call_id)
            effect = await db.read(external.one, tenant_id, call_id)
            if effect is not None:
                await external.perform(effect, posting.post)
        return True


def tell(work: Work, only: tuple[str, ...] | None = None, /) -> int:
    """Tell the next things in the outbox, the first of each record; returns how many were at hand.

    What fails is tried again later, and holds up its own record alone. With a key it is that one.
    """
    if only is not None and _EVENTS.is_hopeless(only):  # nobody can even read it
        key = {"tenant_id": only[0], "id": only[1]}
        return _GIVE_UP.run(work.connection, last_error="unreadable", **key).rowcount
    heads = _heads(work.session, only)
    known = webhooks.receivers_of(work.session, {event.tenant_id for event in heads})
    told_already = _tell_together(work, heads, known)
    for event in heads:
        if event.id not in told_already:
            _tell_one(work, event, [each for each in known if each.tenant_id == event.tenant_id])
    return len(heads)


def tidy() -> None:
    """Forget what was told, as long ago as events are kept; what was given up stays a month."""
    keep = timedelta(days=settings.current().retention_events_days)
    db.transact_now(_tidy, keep)


def measure() -> None:
    """Bring the numbers of what waits, and of what was given up, up to date."""
    for kind, state, number in db.read_now(_numbers):
        (waiting if state == Waiting.PENDING else given_up).labels(kind=kind).set(number)


def _due(session: Session) -> Any:
    """Of which kinds there may be something to do; asked after each commit, so in one question."""
    return _DUE.run(session.connection(), now=clock.now()).one()


def _heads(session: Session, only: tuple[str, ...] | None) -> list[OutboxEvent]:
    query = _next_heads()
    if only is not None:
        query = query.where(OutboxEvent.tenant_id == only[0], OutboxEvent.id == only[1])
    return list(session.exec(query, params={"now": clock.now()}).all())


def _keys(session: Session, more: int) -> list[tuple[str, str]]:
    keys = _due_heads().with_only_columns(col(OutboxEvent.tenant_id), col(OutboxEvent.id))
    found = session.execute(keys.limit(BATCH + more), {"now": clock.now()})
    return [(tenant_id, id) for tenant_id, id in found]


_WHEN = OutboxEvent.__table__.c.due_at.type  # type: ignore[attr-defined]


@cache  # building a statement costs more than asking it
def _next_heads() -> SelectOfScalar[OutboxEvent]:
    return _due_heads().limit(BATCH).with_for_update(skip_locked=True)


def _due_heads() -> SelectOfScalar[OutboxEvent]:
    earlier = aliased(OutboxEvent)
    ahead = exists().where(
        col(earlier.tenant_id) == OutboxEvent.tenant_id,
        col(earlier.line) == OutboxEvent.line,
        col(earlier.state) == Waiting.PENDING,
        tuple_(col(earlier.seq), col(earlier.place))
        < tuple_(col(OutboxEvent.seq), col(OutboxEvent.place)),
    )
    return (
        select(OutboxEvent)
        .where(
            OutboxEvent.state == Waiting.PENDING,
            col(OutboxEvent.due_at) <= bindparam("now", type_=_WHEN),
            ~ahead,
        )
        .order_by(col(OutboxEvent.tenant_id), col(OutboxEvent.seq), col(OutboxEvent.place))
    )


def _tell_together(work: Work, heads: list[OutboxEvent], known: Receivers) -> set[str]:
    """Log what is for the house's own log alone, a tenant at once; ids of what was told so."""
    of_tenants: dict[str, list[OutboxEvent]] = defaultdict(list)
    receiving = {each.tenant_id for each in known}
    for event in heads:
        if event.kind == told.DOMAIN_EVENT and event.tenant_id not in receiving:
            of_tenants[event.tenant_id].append(event)
    told_so: set[str] = set()
    for tenant_id, events in of_tenants.items():
        try:
            with work.connection.begin_nested():
                domain_event.run_all(work, events)
                done = {"now": clock.now(), "tenant_id": tenant_id}
                _DONE.run_many(work.connection, [{**done, "id": each.id} for each in events])
        except Exception as fault:  # one of them is bad: each by itself says which
            if isinstance(fault, DBAPIError) and db.may_pass(fault):
                raise
            continue
        told_so |= {each.id for each in events}
    return told_so


def _tell_one(work: Work, event: OutboxEvent, receivers: Receivers) -> None:
    key = {"tenant_id": event.tenant_id, "id": event.id}
    try:
        with work.connection.begin_nested():
            TELLING[event.kind](work, event, receivers)
            if event.kind == told.DOMAIN_EVENT and event.is_for_receivers:
                webhook.run(work, event, receivers)  # who asked for its type hears of it too
            _DONE.run(work.connection, now=clock.now(), **key)
    except CannotTell as refused:
        _fail(work, key, Waiting.DEAD, event, refused.reason)
    except Exception as fault:  # one bad event must not stop the others
        if isinstance(fault, DBAPIError) and db.may_pass(fault):
            raise
        log.exception("telling_failed", kind=event.kind)
        is_last = event.attempts + 1 >= backoff.TRIES
        state = Waiting.DEAD if is_last else Waiting.PENDING
        _fail(work, key, state, event, type(fault).__name__)


def _fail(work: Work, key: dict[str, str], state: Waiting, event: OutboxEvent, reason: str) -> None:
    due_at = clock.now() + backoff.after(event.attempts + 1)
    _FAILED.run(work.connection, state=state, due_at=due_at, last_error=reason[:200], **key)


def _take_snapshots(work: Work, tenant_id: str, *, one_by_one: bool = False) -> bool:
    """Take the next ones; whether the trail goes on after them."""
    batch = snapshots.entries(work, tenant_id)
    take = _take_or_leave if one_by_one else governance_snapshot.run
    for entry in batch.written:
        take(work, entry, batch.head)
    return batch.goes_on


def _take_or_leave(work: Work, entry: snapshots.Written, head: int) -> None:
    """Take one, or go on without it where nobody ever can."""
    try:
        with work.connection.begin_nested():
            governance_snapshot.run(work, entry, head)
    except Exception as fault:
        if isinstance(fault, DBAPIError) and db.may_pass(fault):
            raise
        log.exception("snapshot_left_out", tenant_id=entry.tenant_id, call_id=entry.call_id)


async def _deliver_all(tenant_id: str, receiver_id: str) -> bool:
    """The lane of one receiver: until nothing is due for it; whether anything was."""
    has_sent = False
    if _RECEIVERS.is_hopeless((tenant_id, receiver_id)):
        await db.transaction(deliveries.lose_patience, tenant_id, receiver_id)
    async with deliveries.client() as client:
        while messages := await db.transaction(deliveries.claim, tenant_id, receiver_id):
            has_sent = True
            async with asyncio.TaskGroup() as group:
                for message in messages:
                    group.create_task(_deliver(client, message))
    return has_sent


async def _deliver(client: Any, message: deliveries.Message) -> None:
    key = (message.delivery.tenant_id, message.delivery.id)
    with _DELIVERIES.trying(key):  # its lease runs out, and it is tried again
        if _DELIVERIES.is_hopeless(key):
            await db.transaction(deliveries.give_up, message)
            return
        answer = await deliveries.send(client, message)
        await db.transaction(deliveries.settle, message, answer)


async def _guarded(kind: Due, key: tuple[str, str], run: Lane) -> bool:
    try:
        with kind.trying(key):  # its lease runs out, and it is tried again
            return await run()
    except Exception:  # the database is away
        log.exception("lane_failed")
        await asyncio.sleep(LOOK_S)
    return False


def _tidy(work: Work, keep: timedelta) -> None:
    now = clock.now()
    for table, ended in (
        (OutboxEvent, OutboxEvent.done_at),
        (WebhookDelivery, WebhookDelivery.settled_at),
    ):
        work.connection.execute(
            delete(table).where(col(table.state) == Waiting.DONE, col(ended) < now - keep)
        )
        work.connection.execute(
            delete(table).where(
                col(table.state) == Waiting.DEAD, col(table.due_at) < now - KEEP_DEAD
            )
        )
    work.connection.execute(
        delete(ExternalEffect).where(
            col(ExternalEffect.state).in_([EffectState.DONE, EffectState.FAILED]),
            col(ExternalEffect.settled_at) < now - KEEP_DEAD,
        )
    )


def _numbers(session: Session) -> list[tuple[str, str, int]]:
    made = []
    tables: tuple[tuple[str, Any], ...] = (("outbox", OutboxEvent), ("webhook", WebhookDelivery))
    for kind, table in tables:
        for state in (Waiting.PENDING, Waiting.DEAD):
            query = select(func.count()).select_from(table).where(table.state == state)
            made.append((kind, state.value, session.exec(query).one()))
    return made
