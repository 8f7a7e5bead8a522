"""Access tokens: what they say, and everything that looks like one and is none (SEC-24, SEC-25)."""

import base64
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from joserfc.jwk import ECKey, OctKey, RSAKey

from app.identity import agents, tenants
from app.identity import delegations as delegating
from app.identity.models import Agent, Tenant
from app.identity.oauth import clients
from app.kernel import db
from app.kernel.db import Work
from app.kernel.prepared import Prepared
from tests.clock import Clock
from tests.identity.oauth import flow as f
from tests.identity.oauth.flow import OFFLINE, Flow

Forge = Callable[[str], str]


@pytest.mark.requirement("SEC-24", "SEC-3")
async def test_a_token_says_who_and_nothing_about_rights(clock: Clock, flow: Flow) -> None:
    client_id, _ = flow.register()
    answered = await flow.tokens(client_id, resource=flow.resource("v1"), scope=OFFLINE)
    (agent,) = db.read_now(f.agents)
    (family,) = db.read_now(f.families)

    token = answered["access_token"]
    claims = f.claims_of(token)

    assert f.header_of(token).keys() == {"typ", "alg", "kid"}
    assert (f.header_of(token)["typ"], f.header_of(token)["alg"]) == ("at+jwt", "ES256")
    assert claims.keys() == {
        *("iss", "aud", "sub", "tid", "act", "client_id", "scope", "dlg", "fam", "sid"),
        *("epo", "auth_time", "amr", "iat", "exp", "jti"),
    }
    assert claims["iss"] == flow.origin
    assert claims["aud"] == flow.resource("v1")
    assert (claims["sub"], claims["tid"]) == (flow.alice.id, flow.alice.tenant_id)
    assert claims["act"] == {"sub": agent.id}
    assert (claims["client_id"], claims["fam"]) == (client_id, family.id)
    assert claims["amr"] == ["pwd"]
    assert claims["exp"] - claims["iat"] == answered["expires_in"] == 300


@pytest.mark.requirement("SEC-25", "SEC-1", "SEC-29")
async def test_a_bearer_is_the_agent_at_its_door(flow: Flow) -> None:
    token = await flow.access_token()

    me = (await flow.me(token)).json()

    assert (me["login"], me["agent"]["name"]) == ("alice", "Desk")
    assert me["agent"]["scopes"] == ["catalog.read", "commands.read"]


@pytest.mark.requirement("SEC-25", "SEC-T43", "SEC-26")
@pytest.mark.requirement("SEC-P17", "SEC-P18", "SEC-P19", "SEC-P20", "SEC-P21", "SEC-P23")
async def test_everything_that_is_no_token_of_ours_is_401_with_one_body(flow: Flow) -> None:
    good = await flow.access_token()
    for_mcp = await flow.access_token("mcp")
    assert (await flow.me(good)).status_code == 200, "else this proves nothing"

    bodies = set()
    for name, forged in _forged(good, for_mcp).items():
        answered = await flow.me(forged)
        assert answered.status_code == 401, name
        bodies.add(answered.content)
        challenge = answered.headers["www-authenticate"]
        assert "/.well-known/oauth-protected-resource/v1" in challenge, name
        assert 'scope="catalog.read commands.read commands.invoke' in challenge, name

    assert len(bodies) == 1


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("authorization", "")],
        [("authorization", "Basic YTpi")],
        [("authorization", "Bearer")],
        [("authorization", "DPoP {token}")],
        [("authorization", "Bearer {token} {token}")],
        [("authorization", "Bearer {token}" + " " * 4096)],
    ],
    ids=["none", "empty", "basic", "no token", "dpop", "two in one", "long"],
)
@pytest.mark.requirement("SEC-25")
async def test_one_header_with_one_bearer(flow: Flow, headers: list[tuple[str, str]]) -> None:
    token = await flow.access_token()
    sent = [(name, value.format(token=token)) for name, value in headers]

    answered = await flow.http.get("/v1/me", headers=sent)

    assert answered.status_code == 401


@pytest.mark.requirement("SEC-25", "SEC-1")
async def test_tokens_elsewhere_do_not_count(flow: Flow) -> None:
    token = await flow.access_token()

    by_query = await flow.http.get("/v1/me", params={"access_token": token})
    by_cookie = await flow.http.get("/v1/me", headers={"Cookie": f"access_token={token}"})
    both = await flow.world.client(flow.alice).get(
        "/v1/me", headers={"Authorization": f"Bearer {token}"}
    )

    assert by_query.status_code == by_cookie.status_code == 401
    assert both.status_code == 400


