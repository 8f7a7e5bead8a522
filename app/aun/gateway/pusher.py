"""Carries what was committed to the connections of this process, in the order of commits."""

import asyncio
import importlib
import pkgutil
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import structlog
from sqlmodel import Session

from app.aun import frames, pushes
from app.aun.events import Evicted
from app.aun.gateway import hub
from app.aun.gateway.connection import NORMAL
from app.aun.gateway.registry import Replaced
from app.aun.outgoing import Composer
from app.kernel import db, events
from app.kernel.abortable_socket import framed
from app.kernel.events import Broadcast

AT_ONCE = 200  # events that are looked up together
REPLACED = 4009

log = structlog.get_logger(__name__)


@cache
def composers() -> dict[type[Broadcast], list[Composer]]:
    """Who puts which event into words; several families may tell of one."""
    found: dict[type[Broadcast], list[Composer]] = {}
    for module in pkgutil.iter_modules(pushes.__path__):
        family = importlib.import_module(f"{pushes.__name__}.{module.name}")
        for kind, composer in getattr(family, "PUSHES", {}).items():
            found.setdefault(kind, []).append(composer)
    return found


class Pusher:
    """Listens while the server runs; nothing here waits for a socket."""

    def __init__(self) -> None:
        self._hub = hub.of_process()
        self._news: deque[Any] = deque()
        self._awake = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        kinds: list[type[Broadcast]] = [*composers(), Replaced, Evicted]
        self._stops: list[Callable[[], None]] = [
            events.subscribe(kind, self._hear) for kind in kinds
        ]
        self._task = asyncio.create_task(self._serve())

    async def stop(self) -> None:
        """Hear nothing more."""
        for stop in self._stops:
            stop()
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    def _hear(self, event: Broadcast) -> None:
        if len(self._hub):
            self._news.append(event)
            with suppress(RuntimeError):  # the loop is gone
                self._loop.call_soon_threadsafe(self._awake.set)

    async def _serve(self) -> None:
        while True:
            await self._awake.wait()
            self._awake.clear()
            while self._news:
                batch = [self._news.popleft() for _ in range(min(AT_ONCE, len(self._news)))]
                try:
                    await self._tell(batch)
                except Exception:  # a lost push costs a pull, never a message
                    log.exception("aun_push_failed")

    async def _tell(self, batch: list[Any]) -> None:
        worded = [event for event in batch if type(event) in composers()]
        if worded:
            for to, frame in await db.read(_composed, worded, self._hub):
                wire = framed(frame)
                for connection_id in to:
                    if connection := self._hub.connection(connection_id):
                        connection.push(frame, wire)
        for event in batch:
            if isinstance(event, Replaced):
                self._replace(event)
            elif isinstance(event, Evicted):
                self._evict(event)

    def _replace(self, event: Replaced) -> None:
        told = frames.event(
            "gateway.disconnect",
            {
                "code": REPLACED,
                "reason": "replaced_by_new_connection",
                "detail": {"new": event.by},
            },
        )
        for connection_id in event.ids:
            if connection := self._hub.connection(connection_id):
                connection.offer(told)
                connection.close(REPLACED, "replaced_by_new_connection")

    def _evict(self, event: Evicted) -> None:
        for live in self._hub.of(event.tenant_id, event.aid):
            connection = self._hub.connection(live.id)
            if connection is None:
                continue
            if event.code != NORMAL:  # a client that may return must not be told to stay away
                connection.offer(
                    frames.event(
                        "gateway.disconnect",
                        {"code": event.code, "reason": event.reason, "detail": {}},
                    )
                )
            connection.close(event.code, event.reason)


def _composed(
    session: Session, batch: list[Any], connections: hub.Hub
) -> list[tuple[list[str], bytes]]:
    made = []
    for event in batch:
        try:
            for composer in composers()[type(event)]:
                for told in composer(session, event, connections.lookup(event.tenant_id)):
                    if told.to:
                        frame = frames.event(told.name, told.params)
                        made.append(([live.id for live in told.to], frame))
        except Exception:  # one event that cannot be told does not silence the others
            log.exception("aun_event_unspoken", event_type=type(event).__name__)
    return made
