"""A connection to one server, owned by one task: it opens it, calls, and closes it (RUN-96).

Whoever asks hands over what is wanted and waits for the answer. Whatever goes wrong, also half-way
through opening, the task itself cleans up: no socket and no process outlives it (F-85).
"""

import asyncio
import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
import structlog

from app.outside import aside, offers
from app.outside.endpoint import Endpoint
from app.outside.offers import Offer
from app.outside.results import Answer, Lost

log = structlog.get_logger(__name__)

CLOSES_S = 10.0  # for a goodbye, and for a program to end


@dataclass(slots=True)
class _Asked:
    name: str
    arguments: dict[str, Any]
    output: Any
    answer: "asyncio.Future[Answer]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class Connection:
    """One server, for one caller; `offers` is what it offered when it was opened.

    Where `pinned` is given, nothing else that it offers is looked at.
    """

    def __init__(self, endpoint: Endpoint, pinned: Mapping[str, Offer] | None = None) -> None:
        self._endpoint, self._pinned = endpoint, pinned
        self._asked: asyncio.Queue[_Asked | None] = asyncio.Queue()
        self._scope = anyio.CancelScope()
        self._ready: asyncio.Future[list[Offer]] = asyncio.get_running_loop().create_future()
        self._is_busy = True
        self._task = asyncio.create_task(self._own())
        self.offers: Mapping[str, Offer] = {}
        self.link = endpoint.link

    @property
    def is_open(self) -> bool:
        """Whether a call can be made over it."""
        return not self._task.done() and self._ready.done()

    async def ready(self) -> None:
        """Return when it is open, and what is offered is known.

        Raises:
            Lost: it could not be opened; nothing is left of it.
        """
        try:
            found = await asyncio.shield(self._ready)
        except BaseException:
            await self.close()
            raise
        self.offers = {each.name: each for each in found}

    async def call(
        self, name: str, arguments: Mapping[str, Any], output: Mapping[str, Any] | None = None
    ) -> Answer:
        """What a tool answers.

        Raises:
            Lost: no answer came; `was_sent` tells whether the call may have been made.
        """
        if self._task.done():
            raise Lost("connection")
        asked = _Asked(name, dict(arguments), output)
        self._asked.put_nowait(asked)
        return await asked.answer

    async def close(self) -> None:
        """Let go of it; what is in the middle of something is cut off."""
        self._asked.put_nowait(None)
        if self._is_busy:
            self._scope.cancel()
        _, still = await asyncio.wait({self._task}, timeout=CLOSES_S)
        if still:
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=CLOSES_S)

    async def _own(self) -> None:
        rule, current = "closed", None
        wire = await asyncio.to_thread(importlib.import_module, "app.outside.wire")
        try:
            with self._scope:
                async with wire.opened(self._endpoint) as opened:
                    with anyio.fail_after(wire.CONNECT_S):
                        listed = await opened.listed()
                    found = await aside.run(offers.of, listed, self._pinned)
                    self._ready.set_result(found)
                    while (current := await self._next()) is not None:
                        await self._answer(opened, current)
        except Exception as fault:  # noqa: BLE001 - whatever the other side did, it is a word here
            rule = wire.rule_of(fault)
            log.info("outside_connection_lost", rule=rule)
        finally:
            self._give_up(rule, current)

    async def _next(self) -> _Asked | None:
        self._is_busy = False
        asked = await self._asked.get()
        self._is_busy = True
        return asked

    async def _answer(self, opened: Any, asked: _Asked) -> None:
        try:
            answer: Answer = await opened.call(asked.name, asked.arguments, asked.output)
        except Lost as lost:
            if not asked.answer.done():
                asked.answer.set_exception(lost)
            raise  # a server that did not answer once is asked anew over another connection
        if not asked.answer.done():
            asked.answer.set_result(answer)

    def _give_up(self, rule: str, current: _Asked | None) -> None:
        if not self._ready.done():
            self._ready.set_exception(Lost(rule))
            self._ready.exception()  # nobody may be waiting
        if current is not None and not current.answer.done():
            current.answer.set_exception(Lost(rule, was_sent=True))
        while not self._asked.empty():
            waiting = self._asked.get_nowait()
            if waiting is not None and not waiting.answer.done():
                waiting.answer.set_exception(Lost(rule))
