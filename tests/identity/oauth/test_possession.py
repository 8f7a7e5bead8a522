"""A client ends its own tokens and asks about them, and about nobody else's (RFC 7009, 7662)."""

from typing import Any

import pytest

from app.kernel import db
from tests.identity.oauth import flow as f
from tests.identity.oauth.flow import OFFLINE, Flow


async def revoke(flow: Flow, client_id: str, token: str, **more: Any) -> Any:
    form = {"client_id": client_id, "token": token, **more}
    return await flow.http.post("/oauth/revoke", data=form)


async def ask(flow: Flow, client_id: str, token: str) -> Any:
    form = {"client_id": client_id, "token": token}
    answered = await flow.http.post("/oauth/introspect", data=form)
    assert answered.status_code == 200
    return answered.json()


@pytest.mark.parametrize("which", ["access_token", "refresh_token"])
@pytest.mark.parametrize("hint", ["access_token", "refresh_token", "something"])
@pytest.mark.requirement("SEC-12", "SEC-27")
async def test_ending_either_token_ends_the_family(flow: Flow, which: str, hint: str) -> None:
    client_id, _ = flow.register()
    first = await flow.tokens(client_id, scope=OFFLINE, resource=flow.resource("v1"))

    answered = await revoke(flow, client_id, first[which], token_type_hint=hint)

    assert answered.status_code == 200
    assert (await flow.me(first["access_token"])).status_code == 401
    refreshed = await flow.refresh(client_id, first["refresh_token"])
    assert refreshed.json()["error"] == "invalid_grant"


@pytest.mark.requirement("SEC-12")
async def test_a_token_of_another_client_and_none_at_all_look_alike(flow: Flow) -> None:
    client_id, _ = flow.register()
    other_id, _ = flow.register(name="Other")
    first = await flow.tokens(client_id, scope=OFFLINE, resource=flow.resource("v1"))

    answers = [
        await revoke(flow, other_id, token)
        for token in (first["access_token"], first["refresh_token"], "x")
    ]
    told = [
        await ask(flow, other_id, token)
        for token in (first["access_token"], first["refresh_token"], "x")
    ]

    assert {(answer.status_code, answer.text) for answer in answers} == {(200, "{}")}
    assert told == [{"active": False}] * 3
    assert (await flow.me(first["access_token"])).status_code == 200


@pytest.mark.requirement("SEC-12", "SEC-32")
async def test_a_client_learns_whether_its_tokens_are_live(flow: Flow) -> None:
    client_id, _ = flow.register()
    first = await flow.tokens(client_id, scope=OFFLINE, resource=flow.resource("v1"))

    access = await ask(flow, client_id, first["access_token"])
    refresh = await ask(flow, client_id, first["refresh_token"])
    await flow.refresh(client_id, first["refresh_token"])
    used = await ask(flow, client_id, first["refresh_token"])
    flow.world.give(flow.alice, "auditor")
    stale = await ask(flow, client_id, first["access_token"])

    assert (access["active"], access["aud"]) == (True, flow.resource("v1"))
    assert (access["sub"], access["scope"]) == (flow.alice.id, OFFLINE)
    assert (refresh["active"], refresh["sub"]) == (True, flow.alice.id)
    assert used == stale == {"active": False}


@pytest.mark.requirement("SEC-12", "SEC-20")
async def test_both_want_a_client_and_a_token(flow: Flow) -> None:
    client_id, _ = flow.register()

    for path in ("/oauth/revoke", "/oauth/introspect"):
        nobody = await flow.http.post(path, data={"token": "x"})
        unknown = await flow.http.post(path, data={"token": "x", "client_id": "nobody"})
        empty = await flow.http.post(path, data={"client_id": client_id})
        query = await flow.http.post(f"{path}?token=x", data={"client_id": client_id})

        assert nobody.json()["error"] == unknown.json()["error"] == "invalid_client"
        assert empty.json()["error"] == query.json()["error"] == "invalid_request"
    assert "identity.token.revoke" not in db.read_now(f.actions)
