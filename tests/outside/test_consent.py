"""A person links themselves to a server: asked once, bound to their session, renewed, ended."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from sqlmodel import select

from app.identity import users
from app.identity.principal import Principal
from app.kernel import db
from app.kernel.clock import now
from app.kernel.db import Work
from app.outside import consent, oauth, opening, servers
from app.outside.models import Access, McpLink, McpLinkRequest, McpServer
from app.outside.results import Lost
from tests.clock import Clock
from tests.outside.issuer import Guarded
from tests.outside.lobby import Lobby
from tests.people import World

Start = Callable[..., Any]


@pytest.fixture
def lobby(world: World) -> Lobby:
    return Lobby(world)


async def registered(lobby: Lobby, outside: Start, **changed: Any) -> tuple[Guarded, McpServer]:
    guarded: Guarded = outside(Guarded(token="nobody has it", changed=changed))
    return guarded, await lobby.register(guarded, access=Access.OAUTH)


async def linked(lobby: Lobby, guarded: Guarded, server: McpServer, who: Principal) -> None:
    back = guarded.consent(await consent.begin(who, server.id))
    await consent.complete(who, **back)


def all_links() -> list[McpLink]:
    return list(db.read_now(lambda session: session.exec(select(McpLink)).all()))


async def rule(attempt: Any) -> str:
    with pytest.raises(Lost) as lost:
        await attempt
    return lost.value.rule


@pytest.mark.requirement("RUN-96", "SEC-68")
async def test_a_person_links_themselves_and_only_themselves(lobby: Lobby, outside: Start) -> None:
    guarded, server = await registered(lobby, outside)
    alice = lobby.world.person(lobby.acme["alice"])
    assert await rule(opening.opened(server.tenant_id, server.id, alice.user_id)) == "link_needed"

    await linked(lobby, guarded, server, alice)

    connection = await opening.opened(server.tenant_id, server.id, alice.user_id)
    assert (await connection.call("forecast", {"city": "X"})).outcome == "done"
    await connection.close()
    assert guarded.tokens[-1] == f"Bearer {guarded.token}"
    (row,) = all_links()
    assert guarded.token.encode() not in row.token_sealed
    bob = lobby.acme["bob"].id
    assert await rule(opening.opened(server.tenant_id, server.id, bob)) == "link_needed"
    (sent,) = guarded.asked
    assert sent["resource"] == server.url
    assert [each.user_id for each in lobby.entries("outside.link.make")] == [alice.user_id]


@pytest.mark.requirement("SEC-68")
async def test_a_token_that_was_taken_back_is_renewed_or_asked_for_anew(
    lobby: Lobby, outside: Start
) -> None:
    guarded, server = await registered(lobby, outside)
    alice = lobby.world.person(lobby.acme["alice"])
    await linked(lobby, guarded, server, alice)
    where = (server.tenant_id, server.id, alice.user_id)

    guarded.token = "another"
    assert await rule(opening.opened(*where)) == "unauthorized"
    connection = await opening.opened(*where)
    await connection.close()
    guarded.token = "another"
    guarded.refreshes.clear()
    assert await rule(opening.opened(*where)) == "unauthorized"
    assert await rule(opening.opened(*where)) == "link_needed"

    assert [each.is_broken for each in all_links()] == [True]


@pytest.mark.requirement("SEC-68")
async def test_an_answer_counts_once_for_the_session_that_asked(
    clock: Clock, lobby: Lobby, outside: Start
) -> None:
    guarded, server = await registered(lobby, outside)
    alice = lobby.world.person(lobby.acme["alice"])
    elsewhere = lobby.world.person(lobby.acme["alice"])
    bob = lobby.world.person(lobby.acme["bob"])
    back = guarded.consent(await consent.begin(alice, server.id))

    assert await rule(consent.complete(bob, **back)) == "oauth_not_asked"
    assert await rule(consent.complete(elsewhere, **back)) == "oauth_not_asked"
    await consent.complete(alice, **back)
    assert await rule(consent.complete(alice, **back)) == "oauth_not_asked"

    late = guarded.consent(await consent.begin(alice, server.id))
    clock.move(minutes=11)
    assert await rule(consent.complete(alice, **late)) == "oauth_not_asked"


@pytest.mark.requirement("SEC-68")
async def test_an_answer_of_another_issuer_is_none(lobby: Lobby, outside: Start) -> None:
    guarded, server = await registered(lobby, outside)
    alice = lobby.world.person(lobby.acme["alice"])
    for iss in ("https://evil.example", None):
        back = guarded.consent(await consent.begin(alice, server.id))
        answer = consent.complete(alice, back["state"], back["code"], iss)
        assert await rule(answer) == "oauth_issuer"

    assert all_links() == []
    assert guarded.asked == []


@pytest.mark.requirement("SEC-68")
@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"issuer": "https://other.example"}, "oauth_issuer"),
        ({"resource": "https://other.example/mcp"}, "oauth_resource"),
        ({"code_challenge_methods_supported": ["plain"]}, "oauth_no_pkce"),
        ({"authorization_endpoint": "javascript:alert(1)"}, "oauth_endpoint"),
        ({"authorization_endpoint": "file:///bin/sh"}, "oauth_endpoint"),
        ({"token_endpoint": "http://169.254.169.254/token"}, "oauth_endpoint"),
        ({"registration_endpoint": None}, "oauth_no_registration"),
        ({"authorization_servers": ["http://127.0.0.1:1"]}, "oauth_issuer"),
        ({"authorization_servers": ["https://[x/"]}, "oauth_documents"),
        ({"authorization_servers": "https://a.example"}, "oauth_documents"),
        ({"resource": "https://[x/"}, "oauth_documents"),
        ({"scopes_supported": 3}, "oauth_documents"),
        ({"code_challenge_methods_supported": 5}, "oauth_documents"),
        ({"token_endpoint_auth_methods_supported": [7]}, "oauth_documents"),
        ({"token_endpoint": "https://[x/"}, "oauth_documents"),
        ({"token_endpoint": ["x"]}, "oauth_documents"),
    ],
)
async def test_documents_that_lie_lead_nowhere(
    lobby: Lobby, outside: Start, changed: dict[str, Any], says: str
) -> None:
    _, server = await registered(lobby, outside, **changed)
    alice = lobby.world.person(lobby.acme["alice"])

    assert await rule(consent.begin(alice, server.id)) == says

    requests = db.read_now(lambda session: session.exec(select(McpLinkRequest)).all())
    assert requests == []


@pytest.mark.requirement("SEC-68")
async def test_a_token_is_renewed_when_its_time_is_over(
    clock: Clock, lobby: Lobby, outside: Start
) -> None:
    guarded, server = await registered(lobby, outside)
    alice = lobby.world.person(lobby.acme["alice"])
    await linked(lobby, guarded, server, alice)
    first = guarded.token

    clock.move(hours=2)
    connection = await opening.opened(server.tenant_id, server.id, alice.user_id)
    await connection.close()

    assert guarded.token != first
    assert guarded.tokens[-1] == f"Bearer {guarded.token}"
    assert [each["grant_type"] for each in guarded.asked] == [
        "authorization_code",
        "refresh_token",
    ]

    guarded.refreshes.clear()
    clock.move(hours=2)
    assert await rule(opening.opened(server.tenant_id, server.id, alice.user_id)) == "link_needed"
    assert [each.is_broken for each in all_links()] == [True]


@pytest.mark.requirement("SEC-68")
async def test_nobody_reaches_a_server_for_a_user_who_was_deactivated(
    lobby: Lobby, outside: Start
) -> None:
    guarded, server = await registered(lobby, outside)
    alice = lobby.world.person(lobby.acme["alice"])
    await linked(lobby, guarded, server, alice)
    db.transact_now(_deactivate, lobby, alice.user_id)

    where = (server.tenant_id, server.id, alice.user_id)
    assert await rule(opening.opened(*where)) == "user_gone"


def _deactivate(work: Work, lobby: Lobby, user_id: str) -> None:
    user = users.one(work.session, lobby.acme.id, user_id)
    users.disable(work, lobby.ada, user)


def test_a_resource_covers_what_is_below_it_and_nothing_else() -> None:
    url = "https://a.example/mcp/x"
    assert all(
        oauth._covers(each, url) for each in (url, "https://a.example/mcp", "https://a.example/")
    )
    assert not any(
        oauth._covers(each, url)
        for each in ("https://a.example/mc", "http://a.example/mcp", "https://a.example.evil/mcp")
    )


@pytest.mark.requirement("SEC-68")
async def test_what_a_person_was_given_is_renewed_where_it_was_given_and_nowhere_else(
    clock: Clock, lobby: Lobby, outside: Start
) -> None:
    guarded, server = await registered(lobby, outside)
    other: Guarded = outside(Guarded(token="nobody has it either"))
    alice = lobby.world.person(lobby.acme["alice"])
    await linked(lobby, guarded, server, alice)

    guarded.changed["authorization_servers"] = [other.origin]
    await consent.begin(lobby.world.person(lobby.acme["bob"]), server.id)
    clock.move(hours=2)

    assert await rule(opening.opened(server.tenant_id, server.id, alice.user_id)) == "link_needed"
    assert other.asked == []
    assert [each["grant_type"] for each in guarded.asked] == ["authorization_code"]


@pytest.mark.requirement("SEC-68")
async def test_an_answer_is_exchanged_where_it_was_asked_for(lobby: Lobby, outside: Start) -> None:
    guarded, server = await registered(lobby, outside)
    other: Guarded = outside(Guarded(token="nobody has it either"))
    alice = lobby.world.person(lobby.acme["alice"])
    back = guarded.consent(await consent.begin(alice, server.id))

    guarded.changed["authorization_servers"] = [other.origin]
    await consent.begin(lobby.world.person(lobby.acme["bob"]), server.id)
    await consent.complete(alice, **back)

    assert other.asked == []
    (row,) = all_links()
    assert row.oauth is not None
    assert row.oauth["token_endpoint"] == f"{guarded.origin}/token"


@dataclass
class Secretive(Guarded):
    """An issuer that gives this deployment a secret."""

    def post(self, path: str, body: bytes) -> tuple[int, dict[str, Any]]:
        """The same, with a secret."""
        status, answer = super().post(path, body)
        return status, {**answer, **({"client_secret": "known"} if path == "/register" else {})}


@pytest.mark.requirement("SEC-68")
async def test_no_issuer_learns_the_secret_of_another(lobby: Lobby, outside: Start) -> None:
    posted = {"token_endpoint_auth_methods_supported": ["none", "client_secret_post"]}
    first: Guarded = outside(Secretive(token="nobody", changed=dict(posted)))
    other: Guarded = outside(Guarded(token="nobody", changed=dict(posted)))
    server = await lobby.register(first, access=Access.OAUTH)
    alice = lobby.world.person(lobby.acme["alice"])
    await linked(lobby, first, server, alice)
    assert first.asked[0]["client_secret"] == "known"

    first.changed["authorization_servers"] = [other.origin]
    await linked(lobby, other, server, alice)

    assert ["client_secret" in each for each in other.asked] == [False]
    assert lobby.server(server.id).client_secret_sealed is None
    changes = [each.changes for each in lobby.entries("outside.server.change")]
    assert len(changes) == 2, "each other client is on record"


@pytest.mark.requirement("SEC-68")
async def test_the_client_of_an_administrator_is_the_first_issuers(
    lobby: Lobby, outside: Start
) -> None:
    guarded: Guarded = outside(Guarded(token="nobody has it"))
    other: Guarded = outside(Guarded(token="nobody has it either"))
    alice = lobby.world.person(lobby.acme["alice"])

    def add(work: Work) -> str:
        made = servers.add(
            work,
            lobby.ada,
            name="weather",
            url=guarded.url,
            access=Access.OAUTH,
            client_id="ours",
            client_secret="secret",
        )
        return made.id

    server = lobby.server(await db.transaction(add))
    assert "client_id=ours" in await consent.begin(alice, server.id)

    guarded.changed["authorization_servers"] = [other.origin]

    assert await rule(consent.begin(alice, server.id)) == "oauth_other_issuer"
    assert lobby.server(server.id).client_issuer == guarded.origin


@pytest.mark.requirement("SEC-68")
async def test_two_who_link_first_at_once_are_of_one_client(lobby: Lobby, outside: Start) -> None:
    _, server = await registered(lobby, outside)
    people = [lobby.world.person(lobby.acme[name]) for name in ("alice", "bob")]

    asked = await asyncio.gather(*(consent.begin(each, server.id) for each in people))

    clients = {parse_qs(urlsplit(address).query)["client_id"][0] for address in asked}
    assert clients == {lobby.server(server.id).client_id}


@pytest.mark.requirement("SEC-68")
async def test_only_a_server_that_asks_for_consent_is_asked(lobby: Lobby, outside: Start) -> None:
    guarded: Guarded = outside(Guarded(token="nobody has it"))
    server = await lobby.register(guarded, access=Access.TOKEN)
    alice = lobby.world.person(lobby.acme["alice"])

    assert await rule(consent.begin(alice, server.id)) == "oauth_not_asked"


@pytest.mark.requirement("SEC-68")
@pytest.mark.parametrize("lives_s", [10**15, 1e300])
async def test_no_token_lives_longer_than_time_can_be_told(
    lobby: Lobby, outside: Start, lives_s: int
) -> None:
    guarded: Guarded = outside(Guarded(token="nobody has it", lives_s=lives_s))
    server = await lobby.register(guarded, access=Access.OAUTH)
    alice = lobby.world.person(lobby.acme["alice"])

    await linked(lobby, guarded, server, alice)

    (row,) = all_links()
    assert row.expires_at is not None
    assert row.expires_at < now() + timedelta(days=367)
