"""What one run has of the outside: connections that are its alone, and end with it (RUN-50).

They are opened when the run is prepared, all at once. A server that cannot be reached costs its
tools, and the model is told; it does not cost the run (RUN-96).
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import structlog

from app.identity.principal import Principal
from app.kernel import db
from app.kernel.errors import NotFound
from app.outside import links, opening
from app.outside.admission import Admitted
from app.outside.connection import Connection
from app.outside.results import UNAUTHORIZED, Answer, Lost

log = structlog.get_logger(__name__)

AWAY = "These outside servers cannot be used now, so their tools are missing: {servers}."
UNLINKED = "the user is not linked to it, and can do so under Linked servers"
WHY = {"link_needed": UNLINKED, "unauthorized": UNLINKED, "timeout": "no answer in time"}
OTHERWISE = "no usable answer"


@dataclass(slots=True)
class Outside:
    """What one run has of the outside.

    Attributes:
        admitted: the tools it can call, by code.
        away: servers that could not be used, by name, and why; told to the model once.
    """

    principal: Principal | None = None
    admitted: Mapping[str, Admitted] = field(default_factory=dict)
    away: Mapping[str, str] = field(default_factory=dict)
    is_told: bool = False
    _open: dict[str, Connection] = field(default_factory=dict)

    async def close(self) -> None:
        """Let go of every connection; nothing of them is left."""
        connections, self._open = list(self._open.values()), {}
        await asyncio.gather(*(each.close() for each in connections))

    def note(self) -> str | None:
        """What the model has to know of servers that are away, the first time it is asked for."""
        if self.is_told or not self.away:
            return None
        self.is_told = True
        told = (f"{name} ({WHY.get(why, OTHERWISE)})" for name, why in self.away.items())
        return AWAY.format(servers=", ".join(told))

    async def call(self, admitted: Admitted, arguments: Mapping[str, Any]) -> Answer:
        """What a tool answers, over the connection to its server.

        It only reads: where its server takes the token no more, it is called once more with a new
        one.

        Raises:
            Lost: there is no answer; or the tool is another one by now.
        """
        connection = self._open.get(admitted.server_id)
        if connection is None or not await self._stands(admitted.server_id, connection):
            connection = await self._reopen(admitted.server_id)
        answer = await _called(connection, admitted, arguments)
        if answer.reason != UNAUTHORIZED:
            return answer
        of_link = (*self._link(admitted.server_id), connection.link)
        await db.transaction(links.was_refused, *of_link)
        connection = await self._reopen(admitted.server_id)
        return await _called(connection, admitted, arguments)

    def _link(self, server_id: str) -> tuple[str, str, str]:
        principal = self.principal
        if principal is None:
            raise Lost("nobody")
        return principal.tenant_id, principal.user_id, server_id

    async def _stands(self, server_id: str, connection: Connection) -> bool:
        """Whether a connection is open, with the access that its user still has."""
        if not connection.is_open:
            return False
        now = await db.read(links.version, *self._link(server_id)) if connection.link else 0
        return now == connection.link

    async def open(self, admitted: Sequence[Admitted]) -> None:
        """Connect to the servers of these tools, all at once."""
        reading = sorted((each for each in admitted if each.is_read_only), key=_server)
        by_server = {key: list(tools) for key, tools in groupby(reading, key=_server)}
        faults = await asyncio.gather(*(self._connect(id) for _, id in by_server))
        lost = {key: why for key, why in zip(by_server, faults, strict=True) if why}
        self.away = {name: why for (name, _), why in lost.items()}
        self.admitted = {
            tool.code: tool
            for key, tools in by_server.items()
            for tool in tools
            if key not in lost and self._offers(tool)
        }

    def _offers(self, tool: Admitted) -> bool:
        offer = self._open[tool.server_id].offers.get(tool.name)
        return offer is not None and offer.pin == tool.pin

    async def _connect(self, server_id: str) -> str:
        """Why it could not be opened; empty: it is open."""
        try:
            await self._reopen(server_id)
        except (Lost, NotFound) as fault:
            why = fault.rule if isinstance(fault, Lost) else "gone"
            log.info("outside_server_away", server=server_id, rule=why)
            return why
        return ""

    async def _reopen(self, server_id: str) -> Connection:
        tenant_id, user_id, _ = self._link(server_id)
        if (old := self._open.pop(server_id, None)) is not None:
            await old.close()
        made = await opening.opened(tenant_id, server_id, user_id)
        self._open[server_id] = made
        return made


async def opened(principal: Principal | None, admitted: Sequence[Admitted]) -> Outside:
    """The outside of a run, with connections that whoever asked closes."""
    outside = Outside(principal)
    try:
        await outside.open(admitted)
    except BaseException:
        await outside.close()
        raise
    return outside


async def _called(
    connection: Connection, admitted: Admitted, arguments: Mapping[str, Any]
) -> Answer:
    offer = connection.offers.get(admitted.name)
    if offer is None or offer.pin != admitted.pin:
        raise Lost("tool_changed")
    return await connection.call(admitted.name, arguments, admitted.content.get("output"))


def _server(tool: Admitted) -> tuple[str, str]:
    return tool.server, tool.server_id
