"""A tenant with outside servers: registered, looked at, enabled, and used by its people."""

import itertools
from collections.abc import Sequence
from typing import Any

from sqlmodel import col, select

from app.audit.models import AuditEntry
from app.commands import catalogue
from app.commands.call import Call
from app.commands.definition import Risk
from app.commands.descriptors import Descriptor
from app.identity.principal import Principal
from app.kernel import db
from app.kernel.db import Work
from app.outside import looking, servers, tools
from app.outside.models import Access, McpServer, McpTool
from tests.outside.servers import Outsider

_keys = itertools.count(1)


class Lobby:
    """Where Acme's administrator meets the outside."""

    def __init__(self, world: Any) -> None:
        self.world, self.acme = world, world.acme
        self.ada: Principal = world.acme_admin
        catalogue.forget()

    async def register(
        self, outsider: Outsider, name: str = "weather", access: Access = Access.OPEN
    ) -> McpServer:
        """Make a server known, and look at it."""
        made = db.transact_now(_add, self.ada, name, outsider.url, access)
        await self.look(made)
        return self.server(made.id)

    async def look(self, server: McpServer) -> str:
        """See what it offers now; what was wrong."""
        return await looking.look(self.ada, server.id)

    async def admit(
        self, outsider: Outsider, risk: Risk = Risk.L3, name: str = "weather"
    ) -> McpServer:
        """The same, and enable all of its tools."""
        server = await self.register(outsider, name)
        for tool in self.tools(server):
            self.enable(server, tool, risk)
        return server

    def enable(self, server: McpServer, tool: McpTool, risk: Risk = Risk.L3) -> None:
        """Let a tool be used as it was seen."""
        db.transact_now(_enable, self.ada, server.id, tool.id, risk, tool.offered_pin)

    def turn_off(self, server: McpServer, tool: McpTool) -> None:
        """Let nobody use it."""
        db.transact_now(_turn_off, self.ada, server.id, tool.id)

    def remove(self, server: McpServer) -> None:
        """Forget a server."""
        db.transact_now(_remove, self.ada, server.id)

    def server(self, server_id: str) -> McpServer:
        """A server as it is now."""
        return db.read_now(servers.one, self.acme.id, server_id)

    def tools(self, server: McpServer) -> Sequence[McpTool]:
        """Its tools as they are now."""
        return db.read_now(tools.of_server, server)

    def tool(self, server: McpServer, name: str = "forecast") -> McpTool:
        """One of them."""
        return next(each for each in self.tools(server) if each.name == name)

    def commands(self, principal: Principal) -> dict[str, Descriptor]:
        """The outside tools in somebody's catalogue."""
        found = db.read_now(catalogue.of, principal)
        return {each.code: each for each in found.entries if each.code.startswith("mcp.")}

    def entries(self, prefix: str) -> list[AuditEntry]:
        """What the trail has of commands that begin so, the oldest first."""
        query = (
            select(AuditEntry)
            .where(AuditEntry.tenant_id == self.acme.id, col(AuditEntry.command).startswith(prefix))
            .order_by(col(AuditEntry.seq))
        )
        return list(db.read_now(lambda session: session.exec(query).all()))


def call(
    principal: Principal, code: str = "mcp.weather.forecast", /, key: str = "", **more: Any
) -> Call:
    """A call of an outside tool; keyed anew unless it is said."""
    input = more.pop("input", {"city": "Oslo"})
    used = key or f"key-{next(_keys)}"
    return Call(code=code, input=input, principal=principal, idempotency_key=used, **more)


def _add(work: Work, person: Principal, name: str, url: str, access: Access) -> McpServer:
    return servers.add(work, person, name=name, url=url, access=access)


def _enable(
    work: Work, person: Principal, server_id: str, tool_id: str, risk: Risk, pin: str
) -> None:
    server = servers.one(work.session, person.tenant_id, server_id)
    tool = tools.one(work.session, server, tool_id)
    tools.enable(work, person, server, tool, risk=risk, pin=pin)


def _turn_off(work: Work, person: Principal, server_id: str, tool_id: str) -> None:
    server = servers.one(work.session, person.tenant_id, server_id)
    tools.turn_off(work, person, server, tools.one(work.session, server, tool_id))


def _remove(work: Work, person: Principal, server_id: str) -> None:
    servers.remove(work, person, servers.one(work.session, person.tenant_id, server_id))
