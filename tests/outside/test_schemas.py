"""A schema that others wrote is taken apart and written anew, or refused, and says why."""

import time
from typing import Any

import jsonschema_rs
import pytest

from app.outside import schemas
from app.outside.schemas import Unfit
from tests.outside.servers import CITY, OBJECT


def fields(**parts: Any) -> dict[str, Any]:
    """A schema of an object with these fields."""
    return {"type": "object", "properties": parts}


def nested(levels: int) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        made = {"type": "array", "items": made}
    return fields(a=made)


def doubling(levels: int) -> dict[str, Any]:
    """Each part holds the next one four times: small to write, and 4^levels large."""
    parts: dict[str, Any] = {
        f"p{number}": {"allOf": [{"$ref": f"#/$defs/p{number + 1}"}] * 4}
        for number in range(levels)
    }
    parts[f"p{levels}"] = {"type": "string"}
    return {**fields(a={"$ref": "#/$defs/p0"}), "$defs": parts}


@pytest.mark.requirement("SEC-68")
@pytest.mark.parametrize(
    ("schema", "rule"),
    [
        (fields(a={"$ref": "file:///etc/passwd"}), "foreign_reference"),
        (fields(a={"$ref": "http://127.0.0.1:1/x"}), "foreign_reference"),
        (fields(a={"$ref": "other.json#/a"}), "foreign_reference"),
        ({**OBJECT, "$defs": {"x": {"$ref": "https://example.com/x"}}}, "foreign_reference"),
        ({**OBJECT, "hidden": {"deep": [{"$ref": "file:///x"}]}}, "foreign_reference"),
        ({**OBJECT, "$schema": "https://evil.example/schema"}, "dialect"),
        ({**OBJECT, "$schema": "http://json-schema.org/draft-04/schema#"}, "dialect"),
        (fields(a={"$dynamicRef": "#a"}), "dynamic_reference"),
        (fields(a={"$ref": "#/nowhere"}), "reference"),
        (fields(a={"$ref": "#anchor"}), "reference"),
        (nested(17), "too_deep"),
        (nested(200), "too_deep"),
        (fields(**{f"f{number}": {} for number in range(500)}), "too_many_subschemas"),
        (doubling(40), "too_deep"),
        (doubling(5), "too_many_subschemas"),
        (fields(a={"type": "string", "pattern": "a" * 257}), "pattern"),
        (fields(a={"type": "string", "pattern": "(?=a)a"}), "invalid"),
        ({**OBJECT, "patternProperties": {"a" * 257: {}}}, "pattern"),
        (fields(a={"enum": ["x" * 70_000]}), "too_large"),
        (fields(a={"default": "\x00"}), "not_json"),
        (fields(a={"maximum": 2**60}), "not_json"),
        (fields(**{"a\u202eb": {}}), "property_name"),
        (fields(a={"default": "x\u202ey"}), "hidden_text"),
        (fields(a={"examples": [{"b": ["Paris\U000e0041"]}]}), "hidden_text"),
        (fields(a={"enum": ["a\U000e0101"]}), "hidden_text"),
        (fields(a={"const": {"\u200b": 1}}), "hidden_text"),
        (fields(a={"pattern": "^a\u200b$"}), "hidden_text"),
        ({**OBJECT, "patternProperties": {"^a\u200b": {}}}, "hidden_text"),
        ({**OBJECT, "dependentRequired": {"a\u3164": ["b"]}}, "hidden_text"),
        (fields(a={"$ref": "#/allOf/" + "9" * 5_000}), "reference"),
        (fields(a={"$ref": "#/" + "x" * 5_000}), "reference"),
        (fields(a={"type": "no such type"}), "invalid"),
        ({"type": "array"}, "not_an_object"),
        ({}, "not_an_object"),
        ("text", "not_a_schema"),
        (None, "not_a_schema"),
        ({"type": "object", "properties": {"a": 5}}, "not_a_schema"),
    ],
)
def test_a_schema_that_breaks_a_rule_is_refused(schema: Any, rule: str) -> None:
    with pytest.raises(Unfit) as refused:
        schemas.admitted(schema)

    assert refused.value.rule == rule


