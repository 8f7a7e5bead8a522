"""Token exchange: part of one agent's authority for another of the same user (SEC-28)."""

from typing import Any

import pytest

from app.identity import agents
from app.identity import delegations as delegating
from app.identity.models import Agent, User
from app.identity.oauth import clients, operator
from app.identity.principal import Principal, Scope
from app.kernel import db
from app.kernel.db import Work
from tests.clock import Clock
from tests.identity.oauth import flow as f
from tests.identity.oauth.flow import ACCESS_TOKEN, EXCHANGE, OFFLINE, Flow

WIDE = [scope.value for scope in Scope]


class Child:
    """A hosted agent with a client of its own that Alice lets act."""

    def __init__(self, flow: Flow, code: str, scopes: list[str] = WIDE) -> None:
        ada = flow.world.person(flow.world.acme["ada"])
        self.agent, self.client_id, self.secret = db.transact_now(
            _child, ada, flow.world.acme["ada"], code
        )
        alice = flow.world.person(flow.alice)
        self.delegation_id = db.transact_now(_let, alice, self.agent.id, scopes)
        self.flow = flow

    async def exchange(self, subject: str, **more: Any) -> Any:
        form = {
            "grant_type": EXCHANGE,
            "subject_token": subject,
            "subject_token_type": ACCESS_TOKEN,
            "resource": self.flow.resource("v1"),
            **more,
        }
        return await self.flow.token(form, auth=(self.client_id, self.secret))


@pytest.mark.requirement("SEC-28")
async def test_a_sub_agent_acts_for_the_same_user_with_less(clock: Clock, flow: Flow) -> None:
    child = Child(flow, "child", ["catalog.read", "commands.invoke", "offline_access"])
    subject = await flow.access_token("mcp", scope=OFFLINE)
    clock.move(seconds=100)

    answered = await child.exchange(subject)

    assert answered.status_code == 200, answered.text
    body, parent = answered.json(), f.claims_of(subject)
    claims = f.claims_of(body["access_token"])
    assert body.keys() == {
        *("access_token", "issued_token_type", "token_type", "expires_in", "scope"),
    }
    assert body["issued_token_type"] == ACCESS_TOKEN
    assert claims["scope"] == "catalog.read commands.invoke"
    assert claims["act"] == {"sub": child.agent.id, "act": parent["act"]}
    assert (claims["sub"], claims["tid"]) == (parent["sub"], parent["tid"])
    assert (claims["client_id"], claims["dlg"]) == (child.client_id, child.delegation_id)
    assert (claims["exp"], body["expires_in"]) == (parent["exp"], 200)
    me = (await flow.me(body["access_token"])).json()
    assert me["agent"]["actors"] == [child.agent.id, parent["act"]["sub"]]
    assert db.read_now(f.actions).count("identity.token.exchange") == 1


@pytest.mark.requirement("SEC-28")
async def test_a_chain_is_three_long(flow: Flow) -> None:
    first, second, third = (Child(flow, f"child-{n}") for n in "abc")
    subject = await flow.access_token("v1")

    one = (await first.exchange(subject)).json()["access_token"]
    two = (await second.exchange(one)).json()["access_token"]
    three = await third.exchange(two)

    assert (await flow.me(two)).status_code == 200
    assert three.json()["error"] == "invalid_grant"


@pytest.mark.requirement("SEC-28", "SEC-31", "SEC-32")
async def test_a_parent_that_ends_takes_its_children_with_it(flow: Flow) -> None:
    child = Child(flow, "child")
    subject = await flow.access_token("v1")
    token = (await child.exchange(subject)).json()["access_token"]
    alice = flow.world.person(flow.alice)
    assert (await flow.me(token)).status_code == 200

    db.transact_now(_pause, alice, f.claims_of(subject)["dlg"])
    paused = await flow.me(token)
    db.transact_now(_revoke, alice, f.claims_of(subject)["dlg"])
    ended = await flow.me(token)
    again = await child.exchange(subject)

    assert (paused.status_code, ended.status_code) == (403, 401)
    assert again.json()["error"] == "invalid_grant"


