"""The scheduler of this process: deliver, open, wake, recover, claim, in this order (RUN-61).

Events are hints, rows are the truth: it looks at each hint, and each second without one. It hands
claimed runs to workers, keeps their leases, and gives them back when the process ends.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

import structlog
from sqlmodel import Session

from app.aun.events import GroupChanged, MessageStored
from app.commands.approval_events import ApprovalChanged
from app.commands.external import EffectSettled
from app.identity.facts import AccessChanged
from app.kernel import clock, db, events, ids, settings
from app.kernel.db import Work
from app.kernel.due import Due
from app.kernel.events import Event
from app.runs import (
    claiming,
    delivery,
    ending,
    heartbeat,
    opening,
    recovery,
    rows,
    schedules,
    waking,
    worker,
)
from app.runs.heartbeat import Hands, Held, Leaving
from app.runs.lease import Claim
from app.runs.session import RunSession
from app.runs.told import Hint

log = structlog.get_logger(__name__)

LOOK_S = 1.0  # between looks without a hint
TOGETHER_S = 0.02  # what is committed within this time is looked at together
SWEEP_S = 10.0  # between looks at everything that was said: what a lost hint left behind
BEATS = 3  # in the time of one lease
GRACE_S = 10.0  # for the stage at hand when the process ends
HINTS = (MessageStored, Hint, ApprovalChanged, EffectSettled, AccessChanged, GroupChanged)

Started = Callable[[RunSession], Any]
Execute = Callable[[Claim, Started], Awaitable[None]]


class Scheduler:
    """One for a process; `start` it on the loop that shall execute runs."""

    def __init__(
        self,
        execute: Execute = worker.execute,
        *,
        at_once: int | None = None,
        lease_s: float | None = None,
    ) -> None:
        self.process = ids.ulid()
        self.hands = Hands()
        self._execute = execute
        chosen = settings.current()
        self._at_once = at_once or chosen.runs_at_once
        self._lease_s = lease_s or chosen.run_lease_s
        self._news = asyncio.Event()
        self._new_in: set[tuple[str, str]] = set()
        self._stopping: set[str] = set()
        self._sweep_at_s = 0.0
        self._heads: dict[str, int] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._ends: list[Callable[[], None]] = []
        self._is_ending = False
        self._stages = Due("stage", longest_s=LOOK_S)

    def start(self) -> None:
        """Look now, and whenever there is news."""
        loop = asyncio.get_running_loop()
        self._ends = [events.subscribe(kind, partial(self._hear, loop)) for kind in HINTS]
        self._news.set()
        self._tasks = [
            asyncio.create_task(self._serve()),
            asyncio.create_task(self._keep_beating()),
        ]

    async def stop(self) -> None:
        """Claim nothing more, let the stage at hand end, give back what is not over (RUN-68)."""
        self._is_ending = True
        for end in self._ends:
            end()
        self.hands.end_all(Leaving())
        self._news.set()
        if self._tasks:  # its look ends first: a claim that is on its way is not lost
            await asyncio.wait(self._tasks[:1], timeout=GRACE_S)
        await self._leave()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def tick(self) -> None:
        """One look at everything; what is not due costs nothing."""
        await self._look("delivering", self._deliver)
        due = await db.read(_due)
        if due.scheduling:
            await self._look("scheduling", schedules.fire_due)
        if due.opening:
            await self._look("opening", opening.open_due)
        if due.holding:
            await self._look("holding", waking.hold_due)
        if due.waking:
            await self._look("waking", waking.wake_due)
        if due.recovering:
            await self._look("recovering", self._recover)
        if due.claiming or due.opening or due.waking or due.recovering or due.scheduling:
            await self._look("claiming", self._claim)

    async def drain(self) -> None:
        """Look, and execute what is there, until nothing is due any more; for those who wait."""
        self._sweep_at_s = 0.0
        await self.tick()
        while running := [held.task for held in self.hands.held.values() if held.task]:
            await asyncio.wait(running)
            await asyncio.sleep(0)
            await self.tick()

    async def beat(self) -> None:
        """Extend the leases of what is in hand, and end what was stopped or taken over."""
        if claims := self.hands.claims:
            ending_ = await heartbeat.beat_all(claims, self._lease_s)
            heartbeat.heard(self.hands, ending_)

    def _hear(self, loop: asyncio.AbstractEventLoop, event: Event) -> None:
        """On a database thread: note what the next look is about, and let it begin."""
        if isinstance(event, MessageStored):
            if not event.is_ours:  # no agent is there to hear it
                return
            self._new_in.add((event.tenant_id, event.conversation_id))
        elif isinstance(event, Hint) and event.what == "stop":
            self._stopping.add(event.id)
        if not self._news.is_set():
            with suppress(RuntimeError):  # the loop is gone
                loop.call_soon_threadsafe(self._news.set)

    async def _serve(self) -> None:
        while not self._is_ending:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), LOOK_S)
            self._news.clear()
            try:
                await self._hear_stops()
                await self.tick()
                await asyncio.sleep(TOGETHER_S)
            except Exception:  # the database is away: look again in a moment
                log.exception("scheduler_failed")
                await asyncio.sleep(LOOK_S)

    async def _keep_beating(self) -> None:
        while True:
            await asyncio.sleep(self._lease_s / BEATS)
            try:
                await self.beat()
            except Exception:  # the lease outlives a beat or two that could not be made
                log.exception("heartbeat_failed")

    async def _hear_stops(self) -> None:
        """Let a stop reach what this process executes without waiting for the next beat."""
        stopping: set[str] = set()
        while self._stopping:  # another thread may add to it meanwhile
            stopping.add(self._stopping.pop())
        claims = [claim for claim in self.hands.claims if claim.run_id in stopping]
        if claims:
            heartbeat.heard(self.hands, await heartbeat.beat_all(claims, self._lease_s))

    async def _look(self, stage: str, look: Callable[[], Awaitable[object]]) -> None:
        """One stage; what breaks it breaks none of the others."""
        for key in self._stages.ready([("", stage)]):
            with self._stages.trying(key):
                await look()

    async def _recover(self) -> int:
        return await recovery.recover_due(heartbeat.own_runs(self.hands))

    async def _deliver(self) -> None:
        if clock.monotonic_s() >= self._sweep_at_s:
            self._new_in.clear()
            self._sweep_at_s = clock.monotonic_s() + SWEEP_S
            self._heads = await delivery.sweep(self._heads)
        while self._new_in:
            await delivery.hear_in(*self._new_in.pop())

    async def _claim(self) -> None:
        room = self._at_once - len(self.hands.held)
        if room <= 0 or self._is_ending:
            return
        for claim in await claiming.claim_due(self.process, room, self._lease_s):
            held = self.hands.take(claim)
            held.task = asyncio.create_task(self._run(held))

    async def _run(self, held: Held) -> None:
        try:
            await self._execute(held.claim, held.began)
        except Exception:  # its lease runs out, and recovery counts it
            log.exception("worker_failed", run_id=held.claim.run_id)
        finally:
            if not self._is_ending:
                self.hands.drop(held.claim)
            self._news.set()  # there is room, and its lane is free (RUN-18)

    async def _leave(self) -> None:
        """Let stages end, then give back every run that is still ours; no takeover is counted."""
        self.hands.end_all(Leaving())
        tasks = [held.task for held in self.hands.held.values() if held.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=GRACE_S)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for held in list(self.hands.held.values()):
            try:
                await db.transaction(_give_back, held.claim, held.session)
            except Exception:  # its lease runs out; that of the next one need not
                log.exception("not_given_back", run_id=held.claim.run_id)
            self.hands.drop(held.claim)


def _give_back(work: Work, claim: Claim, session: RunSession | None) -> bool:
    active_ms = session.active_ms(clock.now()) - session.active_ms_before if session else 0
    return ending.requeue(work, claim, active_ms=active_ms)


def _due(session: Session) -> Any:
    return rows.DUE.run(session.connection(), moment=clock.now()).one()