@pytest.mark.requirement("SEC-25", "SEC-T43")
async def test_a_token_ends_with_its_time_and_five_seconds(clock: Clock, flow: Flow) -> None:
    token = await flow.access_token()

    clock.move(seconds=304)
    within = await flow.me(token)
    clock.move(seconds=1)
    after = await flow.me(token)
    clock.move(seconds=-305 - 5)
    early = await flow.me(token)
    clock.move(seconds=-1)
    too_early = await flow.me(token)

    assert [answer.status_code for answer in (within, after, early, too_early)] == [
        200,
        401,
        200,
        401,
    ]


@pytest.mark.requirement("SEC-25", "SEC-31")
async def test_a_paused_delegation_says_so(flow: Flow) -> None:
    token = await flow.access_token()
    alice = flow.world.person(flow.alice)

    db.transact_now(_pause, alice, f.claims_of(token)["dlg"])
    paused = await flow.me(token)
    forged = await flow.me(token + "x")
    db.transact_now(_resume, alice, f.claims_of(token)["dlg"])
    resumed = await flow.me(token)

    assert (paused.status_code, paused.json()["reason"]) == (403, "delegation_paused")
    assert forged.status_code == 401
    assert resumed.status_code == 200


@pytest.mark.parametrize(
    "end", ["delegation", "agent", "client", "tenant", "epoch"], ids=lambda name: name
)
@pytest.mark.requirement("SEC-25", "SEC-31", "SEC-32", "SEC-3")
async def test_what_stands_behind_a_token_is_read_at_every_request(flow: Flow, end: str) -> None:
    token = await flow.access_token()
    assert (await flow.me(token)).status_code == 200
    ada = flow.world.person(flow.world.acme["ada"])
    alice = flow.world.person(flow.alice)
    claims = f.claims_of(token)
    (agent,) = db.read_now(f.agents)

    match end:
        case "delegation":
            db.transact_now(_revoke, alice, claims["dlg"])
        case "agent":
            db.transact_now(_disable_agent, ada, agent)
        case "client":
            db.transact_now(_block_client, ada, claims["client_id"])
        case "tenant":
            db.transact_now(_suspend, flow.alice.tenant_id)
        case _:
            flow.world.give(flow.alice, "auditor")

    assert (await flow.me(token)).status_code == 401


