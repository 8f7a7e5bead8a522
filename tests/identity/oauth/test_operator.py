"""`python -m app token`: one token for a live delegation, on record (SEC-87)."""

from typing import Any

import pytest

from app.identity.oauth import operator
from app.identity.oauth.operator import CannotMint
from app.kernel import db
from tests.identity.oauth import flow as f
from tests.identity.oauth.flow import Flow


@pytest.mark.requirement("SEC-87")
async def test_the_operator_mints_a_token_for_a_live_delegation(flow: Flow) -> None:
    token = db.transact_now(operator.mint, "acme/Alice", "stock", "api")
    before = db.read_now(f.delegations)

    claims = f.claims_of(token)
    me = (await flow.me(token)).json()

    assert claims["aud"] == flow.resource("v1")
    assert claims["exp"] - claims["iat"] == 300
    assert not {"fam", "sid"} & claims.keys()
    assert claims["scope"] == "commands.read"
    assert (me["login"], me["agent"]["code"]) == ("alice", "stock")
    assert db.read_now(f.delegations) == before
    assert db.read_now(f.actions).count("identity.token.mint") == 1


@pytest.mark.parametrize(
    ("user", "agent", "audience"),
    [
        ("alice", "stock", "admin"),
        ("nobody", "stock", "api"),
        ("nowhere/alice", "stock", "api"),
        ("globex/alice", "stock", "api"),
        ("alice", "nothing", "api"),
        ("alice", "expenses", "api"),
        ("dora", "stock", "api"),
    ],
)
@pytest.mark.requirement("SEC-87")
async def test_without_a_live_delegation_there_is_no_token(
    flow: Flow, user: str, agent: str, audience: str
) -> None:
    with pytest.raises(CannotMint):
        db.transact_now(operator.mint, user, agent, audience)

    assert "identity.token.mint" not in db.read_now(f.actions)


@pytest.mark.parametrize(
    ("audience", "door"), [("api", "v1"), ("mcp", "mcp"), ("a2a", "a2a"), ("aun", "aun")]
)
@pytest.mark.requirement("SEC-87")
async def test_each_audience_is_a_door(flow: Flow, audience: str, door: str) -> None:
    token: Any = db.transact_now(operator.mint, "alice", "stock", audience)

    assert f.claims_of(token)["aud"] == flow.resource(door)
