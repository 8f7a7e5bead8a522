"""A schema that others wrote breaks no door of ours: pages, forms, the API, the approval."""

from collections.abc import Callable
from typing import Any

import pytest

from app.commands.definition import Risk
from app.outside import schemas
from tests.commands.asking import Asking
from tests.outside.lobby import Lobby, call
from tests.outside.servers import Outsider, tool
from tests.packs.expenses.desk import Desk
from tests.people import World

Start = Callable[..., Outsider]

ODD: dict[str, dict[str, Any]] = {
    "nothing": {"type": "object"},
    "open": {"type": "object", "properties": {"a": {"type": "string"}}},
    "free": {"type": "object", "additionalProperties": {"type": "integer"}},
    "patterns": {"type": "object", "patternProperties": {"^x": {"type": "string"}}},
    "booleans": {"type": "object", "properties": {"a": True, "b": False}},
    "unions": {
        "type": "object",
        "properties": {
            "a": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
            "b": {"oneOf": [{"const": 1}, {"const": "x"}]},
            "c": {"type": ["string", "null"], "enum": ["y", None]},
            "d": {"enum": [1, 2.5, "z", True, None, {"k": 1}, [1]]},
        },
    },
    "lists": {
        "type": "object",
        "properties": {
            "a": {"type": "array"},
            "b": {"type": "array", "items": {"type": "object", "properties": {"c": {}}}},
            "d": {"type": "array", "prefixItems": [{"type": "string"}], "items": False},
        },
    },
    "deep": {
        "type": "object",
        "properties": {
            "a": {
                "type": "object",
                "properties": {"b": {"type": "object", "properties": {"c": {"type": "object"}}}},
            }
        },
        "required": ["a"],
    },
    "formats": {
        "type": "object",
        "properties": {
            "a": {"type": "string", "format": "date-time"},
            "b": {"type": "string", "format": "no such format", "pattern": "^[a-z]+$"},
            "c": {"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5},
            "d": {"type": "string", "contentEncoding": "base64"},
        },
    },
    "names": {
        "type": "object",
        "properties": {
            "$ref": {"type": "string"},
            "fooBar": {"type": "string"},
            "foo_bar": {"type": "string"},
            "with space": {"type": "string"},
            "<b>": {"type": "string", "title": "<i>", "description": "<script>alert(1)</script>"},
            "__proto__": {"type": "string"},
            "targetRecordId": {"type": "string"},
            "operationType": {"type": "string"},
            "preview": {"type": "boolean"},
        },
    },
    "itself": {
        "type": "object",
        "properties": {"child": {"$ref": "#"}},
    },
    "conditions": {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "if": {"properties": {"a": {"const": "x"}}},
        "then": {"required": ["b"]},
        "allOf": [{"required": ["a"]}],
        "dependentRequired": {"a": ["b"]},
    },
}


@pytest.fixture
def lobby(world: World) -> Lobby:
    return Lobby(world)


@pytest.mark.requirement("SEC-68", "RUN-96")
@pytest.mark.parametrize("name", sorted(ODD))
async def test_an_odd_schema_is_drawn_and_described_everywhere(
    lobby: Lobby, outside: Start, name: str
) -> None:
    odd = tool("odd", description="{odd} fooBar <b>", inputSchema=ODD[name])
    await lobby.admit(outside(Outsider(tools=[odd])))
    asking = Asking(Desk(lobby.world))
    alice = lobby.world.client(lobby.acme["alice"])
    ada = lobby.world.client(lobby.acme["ada"])
    code = "mcp.weather.odd"
    definition = lobby.commands(lobby.world.person(lobby.acme["alice"]))[code].definition
    assert definition.secrets == frozenset()

    pages = [
        await alice.get("/commands"),
        await alice.get(f"/commands/{code}"),
        await ada.get("/admin/commands"),
        await ada.get(f"/admin/commands/{code}"),
        await ada.get(f"/admin/commands/{code}/draft"),
        await alice.get(f"/v1/commands/{code}"),
    ]
    assert [page.status_code for page in pages] == [200] * len(pages)
    assert not any("<script>alert(1)" in page.text for page in pages[:-1])

    sample = schemas.example(definition.input_schema)
    if schemas.is_valid(sample, definition.input_schema):
        row = await asking.ask(call(asking.agent("alice"), code, input=sample))
        shown = await alice.get(f"/approvals/{row.id}")
        assert shown.status_code == 200
    refused = await asking.refused(call(asking.agent("alice"), code, input={"a": {"\u202e": 5}}))
    assert refused.stage in {"schema_validate", "approval_check"}


@pytest.mark.requirement("SEC-68")
async def test_an_administrator_can_make_it_stricter_and_not_looser(
    lobby: Lobby, outside: Start
) -> None:
    await lobby.admit(outside(), Risk.L2)
    ada = lobby.world.client(lobby.acme["ada"])

    page = await ada.get("/admin/commands/mcp.weather.forecast/draft")

    assert page.status_code == 200
    retired = await ada.post("/admin/commands/mcp.weather.forecast/retirement")
    assert retired.status_code == 303
    alice = lobby.world.person(lobby.acme["alice"])
    assert lobby.commands(alice) == {}
    restored = await ada.post("/admin/commands/mcp.weather.forecast/restoration")
    assert restored.status_code == 303
    assert list(lobby.commands(alice)) == ["mcp.weather.forecast"]


def test_what_is_made_up_is_never_wrong() -> None:
    for name, schema in ODD.items():
        admitted = schemas.admitted(schema)
        sample = schemas.example(admitted)
        assert sample == {} or schemas.is_valid(sample, admitted), name
