"""What the door refuses before the SDK reads a byte, in which order, and how it says so."""

import json
from typing import Any

import httpx2
import pytest

from app.identity import cookies, delegations
from app.identity.oauth import operator
from app.identity.principal import Scope
from app.kernel import db, rates, settings
from app.kernel.rates import DEFAULTS, Rates
from tests import edge_server
from tests.mcp import connecting
from tests.mcp.connecting import NEW, OLD, Mcp

CREATE, LIST = "expense.report.create", "expense.report.list"
TRIP = {"title": "October, Shanghai", "period": "2026-10"}
ELSEWHERE = "http://evil.example"


@pytest.fixture
def token(mcp: Mcp) -> str:
    """An agent that may do everything for alice."""
    acme = mcp.world.acme
    return connecting.token(acme, acme["alice"])


async def raw(mcp: Mcp, body: bytes, token: str = "", **headers: str) -> httpx2.Response:
    sent = {
        "Content-Type": "application/json",
        "Mcp-Protocol-Version": NEW,
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    async with mcp.http(token) as http:
        return await http.post(mcp.url, content=body, headers=sent)


@pytest.mark.requirement("SEC-58", "SEC-66")
async def test_without_a_token_everything_is_401_and_says_where_to_get_one(mcp: Mcp) -> None:
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    nobody = await raw(mcp, json.dumps(asked).encode())
    answers = [nobody]
    async with mcp.http() as http:
        answers += [await http.request(method, mcp.url) for method in ("GET", "DELETE", "POST")]

    for answer in answers:
        assert answer.status_code == 401
        challenge = answer.headers["www-authenticate"]
        assert challenge.startswith("Bearer resource_metadata=")
        assert "/.well-known/oauth-protected-resource/mcp" in challenge
        assert 'scope="catalog.read commands.read commands.invoke"' in challenge
    assert nobody.json()["reason"] == "invalid_token"


@pytest.mark.requirement("SEC-66", "SEC-58")
async def test_a_token_for_another_door_opens_nothing(mcp: Mcp, token: str) -> None:
    world = mcp.world
    elsewhere = db.transact_now(operator.mint, "acme/alice", "expenses", "api")

    refused = await mcp.post(elsewhere, "tools/list")
    here = await mcp.post(token, "tools/list")
    other = await world.anonymous().get(
        "/v1/commands", headers={"Authorization": f"Bearer {token}"}
    )

    assert (refused.status_code, here.status_code, other.status_code) == (401, 200, 401)


@pytest.mark.requirement("SEC-58")
async def test_a_cookie_is_a_person_and_people_do_not_come_in_here(mcp: Mcp, token: str) -> None:
    browser = mcp.world.client(mcp.world.acme["alice"])
    cookie = f"{cookies.session_name()}={browser.cookies[cookies.session_name()]}"

    both = await raw(mcp, b"{}", token, Cookie=cookie)
    alone = await raw(mcp, b"{}", Cookie=cookie)

    assert (both.status_code, both.json()["reason"]) == (400, "ambiguous_credentials")
    assert alone.status_code == 401


@pytest.mark.requirement("SEC-58", "SEC-66", "SEC-P1")
async def test_pages_of_other_origins_and_other_names_of_this_host_are_refused(
    mcp: Mcp, token: str
) -> None:
    own = settings.current().origin
    for origin in (ELSEWHERE, "null", own.replace("8000", "8001"), "http://127.0.0.1:8000"):
        refused = await mcp.post(token, "tools/list", Origin=origin)
        assert (refused.status_code, refused.json()["reason"]) == (403, "cross_site"), origin
    assert (await mcp.post(token, "tools/list", Origin=own)).status_code == 200
    for host in ("evil.example", "evil.example:8000", "localhost:9"):
        assert (await mcp.post(token, "tools/list", Host=host)).status_code == 421, host


@pytest.mark.requirement("SEC-58")
async def test_what_is_refused_first_is_said_first(mcp: Mcp, token: str) -> None:
    """Origin, cookie, token, body, rates, scope: each hides what comes after it."""
    acme = mcp.world.acme
    poor = connecting.token(acme, acme["bob"], (Scope.COMMANDS_READ,), agent="expenses")
    bad = b'{"a":1,"a":2}'

    first = await raw(mcp, bad, "x.y.z", Origin=ELSEWHERE, Cookie="__Host-sid=x")
    second = await raw(mcp, bad, "x.y.z", Cookie="__Host-sid=x")
    third = await raw(mcp, bad, "x.y.z")
    fourth = await raw(mcp, bad, poor)
    last = await mcp.post(poor, "tools/list")

    statuses = [each.status_code for each in (first, second, third, fourth, last)]
    assert statuses == [403, 400, 401, 400, 403]
    assert fourth.json()["error"]["code"] == -32700
    assert last.json()["reason"] == "insufficient_scope"


@pytest.mark.requirement("SEC-48", "SEC-58", "SEC-66")
@pytest.mark.parametrize(
    "arguments",
    [
        b'{"title":1,"title":2}',
        b'{"title":NaN}',
        b'{"title":1e999}',
        b'{"title":9007199254740992}',
        b'{"title":"\\ud800"}',
        b'{"title":"\\u0000"}',
        b'{"title":"\xff"}',
        b"[" * 100 + b"]" * 100,
        b"{",
    ],
)
async def test_json_that_breaks_digests_never_reaches_the_sdk(
    mcp: Mcp, token: str, arguments: bytes
) -> None:
    asked = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":'

    refused = await raw(mcp, asked + arguments + b"}}", token)

    assert refused.status_code == 400
    told = refused.json()
    assert (told["error"]["code"], told["id"]) == (-32700, None)
    assert told["error"]["data"]["reason"] == "invalid_json"


@pytest.mark.requirement("SEC-58")
async def test_a_batch_and_a_large_body_are_refused(mcp: Mcp, token: str) -> None:
    one = {"jsonrpc": "2.0", "id": 1, "method": "ping"}

    batch = await raw(mcp, json.dumps([one, one]).encode(), token)
    text = await raw(mcp, b'"ping"', token)
    large = await raw(mcp, b'{"x":"' + b"x" * (1 << 20) + b'"}', token)

    assert (batch.status_code, batch.json()["error"]["code"]) == (400, -32600)
    assert text.json()["error"]["code"] == -32600
    assert large.status_code == 413


@pytest.mark.requirement("SEC-58", "SEC-66")
@pytest.mark.parametrize("revision", [NEW, OLD])
async def test_what_is_no_message_is_said_plainly(mcp: Mcp, token: str, revision: str) -> None:
    fit = {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {}}
    changes: tuple[dict[str, Any], ...] = (
        {"jsonrpc": "1.0"},
        {"jsonrpc": None},
        {"id": None},
        {"id": True},
        {"id": 1.5},
        {"id": [1]},
        {"method": 7},
        {"method": None},
        {"params": [1]},
        {"params": "x"},
    )
    others: tuple[dict[str, Any], ...] = (
        {},
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0", "id": 1, "result": [1]},
        {"jsonrpc": "2.0", "id": None, "result": {}},
        {"jsonrpc": "2.0", "id": 1, "error": "no"},
        {"jsonrpc": "2.0", "error": {"code": 1, "message": "no"}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": True, "message": "no"}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": None}},
    )
    for sent in (*({**fit, **change} for change in changes), *others):
        refused = await raw(mcp, json.dumps(sent).encode(), token, Mcp_Protocol_Version=revision)
        assert_no_message(refused)