@pytest.mark.requirement("SEC-28", "SEC-32")
async def test_a_parent_without_a_family_takes_its_children_with_it_too(flow: Flow) -> None:
    child = Child(flow, "child")
    subject = db.transact_now(operator.mint, "alice", "stock", "api")
    token = (await child.exchange(subject)).json()["access_token"]
    assert (await flow.me(token)).status_code == 200

    db.transact_now(_revoke, flow.world.person(flow.alice), f.claims_of(subject)["dlg"])

    assert (await flow.me(token)).status_code == 401


@pytest.mark.requirement("SEC-28")
async def test_both_agents_are_enabled_by_the_user(flow: Flow) -> None:
    child = Child(flow, "child")
    subject = await flow.access_token("v1")
    of_bob = await flow.access_token("v1", user=flow.world.acme["bob"])
    alice = flow.world.person(flow.alice)

    others = await child.exchange(of_bob)
    db.transact_now(_pause, alice, child.delegation_id)
    paused = await child.exchange(subject)
    db.transact_now(_revoke, alice, child.delegation_id)
    revoked = await child.exchange(subject)

    for refused in (others, paused, revoked):
        assert refused.json()["error"] == "invalid_grant"


REFUSED = (
    ({"actor_token": "x"}, "invalid_request"),
    ({"actor_token_type": ACCESS_TOKEN}, "invalid_request"),
    ({"subject_token_type": None}, "invalid_request"),
    ({"subject_token_type": "urn:ietf:params:oauth:token-type:id_token"}, "invalid_request"),
    (
        {"requested_token_type": "urn:ietf:params:oauth:token-type:refresh_token"},
        "invalid_request",
    ),
    ({"subject_token": "x"}, "invalid_grant"),
    ({"subject_token": None}, "invalid_request"),
    ({"scope": "audit.read"}, "invalid_scope"),
    ({"scope": "openid"}, "invalid_scope"),
    ({"audience": "x"}, "invalid_target"),
    ({"resource": "https://other.example/mcp"}, "invalid_target"),
    ({"resource": ["http://localhost:8000/v1", "http://localhost:8000/mcp"]}, "invalid_target"),
)


@pytest.mark.requirement("SEC-28", "SEC-17")
async def test_what_is_asked_otherwise_is_refused(
    flow: Flow,
) -> None:
    child = Child(flow, "child")
    subject = await flow.access_token("v1")

    for changed, error in REFUSED:
        answered = await child.exchange(subject, **changed)

        assert (answered.status_code, answered.json()["error"]) == (400, error), changed


@pytest.mark.requirement("SEC-28", "SEC-20")
async def test_the_actor_is_who_authenticated(flow: Flow) -> None:
    child = Child(flow, "child")
    subject = await flow.access_token("v1")
    form = {"grant_type": EXCHANGE, "subject_token": subject, "subject_token_type": ACCESS_TOKEN}

    unnamed = await flow.token({**form, "client_id": child.client_id})
    wrong = await flow.token(form, auth=(child.client_id, "wrong"))
    public_id, _ = flow.register(name="Public")
    public = await flow.token({**form, "client_id": public_id})

    for refused in (unnamed, wrong, public):
        assert (refused.status_code, refused.json()["error"]) == (401, "invalid_client")


@pytest.mark.requirement("SEC-28")
async def test_may_act_is_honoured(flow: Flow) -> None:
    child, other = Child(flow, "child"), Child(flow, "other")
    claims = f.claims_of(await flow.access_token("v1"))
    subject = f.signed({**claims, "may_act": {"sub": child.agent.id}})

    named = await child.exchange(subject)
    unnamed = await other.exchange(subject)

    assert named.status_code == 200
    assert unnamed.json()["error"] == "invalid_grant"


def _child(work: Work, actor: Principal, admin: User, code: str) -> tuple[Agent, str, str]:
    agent = agents.create(work, actor, admin, code=code, name=code.title())
    agents.publish(work, actor, agent)
    client, secret = clients.create_for(work, actor, agent)
    return agent, client.id, secret


def _let(work: Work, actor: Principal, agent_id: str, scopes: list[str]) -> str:
    agent = agents.one(work.session, actor.tenant_id, agent_id)
    return delegating.make_or_widen(work, actor, agent, scopes).id


def _pause(work: Work, actor: Any, delegation_id: str) -> None:
    delegating.pause(work, actor, delegating.own(work.session, actor, delegation_id), "test")


def _revoke(work: Work, actor: Any, delegation_id: str) -> None:
    delegating.revoke(work, actor, delegating.own(work.session, actor, delegation_id))
