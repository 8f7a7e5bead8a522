"""What a run holds of the outside stands as long as its user's own access does."""

from collections.abc import Callable
from typing import Any

import pytest

from app.commands.definition import Risk
from app.kernel import db
from app.kernel.db import Work
from app.outside import consent, links
from app.outside.admission import Admitted
from app.outside.models import Access, McpLink, McpServer
from app.outside.results import Lost
from app.runs import outside as runs_outside
from app.runs.outside import Outside
from tests.outside.issuer import Guarded
from tests.outside.lobby import Lobby
from tests.outside.servers import Outsider
from tests.people import World

Start = Callable[..., Any]


@pytest.fixture
def lobby(world: World) -> Lobby:
    return Lobby(world)


class Reader:
    """Alice with a tool that only reads, of a server that knows each person."""

    def __init__(self, lobby: Lobby, server: McpServer) -> None:
        self.alice = lobby.world.person(lobby.acme["alice"])
        self.server = server
        tool = lobby.tool(server)
        self.admitted = Admitted(
            server_id=server.id,
            server=server.name,
            name=tool.name,
            code="mcp.weather.forecast",
            pin=tool.pin or "",
            is_read_only=True,
            content=tool.pinned or {},
        )

    async def opened(self) -> Outside:
        return await runs_outside.opened(self.alice, [self.admitted])

    async def call(self, outside: Outside) -> str:
        """What a call comes to."""
        try:
            return (await outside.call(self.admitted, {"city": "Oslo"})).outcome
        except Lost as lost:
            return lost.rule

    def link(self) -> McpLink | None:
        key = (self.server.tenant_id, self.alice.user_id, self.server.id)
        return db.read_now(lambda session: session.get(McpLink, key))

    def end(self) -> None:
        def ended(work: Work) -> None:
            links.end(work, self.alice, self.server)

        db.transact_now(ended)


async def with_tokens(lobby: Lobby, outsider: Outsider) -> Reader:
    server = await lobby.register(outsider, access=Access.TOKEN)
    for person in (lobby.ada, lobby.world.person(lobby.acme["alice"])):
        db.transact_now(links.give_token, person, server, outsider.token)
    assert await lobby.look(server) == ""
    lobby.enable(server, lobby.tool(server), Risk.L0)
    return Reader(lobby, server)


@pytest.mark.requirement("SEC-68", "RUN-96")
async def test_an_access_that_is_ended_serves_no_further_call(lobby: Lobby, outside: Start) -> None:
    outsider = outside(Outsider(token="mine"))
    reader = await with_tokens(lobby, outsider)
    run = await reader.opened()
    assert await reader.call(run) == "done"

    reader.end()

    assert await reader.call(run) == "link_needed"
    assert len(outsider.called) == 1
    await run.close()
    assert await outsider.is_left()


@pytest.mark.requirement("SEC-68")
async def test_a_token_that_was_pasted_and_is_refused_is_broken(
    lobby: Lobby, outside: Start
) -> None:
    outsider = outside(Outsider(token="mine"))
    reader = await with_tokens(lobby, outsider)
    run = await reader.opened()
    outsider.token = "another"

    assert await reader.call(run) == "link_needed"

    row = reader.link()
    assert row is not None
    assert row.is_broken
    await run.close()


@pytest.mark.requirement("SEC-68")
async def test_a_refusal_of_an_older_token_breaks_no_newer_one(
    lobby: Lobby, outside: Start
) -> None:
    reader = await with_tokens(lobby, outside(Outsider(token="mine")))
    key = (reader.server.tenant_id, reader.alice.user_id, reader.server.id)
    db.transact_now(links.give_token, reader.alice, reader.server, "newer")

    db.transact_now(links.was_refused, *key, 1)

    row = reader.link()
    assert row is not None
    assert not row.is_broken


@pytest.mark.requirement("SEC-68", "RUN-96")
async def test_a_token_that_is_taken_back_in_the_middle_is_renewed_once(
    lobby: Lobby, outside: Start
) -> None:
    guarded: Guarded = outside(Guarded(token="nobody has it"))
    server = await lobby.register(guarded, access=Access.OAUTH)
    ada = lobby.ada = lobby.world.person(lobby.acme["ada"])
    await consent.complete(ada, **guarded.consent(await consent.begin(ada, server.id)))
    assert await lobby.look(server) == ""
    lobby.enable(server, lobby.tool(server), Risk.L0)
    reader = Reader(lobby, server)
    alice = reader.alice
    await consent.complete(alice, **guarded.consent(await consent.begin(alice, server.id)))
    run = await reader.opened()

    guarded.token = "taken back"

    assert await reader.call(run) == "done"
    assert guarded.asked[-1]["grant_type"] == "refresh_token"
    assert len(guarded.called) == 1
    await run.close()
