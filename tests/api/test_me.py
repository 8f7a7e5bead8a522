"""`/v1/me`: whom a credential makes the caller."""

import pytest

from app.identity.oauth import operator
from app.identity.principal import Scope
from app.kernel import db
from tests.people import World

pytestmark = pytest.mark.requirement("SEC-1", "SEC-7")


async def test_a_person_is_told_who_they_are_and_what_they_may(world: World) -> None:
    async with world.client(world.acme["ada"]) as browser:
        answer = await browser.get("/v1/me")

    told = answer.json()
    assert answer.status_code == 200
    assert (told["login"], told["tenant"]["name"]) == ("ada", "Acme 贸易")
    assert told["agent"] is None
    assert "identity.user.manage" in told["permissions"]
    assert answer.headers["cache-control"] == "no-store"


async def test_an_agent_is_told_for_whom_it_acts_and_has_the_rights_of_that_person(
    world: World,
) -> None:
    token = db.transact_now(operator.mint, "acme/alice", "stock", "api")
    async with world.client(world.acme["alice"]) as browser:
        person = (await browser.get("/v1/me")).json()

    async with world.anonymous() as program:
        answer = await program.get("/v1/me", headers={"Authorization": f"Bearer {token}"})

    told = answer.json()
    assert answer.status_code == 200, answer.text
    assert (told["login"], told["agent"]["code"]) == ("alice", "stock")
    assert told["agent"]["scopes"] == [Scope.COMMANDS_READ]
    assert told["permissions"] == person["permissions"]


async def test_nobody_is_told_how_to_become_somebody(world: World) -> None:
    async with world.anonymous() as program:
        answer = await program.get("/v1/me", headers={"Accept-Language": "zh-CN"})

    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["content-language"] == "zh-CN"
    assert "oauth-protected-resource/v1" in answer.headers["www-authenticate"]
    assert answer.json()["reason"] == "sign_in_required"


async def test_an_address_that_is_not_there_is_a_problem_too(world: World) -> None:
    async with world.anonymous() as program:
        missing = await program.get("/v1/nothing")
        wrong = await program.delete("/v1/me")

    assert (missing.status_code, missing.json()["reason"]) == (404, "not_found")
    assert (wrong.status_code, wrong.json()["reason"]) == (405, "method_not_allowed")
