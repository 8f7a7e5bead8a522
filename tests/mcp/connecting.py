"""The real application on a port, and clients of the official SDK that come in by its door."""

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from app.identity import delegations, tokens
from app.identity.doors import Door
from app.identity.models import Agent, User
from app.identity.oauth import families, operator, standing
from app.identity.oauth.standing import Origin
from app.identity.principal import Scope
from app.kernel import clock, db, ids, settings
from app.kernel.db import Work
from tests.aun.serving import served as on_a_port
from tests.people import Company, World

NEW, OLD = "2026-07-28", "2025-11-25"
EVERYTHING = (Scope.CATALOG_READ, Scope.COMMANDS_READ, Scope.COMMANDS_INVOKE)
ACCEPT = "application/json, text/event-stream"
PATIENCE_S = 30


@dataclass(frozen=True)
class Mcp:
    """The door of a world: on a port, or without one in this very process, which is quicker.

    Without a port an answer arrives when it is whole, so nobody is asked anything in between.
    """

    world: World
    port: int | None = None

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}/mcp" if self.port else f"{origin()}/mcp"

    def http(self, token: str = "", **headers: str) -> httpx2.AsyncClient:
        """A plain client, under the name the product has in these tests."""
        known = {"Host": urlsplit(origin()).netloc, "Accept": ACCEPT}
        bearer = {"Authorization": f"Bearer {token}"} if token else {}
        inside = httpx2.ASGITransport(app=self.world.app, raise_app_exceptions=False)
        return httpx2.AsyncClient(
            headers={**known, **bearer, **headers},
            timeout=PATIENCE_S,
            transport=None if self.port else inside,
        )

    @asynccontextmanager
    async def client(self, token: str, revision: str = NEW, **more: Any) -> AsyncIterator[Client]:
        """A client of the official SDK, connected."""
        async with self.http(token) as http:
            transport = streamable_http_client(self.url, http_client=http)
            mode: Any = "legacy" if revision == OLD else "auto"
            async with Client(transport, mode=mode, **more) as client:
                assert client.protocol_version == revision
                yield client

    async def post(
        self,
        token: str,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        capabilities: Mapping[str, Any] | None = None,
        **headers: str,
    ) -> httpx2.Response:
        """One request of the newer revision, as bytes on the wire."""
        given = enveloped(params, **(capabilities or {}))
        sent = {"jsonrpc": "2.0", "id": 1, "method": method, "params": given}
        name = {"Mcp-Name": str(given["name"])} if "name" in given else {}
        head = {"Mcp-Protocol-Version": NEW, "Mcp-Method": method, **name, **headers}
        async with self.http(token, **head) as http:
            body = json.dumps(sent).encode()
            return await http.post(
                self.url, content=body, headers={"Content-Type": "application/json"}
            )


def enveloped(params: dict[str, Any] | None, **capabilities: Any) -> dict[str, Any]:
    """Parameters with what every request of the newer revision says of its client."""
    given = dict(params or {})
    meta = {
        "io.modelcontextprotocol/protocolVersion": NEW,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities,
        **given.pop("_meta", {}),
    }
    return {**given, "_meta": meta}


def origin() -> str:
    """The public origin of the product in these tests."""
    return settings.current().origin


@asynccontextmanager
async def inside(world: World) -> AsyncIterator[Mcp]:
    """The world's application in this process, with nothing else it starts with."""
    try:
        yield Mcp(world)
    finally:
        await world.app.state.mcp.stop()


@contextmanager
def served(world: World) -> Iterator[Mcp]:
    """The world's application with everything it starts with."""
    with on_a_port(world.app) as port:
        yield Mcp(world, port)


def token(
    company: Company, user: User, scopes: tuple[Scope, ...] = EVERYTHING, agent: str = "expenses"
) -> str:
    """A token of an agent that acts for `user` with just these scopes, for this door."""
    db.transact_now(_delegate, user, company.agents[agent], scopes)
    return minted(company, user, agent)


def minted(company: Company, user: User, agent: str = "expenses") -> str:
    """One more token of a delegation there is."""
    return db.transact_now(operator.mint, f"{company.tenant.slug}/{user.login}", agent, "mcp")


def granted(
    company: Company,
    user: User,
    door: Door = Door.MCP,
    scopes: tuple[Scope, ...] = EVERYTHING,
) -> tuple[str, str]:
    """A token as a grant gives it, and the id of the token family it stands on."""
    return db.transact_now(_grant, user, company.agents["expenses"], door, scopes)


def end_family(user: User, family_id: str) -> None:
    """The user takes the tokens of a grant back; the delegation stays."""
    db.transact_now(families.end, user.tenant_id, family_id, "by_user")


def _grant(
    work: Work, user: User, agent: Agent, door: Door, scopes: tuple[Scope, ...]
) -> tuple[str, str]:
    _delegate(work, user, agent, scopes)
    live = delegations.live(work.session, user.tenant_id, user.id, agent.id)
    assert live is not None
    found = standing.now(
        work.session,
        tenant_id=user.tenant_id,
        delegation_id=live.id,
        client_id=agent.id,
        origin=Origin(auth_time=clock.now(), amr=("pwd",)),
        family_id=ids.ulid(),
    )
    assert found is not None
    scope, resource = " ".join(scopes), door.resource
    families.begin(work, found[0], scope=scope, resource=resource)
    made = tokens.make(work.session, found[0], scope=scope, audience=resource)
    return made, found[0].family_id or ""


def _delegate(work: Work, user: User, agent: Agent, scopes: tuple[Scope, ...]) -> None:
    live = delegations.live(work.session, user.tenant_id, user.id, agent.id)
    if live is None:
        live = delegations.make_for(work, user, agent, scopes)
    live.scopes = [str(each) for each in scopes]
    work.session.add(live)