@pytest.mark.requirement("SEC-25")
async def test_the_live_checks_are_one_select(flow: Flow, monkeypatch: pytest.MonkeyPatch) -> None:
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    token = await flow.access_token()
    statements: list[str] = []

    def note(_c: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        statements.append(statement)

    def note_prepared(prepared: Prepared, connection: Any, values: Any) -> Any:
        statements.append(prepared._sqlite)
        return run_with(prepared, connection, values)

    run_with = Prepared.run_with
    monkeypatch.setattr(Prepared, "run_with", note_prepared)
    event.listen(Engine, "before_cursor_execute", note)
    try:
        await flow.http.get("/v1/nothing-here", headers={"Authorization": f"Bearer {token}"})
        before = len(statements)
        await flow.me(token)
    finally:
        event.remove(Engine, "before_cursor_execute", note)

    of_token = [text for text in statements[before:] if "delegation" in text.lower()]
    assert len(of_token) == 1


def _forged(good: str, for_mcp: str) -> dict[str, str]:
    claims = f.claims_of(good)
    header = f.header_of(good)
    kid = header["kid"]
    now = claims["iat"]
    own = ECKey.generate_key("P-256")
    rsa = RSAKey.generate_key(2048)
    public = db.read_now(_public_pem, kid)

    def unsigned(head: dict[str, Any], signature: str = "") -> str:
        return f"{_b64(orjson.dumps(head))}.{_b64(orjson.dumps(claims))}.{signature}"

    def by(key: Any, algorithm: str, **more: Any) -> str:
        head = {"typ": "at+jwt", "alg": algorithm, "kid": kid, **more}
        return f.compact(head, orjson.dumps(claims), key, algorithm)

    without = {name: f.signed({k: v for k, v in claims.items() if k != name}) for name in claims
               if name not in {"fam", "sid"}}  # fmt: skip
    changed: dict[str, dict[str, Any]] = {
        "other audience": {"aud": "http://localhost:8000/mcp"},
        "audience list": {"aud": [claims["aud"]]},
        "other issuer": {"iss": "http://localhost:8001"},
        "other tenant": {"tid": "01ARZ3NDEKTSV4RRFFQ69G5FAV"},
        "other user": {"sub": "01ARZ3NDEKTSV4RRFFQ69G5FAV"},
        "other agent": {"act": {"sub": "01ARZ3NDEKTSV4RRFFQ69G5FAV"}},
        "other client": {"client_id": "other"},
        "other family": {"fam": "01ARZ3NDEKTSV4RRFFQ69G5FAV"},
        "no agent": {"act": None},
        "agent with more": {"act": {**claims["act"], "admin": True}},
        "expired by 5 s": {"iat": now - 305, "exp": now - 5},
        "from the future": {"iat": now + 60, "exp": now + 300},
        "too long": {"exp": now + 301},
        "never lived": {"exp": now},
        "text for a time": {"exp": str(claims["exp"])},
        "half a second": {"exp": claims["exp"] - 0.5},
        "bound to a key": {"cnf": {"jkt": "x"}},
        "old epoch": {"epo": claims["epo"] - 1},
        "truth for an epoch": {"epo": True},
    }
    deep: dict[str, Any] = claims["act"]
    for _ in range(4):
        deep = {**claims["act"], "act": deep}
    return {
        "for another door": for_mcp,
        "garbage": "x",
        "two parts": good.rpartition(".")[0],
        "five parts": f"{good}.a.b",
        "bad signature": good[:-4] + ("AAAA" if not good.endswith("AAAA") else "BBBB"),
        "no signature": unsigned(header),
        "alg none": unsigned({"typ": "at+jwt", "alg": "none", "kid": kid}),
        "no kid": f.signed(claims, kid=None),
        "unknown kid": f.signed(claims, kid="x"),
        "path in kid": f.signed(claims, kid="../../../../dev/null"),
        "kid is no text": unsigned({**header, "kid": [kid]}, good.rpartition(".")[2]),
        "no typ": f.signed(claims, typ=None),
        "plain JWT": f.signed(claims, typ="JWT"),
        "application/at+jwt": f.signed(claims, typ="application/at+jwt"),
        "an ID token": f.signed({**claims, "aud": claims["client_id"]}, typ="JWT"),
        "an AUN token": f.signed({**claims, "aud": "aun"}, typ="aun+jwt"),
        "an ID-JAG": f.signed(claims, typ="oauth-id-jag+jwt"),
        "jwk": by(own, "ES256", jwk=own.as_dict(private=False)),
        "jku": f.signed(claims, jku="http://evil.example/jwks"),
        "crit": f.signed(claims, crit=["exp"], exp=1),
        "unknown crit": f.signed(claims, crit=["urn:x"]),
        "b64": f.signed(claims, b64=True),
        "own key": by(own, "ES256"),
        "an unknown algorithm": unsigned({**header, "alg": "XX256"}, good.rpartition(".")[2]),
        "RS256": by(rsa, "RS256"),
        "HS256 with our public key": by(OctKey.import_key(public), "HS256"),
        "a huge header": f.signed(claims, x="y" * 600),
        "8 KB": "a" * 8_000,
        "not ASCII": good + "é".encode().decode("latin-1"),
        "a key twice": _resigned(b'{"iss":"a",' + orjson.dumps(claims)[1:]),
        "no object": _resigned(b"[]"),
        "no JSON": _resigned(b"{"),
        "a chain of five": f.signed({**claims, "act": deep}),
        **{f"without {name}": token for name, token in without.items()},
        **{name: f.signed({**claims, **change}) for name, change in changed.items()},
    }


def _resigned(payload: bytes) -> str:
    return db.transact_now(_sign_bytes, payload)


def _sign_bytes(work: Work, payload: bytes) -> str:
    from app.identity import signing_keys
    from app.identity.models import KeyUse

    return signing_keys.sign(work.session, KeyUse.ACCESS_TOKEN, payload, "at+jwt")


def _public_pem(session: Any, kid: str) -> bytes:
    from app.identity.models import SigningKey

    row = session.get_one(SigningKey, kid)
    return bytes(orjson.dumps(row.public_jwk))


def _b64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _pause(work: Work, actor: Any, delegation_id: str) -> None:
    delegating.pause(work, actor, delegating.own(work.session, actor, delegation_id), "test")


def _resume(work: Work, actor: Any, delegation_id: str) -> None:
    delegating.resume(work, actor, delegating.own(work.session, actor, delegation_id))


def _revoke(work: Work, actor: Any, delegation_id: str) -> None:
    delegating.revoke(work, actor, delegating.own(work.session, actor, delegation_id))


def _disable_agent(work: Work, actor: Any, agent: Agent) -> None:
    agents.disable(work, actor, agents.one(work.session, agent.tenant_id, agent.id))


def _block_client(work: Work, actor: Any, client_id: str) -> None:
    clients.block(work, actor, clients.own(work.session, actor.tenant_id, client_id))


def _suspend(work: Work, tenant_id: str) -> None:
    tenants.suspend(work, work.session.get_one(Tenant, tenant_id))
