"""The catalogue over HTTP: what the caller may run, and why somebody may not."""

import pytest

from app.identity.principal import Scope
from tests.commands.agents import program
from tests.people import World

OWN = {
    *("expense.line.add", "expense.line.remove", "expense.report.create", "expense.report.get"),
    *("expense.report.discard", "expense.report.list", "expense.report.recall"),
    *("expense.report.remind", "expense.report.submit", "expense.report.update"),
}
WIRE = {
    *("cmdCode", "displayName", "description", "agentHint", "riskLevel", "idempotent"),
    *("reversible", "undoCommand", "inputSchema", "exampleInput", "requiredFeature"),
}


@pytest.mark.requirement("CMD-7", "CMD-22", "CMD-23")
async def test_everybody_lists_their_own_commands_in_their_own_language(world: World) -> None:
    browser, agent = (
        world.client(world.acme["alice"]),
        program(world, world.acme, world.acme["alice"]),
    )

    listed = (await browser.get("/v1/commands")).json()
    seen_by_agent = (await agent.get("/v1/commands")).json()
    chinese = await browser.get(
        "/v1/commands/expense.report.submit", headers={"Accept-Language": "zh-CN"}
    )

    codes = [each["cmdCode"] for each in listed["items"]]
    assert codes == sorted(codes)
    assert set(codes) >= OWN
    assert listed["total"] == len(codes)
    assert all(set(each) >= WIRE for each in listed["items"])
    assert {each["cmdCode"] for each in seen_by_agent["items"]} >= OWN
    assert chinese.json()["displayName"] == "提交报销单"
    for inside in ("handler", "SELECT", "app.packs", "map", "computed"):
        assert inside not in {name for each in listed["items"] for name in each}


@pytest.mark.requirement("CMD-7")
async def test_the_catalogue_is_searched_narrowed_and_paged(world: World) -> None:
    browser = world.client(world.acme["olga"])

    async def codes(**params: str) -> list[str]:
        answer = await browser.get("/v1/commands", params=params)
        assert answer.status_code == 200, answer.text
        return [each["cmdCode"] for each in answer.json()["items"]]

    assert "expense.report.list" in await codes(risk="L0")
    assert await codes(risk="L0", record="expense.report", q="no such words") == []
    found = await codes(record="expense.report")
    assert found
    assert all(code.startswith("expense.") for code in found)
    everything: list[str] = []
    cursor = ""
    while True:
        answer = (await browser.get("/v1/commands", params={"cursor": cursor})).json()
        everything += [each["cmdCode"] for each in answer["items"]]
        cursor = answer["next"]
        if not cursor:
            break
    assert len(everything) == len(set(everything)) == answer["total"]
    assert (await browser.get("/v1/commands", params={"risk": "L9"})).status_code == 422


@pytest.mark.requirement("CMD-22", "UI-26")
async def test_a_command_that_is_not_ones_own_is_not_there(world: World) -> None:
    browser = world.client(world.acme["alice"])

    foreign = await browser.get("/v1/commands/expense.payment.send")
    unknown = await browser.get("/v1/commands/no.such.command")

    assert (foreign.status_code, foreign.json()) == (404, unknown.json())


@pytest.mark.requirement("SEC-7", "CMD-22")
async def test_a_token_lists_commands_only_with_the_scope_for_it(world: World) -> None:
    agent = program(world, world.acme, world.acme["alice"], (Scope.COMMANDS_INVOKE,))

    for path in ("/v1/commands", "/v1/commands/expense.report.create"):
        answer = await agent.get(path)
        assert (answer.status_code, answer.json()["reason"]) == (403, "insufficient_scope")
        assert 'error="insufficient_scope"' in answer.headers["www-authenticate"]


@pytest.mark.requirement("CMD-22")
async def test_administrators_are_told_which_layer_hides_a_command(world: World) -> None:
    alice, path = world.acme["alice"], "/v1/commands/expense.payment.send/why"
    admin = world.client(world.acme["ada"])

    answer = await admin.get(path, params={"userId": alice.id})
    chinese = await admin.get(
        path, params={"userId": alice.id}, headers={"Accept-Language": "zh-CN"}
    )
    denied = await world.client(alice).get(path, params={"userId": alice.id})
    agent = await program(world, world.acme, world.acme["bob"]).get(
        path, params={"userId": alice.id}
    )
    stranger = await admin.get(path, params={"userId": world.globex["gus"].id})
    nobody = await admin.get(path, params={"userId": "01JDXP5Y8GZ0000000000000AB"})

    told = answer.json()
    assert (told["cmdCode"], told["visible"]) == ("expense.payment.send", False)
    assert [step["passed"] for step in told["steps"]].count(False) >= 1
    assert [step["says"] for step in chinese.json()["steps"]] != [
        step["says"] for step in told["steps"]
    ]
    assert (denied.status_code, agent.status_code) == (403, 403)
    assert (stranger.status_code, stranger.json()) == (404, nobody.json())