def assert_no_message(answer: httpx2.Response) -> None:
    error = {"code": -32600, "message": "The body is no JSON-RPC message"}
    assert (answer.status_code, answer.json()) == (
        400,
        {"jsonrpc": "2.0", "id": None, "error": error},
    )


@pytest.mark.requirement("SEC-58")
async def test_each_scope_reaches_as_far_as_it_says(mcp: Mcp) -> None:
    acme = mcp.world.acme
    create = {"name": CREATE, "arguments": TRIP}
    read = {"name": LIST, "arguments": {}}
    for scope, expected in (
        (Scope.CATALOG_READ, (200, 403, 403)),
        (Scope.COMMANDS_READ, (403, 200, 403)),
        (Scope.COMMANDS_INVOKE, (403, 200, 200)),
    ):
        token = connecting.token(acme, acme["alice"], (scope,))
        answers = (
            await mcp.post(token, "tools/list"),
            await mcp.post(token, "tools/call", read),
            await mcp.post(token, "tools/call", create),
        )
        assert tuple(each.status_code for each in answers) == expected, scope
        for each in answers:
            if each.status_code == 403:
                assert 'error="insufficient_scope"' in each.headers["www-authenticate"]
                assert "commands.invoke" in each.headers["www-authenticate"]


@pytest.mark.requirement("SEC-58", "SEC-62")
async def test_too_many_calls_wait_and_too_many_writes_pause_the_agent(
    mcp: Mcp, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Rates({**DEFAULTS, "call": "4/minute", "write": "2/minute", "session": "3/minute"})
    monkeypatch.setattr(rates, "of_process", lambda: counted)
    create, read = {"name": CREATE, "arguments": TRIP}, {"name": LIST, "arguments": {}}

    lists = [await mcp.post(token, "tools/list") for _ in range(4)]
    reads = [await mcp.post(token, "tools/call", read) for _ in range(2)]
    writes = [await mcp.post(token, "tools/call", create) for _ in range(2)]
    late = await mcp.post(token, "tools/call", read)

    assert [each.status_code for each in lists] == [200, 200, 200, 429]
    assert [each.status_code for each in (*reads, *writes, late)] == [200, 200, 200, 200, 429]
    assert int(late.headers["retry-after"]) > 0
    counted.forget("call", mcp.world.acme.id, _delegation(mcp))
    paused = await mcp.post(token, "tools/call", create)
    after = await mcp.post(token, "tools/call", read)
    for each in (paused, after):
        assert (each.status_code, each.json()["reason"]) == (403, "delegation_paused")


def _delegation(mcp: Mcp) -> str:
    acme = mcp.world.acme
    agent = acme.agents["expenses"].id
    found = db.read_now(delegations.live, acme.id, acme["alice"].id, agent)
    assert found is not None
    return found.id


@pytest.mark.requirement("SEC-58")
async def test_listed_pages_may_read_answers_and_nobody_else(
    mcp: Mcp, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = "https://client.example"
    given = settings.current().model_copy(update={"cors_origins": [page]})
    monkeypatch.setattr(settings, "current", lambda: given)
    async with mcp.http() as http:
        asked = {"Access-Control-Request-Method": "POST"}
        allowed = await http.options(mcp.url, headers={"Origin": page, **asked})
        refused = await http.options(mcp.url, headers={"Origin": ELSEWHERE, **asked})
        plain = await http.options(mcp.url)
        other = await http.put(mcp.url)

    assert allowed.status_code == 204
    assert allowed.headers["access-control-allow-origin"] == page
    assert "Mcp-Session-Id" in allowed.headers["access-control-allow-headers"]
    assert "access-control-allow-credentials" not in allowed.headers
    assert (refused.status_code, "access-control-allow-origin" in refused.headers) == (403, False)
    assert (plain.status_code, other.status_code) == (405, 405)


@pytest.mark.requirement("SEC-58", "SEC-P6")
async def test_a_client_that_goes_away_ends_nothing(served: Mcp) -> None:
    acme = served.world.acme
    token = connecting.token(acme, acme["alice"])
    head = f"Host: localhost:8000\r\nAuthorization: Bearer {token}\r\nContent-Length: 100\r\n"
    for _ in range(3):
        with edge_server.peer(served.port or 0) as connection:
            connection.sendall(f"POST /mcp HTTP/1.1\r\n{head}\r\n{{".encode())

    assert (await served.post(token, "tools/list")).status_code == 200
