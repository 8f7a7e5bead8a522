"""A person's own access to outside servers: given at the server or as a token, and taken back."""

import re
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest
from sqlmodel import select

from app.kernel import db
from app.kernel.db import Work
from app.outside import links, opening, servers
from app.outside.models import Access, McpLink
from tests.outside.conftest import outside
from tests.outside.issuer import Guarded
from tests.outside.lobby import Lobby
from tests.outside.servers import Outsider
from tests.people import World

__all__ = ["outside"]
Start = Callable[..., Any]


@pytest.fixture
def lobby(world: World) -> Lobby:
    return Lobby(world)


def all_links() -> list[McpLink]:
    return list(db.read_now(lambda session: session.exec(select(McpLink)).all()))


@pytest.mark.requirement("SEC-68")
async def test_the_pages_lead_there_and_back(lobby: Lobby, outside: Start) -> None:
    guarded: Guarded = outside(Guarded(token="nobody has it"))
    server = await lobby.register(guarded, access=Access.OAUTH)
    browser = lobby.world.client(lobby.acme["alice"])
    before = await browser.get("/outside")
    assert "Not linked" in before.text

    asked = await browser.post(f"/outside/{server.id}/consent")
    found = re.search(r'href="(http://127[^"]+/authorize[^"]+)"', asked.text)
    assert found is not None
    back = guarded.consent(unescape(found[1]))
    home = await browser.get("/outside/callback", params=back)
    after = await browser.get("/outside")

    assert (home.status_code, home.headers["location"]) == (303, "/outside")
    assert "You are linked." in after.text
    stranger = lobby.world.client(lobby.acme["bob"])
    refused = await stranger.get("/outside/callback", params=back)
    assert refused.status_code == 303
    assert len(all_links()) == 1

    await browser.post(f"/outside/{server.id}/unlinking")
    assert all_links() == []
    assert guarded.token not in after.text


async def test_a_token_of_ones_own_is_kept_sealed(lobby: Lobby, outside: Start) -> None:
    server = await lobby.register(outside(Outsider(token="mine")), access=Access.TOKEN)
    browser = lobby.world.client(lobby.acme["alice"])

    form = await browser.get(f"/outside/{server.id}/token")
    bad = await browser.post(f"/outside/{server.id}/token", data={"token": "two\nlines"})
    kept = await browser.post(f"/outside/{server.id}/token", data={"token": "mine"})

    assert "sent to that server alone" in form.text
    assert (bad.status_code, kept.status_code) == (422, 303)
    (row,) = all_links()
    assert links.token_of(row) == "mine"
    assert b"mine" not in row.token_sealed
    connection = await opening.opened(server.tenant_id, server.id, lobby.acme["alice"].id)
    await connection.close()


@pytest.mark.requirement("SEC-68")
async def test_nobody_links_themselves_who_may_use_nothing_outside(
    lobby: Lobby, outside: Start
) -> None:
    server = await lobby.register(outside(Outsider(token="mine")), access=Access.TOKEN)
    browser = lobby.world.client(lobby.acme["axel"])
    base = f"/outside/{server.id}"

    refused = [
        await browser.get("/outside"),
        await browser.post(f"{base}/consent"),
        await browser.get(f"{base}/token"),
        await browser.post(f"{base}/token", data={"token": "mine"}),
    ]

    assert [each.status_code for each in refused] == [403] * 4
    assert (await browser.post(f"{base}/unlinking")).status_code == 303
    assert all_links() == []


@pytest.mark.requirement("SEC-68")
async def test_a_server_takes_what_it_asks_for_and_only_while_it_is_on(
    lobby: Lobby, outside: Start
) -> None:
    guarded = await lobby.register(outside(Guarded(token="x")), "first", Access.OAUTH)
    other = await lobby.register(outside(Outsider(token="mine")), "other", Access.TOKEN)
    browser = lobby.world.client(lobby.acme["alice"])
    given = {"token": "mine"}

    wrong = await browser.post(f"/outside/{guarded.id}/token", data=given)
    db.transact_now(_pause, lobby, other.id)
    off = await browser.post(f"/outside/{other.id}/token", data=given)

    assert (wrong.status_code, off.status_code) == (404, 404)
    assert all_links() == []


@pytest.mark.requirement("SEC-68")
async def test_whoever_asks_a_server_again_and_again_has_to_wait(
    lobby: Lobby, outside: Start
) -> None:
    server = await lobby.register(outside(Outsider(token="mine")), access=Access.TOKEN)
    browser = lobby.world.client(lobby.acme["alice"])

    answers = [await browser.post(f"/outside/{server.id}/consent") for _ in range(21)]

    assert [each.status_code for each in answers] == [303] * 20 + [429]


@pytest.mark.requirement("SEC-68")
async def test_a_server_that_sends_people_elsewhere_by_now_is_for_an_administrator(
    lobby: Lobby, outside: Start
) -> None:
    guarded: Guarded = outside(Guarded(token="nobody has it"))
    other: Guarded = outside(Guarded(token="nobody has it either"))
    server = await lobby.register(guarded, access=Access.OAUTH)
    db.transact_now(_bind, server.id, lobby, guarded.origin)
    guarded.changed["authorization_servers"] = [other.origin]
    browser = lobby.world.client(lobby.acme["alice"])

    home = await browser.post(f"/outside/{server.id}/consent", follow_redirects=True)

    assert "An administrator has to add it anew." in home.text


def _bind(work: Work, server_id: str, lobby: Lobby, issuer: str) -> None:
    server = servers.one(work.session, lobby.acme.id, server_id)
    server.client_id, server.client_issuer = "ours", issuer
    work.session.add(server)


def _pause(work: Work, lobby: Lobby, server_id: str) -> None:
    server = servers.one(work.session, lobby.acme.id, server_id)
    servers.set_enabled(work, lobby.ada, server, False)
