"""`/openapi.json`: every route for programs, whole, and nothing that is anybody's (CMD-7)."""

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.routing import APIRoute

from app import main
from app.commands import refused, registry
from tests.people import World

REFUSALS = {"400", "401", "403", "404", "413", "422", "429", "500", "503"}
METHODS = {"get", "put", "post", "delete", "patch"}


async def description(world: World) -> dict[str, Any]:
    async with world.anonymous() as anybody:
        answer = await anybody.get("/openapi.json")
    assert answer.status_code == 200
    return dict(answer.json())


def operations(described: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            assert method in METHODS
            yield f"{method.upper()} {path}", operation


@pytest.mark.requirement("CMD-7")
async def test_every_operation_says_all_that_a_program_needs(world: World) -> None:
    described = await description(world)
    tags = {tag["name"] for tag in described["tags"]}
    wrong = []
    for name, told in operations(described):
        if not told.get("summary", "").endswith(".") or not set(told["tags"]) <= tags:
            wrong.append(f"{name}: summary or tag")
        if told.get("security") != [{"bearer": []}, {"session": []}]:
            wrong.append(f"{name}: security")
        if not set(told["responses"]) >= REFUSALS:
            wrong.append(f"{name}: refusals {REFUSALS - set(told['responses'])}")
        for status, response in told["responses"].items():
            kinds = set(response.get("content", {}))
            wanted = kinds == {"application/problem+json"} if status >= "400" else bool(kinds)
            if status == "204":
                wanted = not kinds
            if not wanted or not response["description"]:
                wrong.append(f"{name}: {status} answers {kinds}")
        bodies = told.get("requestBody", {}).get("content", {}).values()
        if not all(kind.get("examples") and kind.get("schema") for kind in bodies):
            wrong.append(f"{name}: a body without an example")
        if not all(parameter.get("schema") for parameter in told.get("parameters", [])):
            wrong.append(f"{name}: a parameter without a schema")

    assert wrong == []
    assert set(described["components"]["securitySchemes"]) == {"bearer", "session"}
    assert described["info"]["title"] == "Assent"


@pytest.mark.requirement("CMD-7", "CMD-8")
async def test_every_route_for_programs_is_described_and_so_is_every_refusal(
    world: World,
) -> None:
    described = await description(world)
    routed = {
        f"{method} {route.path}"
        for router in main.routers()
        for route in router.routes
        if isinstance(route, APIRoute) and route.path.startswith("/v1/")
        for method in (route.methods or set()) - {"HEAD"}
    }

    told = {name for name, _ in operations(described)}

    assert {name for name in told if " /v1/" in name} == routed
    problem = described["components"]["schemas"]["Problem"]
    assert set(problem["required"]) == {"type", "title", "status", "detail", "reason"}
    advice = set(str(problem["properties"]["advice"]).split("'"))
    assert {row[1] for row in refused.known_reasons().values()} <= advice
    statuses = set(dict(operations(described))["POST /v1/commands/{cmdCode}/calls"]["responses"])
    assert {str(row[0]) for row in refused.known_reasons().values()} <= statuses


@pytest.mark.requirement("SEC-88", "CMD-23")
async def test_no_page_and_no_command_of_anybody_is_in_it(world: World) -> None:
    async with world.client(world.acme["olga"]) as owner:
        seen_by_owner = (await owner.get("/openapi.json")).json()
    described = await description(world)

    assert seen_by_owner == described, "the same for everybody"
    paths = set(described["paths"])
    assert {path for path in paths if not path.startswith("/v1/")} == {"/aun/rpc"}
    schemas = set(described["components"]["schemas"])
    models = {command.input.__name__ for command in registry.declared().values()}
    assert schemas & models == set()
    text = str(described)
    for own in ("Acme", "Globex", world.acme.id, world.globex.id, "alice", "expense.payment.send"):
        assert own not in text