def test_what_is_admitted_holds_no_reference_and_nothing_unknown() -> None:
    given = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": "https://example.com/x",
        "type": "object",
        "definitions": {"city": {"type": "string", "x-secret": True, "minLength": 2}},
        "properties": {
            "from": {"$ref": "#/definitions/city", "description": "Where from\u202e"},
            "pair": {"items": [{"type": "string"}, {"type": "integer"}], "additionalItems": False},
            "any": True,
        },
        "required": ["from"],
        "x-mcp-header": "X",
    }

    made = schemas.admitted(given)

    assert made == {
        "type": "object",
        "properties": {
            "from": {"type": "string", "minLength": 2, "description": "Where from[U+202E]"},
            "pair": {"prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False},
            "any": {},
        },
        "required": ["from"],
    }
    validator = jsonschema_rs.validator_for(made)
    assert validator.is_valid({"from": "Oslo", "pair": ["a", 1]})
    assert not validator.is_valid({"from": "O"})
    assert not validator.is_valid({"from": "Oslo", "pair": ["a", 1, 2]})


def test_a_schema_that_holds_its_own_kind_ends_where_it_would_begin_anew() -> None:
    tree = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "child": {"$ref": "#/$defs/tree"}},
    }

    made = schemas.admitted({**fields(root={"$ref": "#/$defs/tree"}), "$defs": {"tree": tree}})

    root = made["properties"]["root"]
    assert root["properties"]["child"] == {}
    assert schemas.admitted({**tree, "$defs": {"tree": tree}})["type"] == "object"


@pytest.mark.requirement("SEC-68")
def test_a_pattern_takes_no_longer_than_its_text_is_long() -> None:
    bad = schemas.admitted(fields(a={"type": "string", "pattern": "^(a+)+$"}))

    assert not schemas.is_valid({"a": "a" * 90_000 + "!"}, bad)


@pytest.mark.requirement("SEC-68")
def test_a_long_text_is_not_held_against_many_patterns() -> None:
    slow = [{"pattern": f"[ab]*a[ab]{{{80 + number}}}[^abc]"} for number in range(30)]
    bad = schemas.admitted(fields(a={"allOf": slow}))

    began = time.thread_time()
    assert schemas.is_valid({"a": "ab" * 400_000}, bad)

    assert time.thread_time() - began < 1
    assert not schemas.is_valid({"a": "short"}, bad)
    odd = schemas.admitted(fields(a={"default": {"patternProperties": 5, "pattern": 7}}))
    assert schemas.is_valid({"a": "short"}, odd)


@pytest.mark.parametrize(
    ("schema", "sample"),
    [
        (CITY, {"city": "text"}),
        (
            {
                "type": "object",
                "required": ["n", "k", "l", "o", "b"],
                "properties": {
                    "n": {"type": "integer", "minimum": 5},
                    "k": {"enum": ["x", "y"]},
                    "l": {"type": "array", "minItems": 2, "items": {"type": "boolean"}},
                    "o": {"type": "object", "required": ["z"], "properties": {"z": {"const": 3}}},
                    "b": {"anyOf": [{"type": "null"}, {"type": "string"}]},
                },
            },
            {"n": 5, "k": "x", "l": [True, True], "o": {"z": 3}, "b": None},
        ),
        ({"type": "object", "required": ["p"], "properties": {"p": {"pattern": "^[0-9]$"}}}, {}),
    ],
)
def test_an_example_is_made_up_where_one_can_be(
    schema: dict[str, Any], sample: dict[str, Any]
) -> None:
    assert schemas.example(schema) == sample


@pytest.mark.requirement("SEC-68")
@pytest.mark.parametrize("levels", [3, 14])
def test_an_example_that_grows_with_every_level_is_given_up(levels: int) -> None:
    part: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        part = {"type": "array", "minItems": 10, "items": part}

    made = schemas.admitted({**fields(a=part), "required": ["a"]})

    assert schemas.example(made) == {}


def test_an_example_counts_what_the_schema_gives_itself() -> None:
    given = {**fields(a={"default": [1] * 300}), "required": ["a"]}

    assert schemas.example(schemas.admitted(given)) == {}


def test_several_lines_and_letters_of_all_the_world_hide_nothing() -> None:
    given = fields(a={"default": "two\nlines\t中文 مرحبا 🙂 é", "enum": ["", " "]})

    assert schemas.admitted(given) == given
