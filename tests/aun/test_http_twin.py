"""`POST /aun/rpc`: the method table over HTTP, for each of the three credentials."""

import json
from typing import Any

import pytest
from sqlmodel import select

from app.aun import queries
from app.identity.models import Delegation
from app.identity.oauth import operator
from app.identity.principal import Principal, Scope
from app.kernel import db
from app.kernel.db import Work
from tests.aun.serving import party
from tests.people import World

pytestmark = pytest.mark.anyio

PING = {"jsonrpc": "2.0", "id": 1, "method": "meta.ping", "params": {}}


async def _post(client: Any, body: Any, **headers: str) -> Any:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = {
        "Content-Type": "application/json",
        **{k.replace("_", "-"): v for k, v in headers.items()},
    }
    return await client.post("/aun/rpc", content=raw, headers=given)


async def test_a_person_an_outside_aid_and_nobody_else_call_methods(world: World) -> None:
    alice = world.acme["alice"]
    tina = party(0, world.acme.id, "tina")
    bearer = f"Bearer {tina.tokens['access_token']}"

    status = {**PING, "method": "meta.status"}
    of_person = (await _post(world.client(alice), status)).json()["result"]
    of_tina = (await _post(world.anonymous(), status, Authorization=bearer)).json()["result"]

    assert of_person["aid"] == world.user(alice).aid
    assert of_tina["aid"] == tina.aid
    assert (await _post(world.anonymous(), PING)).status_code == 401
    assert (await _post(world.anonymous(), PING, Authorization="Bearer x.y.z")).status_code == 401
    both = await _post(world.client(alice), PING, Authorization=bearer)
    assert both.status_code == 400
    assert both.json()["reason"] == "ambiguous_credentials"
    cross = await _post(world.client(alice), PING, Sec_Fetch_Site="cross-site")
    assert cross.status_code == 403


async def test_batches_notifications_and_bad_bodies(world: World) -> None:
    client = world.client(world.acme["alice"])

    batch = [PING, {**PING, "id": None}, {"id": 3, "method": 4}, {**PING, "id": 5, "method": "x.y"}]
    answers = (await _post(client, batch)).json()
    assert [(each["id"], each.get("error", {}).get("code")) for each in answers] == [
        (1, None),
        (3, -32600),
        (5, -32601),
    ]
    assert (await _post(client, {"method": "meta.ping"})).status_code == 204
    assert (await _post(client, [PING] * 21)).json()["error"]["code"] == -32600
    assert (await _post(client, [])).json()["error"]["code"] == -32600
    unreadable = await _post(client, b"{")
    assert (unreadable.status_code, unreadable.json()["error"]["code"]) == (200, -32700)
    unsafe = await _post(client, b'{"id":"q","method":"meta.ping","params":{"n":NaN}}')
    assert (unsafe.json()["id"], unsafe.json()["error"]["code"]) == ("q", -32602)
    form = await client.post("/aun/rpc", data={"a": "b"})
    assert form.status_code == 415


async def test_methods_of_a_socket_are_not_offered(world: World) -> None:
    client = world.client(world.acme["alice"])
    for method in ("auth.create_aid", "auth.connect", "auth.aid_login1", "storage.put"):
        answer = (await _post(client, {**PING, "method": method})).json()
        assert answer["error"]["code"] == -32601


async def test_an_agents_token_is_its_hosted_aid_and_needs_the_scope(world: World) -> None:
    alice, stock = world.acme["alice"], world.acme.agents["stock"]
    client = world.anonymous()
    for scopes, status in (((Scope.AUN_MESSAGE,), 200), ((Scope.CATALOG_READ,), 403)):
        db.transact_now(_delegate, world.person(alice), stock.id, scopes)
        token = db.transact_now(operator.mint, "acme/alice", stock.code, "aun")
        answer = await _post(
            client, {**PING, "method": "meta.status"}, Authorization=f"Bearer {token}"
        )
        assert answer.status_code == status, answer.text
        if status == 200:
            aid = db.read_now(queries.of_owner, world.acme.id, stock.id)
            assert aid is not None
            assert answer.json()["result"]["aid"] == aid.aid


def _delegate(work: Work, person: Principal, agent_id: str, scopes: tuple[Scope, ...]) -> None:
    query = select(Delegation).where(
        Delegation.user_id == person.user_id, Delegation.agent_id == agent_id
    )
    row = work.session.exec(query).one()
    row.scopes = list(scopes)
    work.session.add(row)
