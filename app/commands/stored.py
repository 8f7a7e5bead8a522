"""A definition as it is stored, published and read: plain JSON, by the names of the wire.

What a pack declares becomes this; what an administrator authors is this. The classes and functions
of the pack are found again by the command's code and its record's type (`registry`).
"""

import hashlib
from typing import Any, Self

import rfc8785
from pydantic import Field

from app.commands.definition import (
    ApiCall,
    Approvers,
    Code,
    CommandDefinition,
    Expression,
    Operation,
    Part,
    PostAction,
    Risk,
    RollUp,
    Rules,
    SideEffect,
    SodRule,
    Text,
    Told,
    Transition,
    schema_of,
)

TARGET = {
    "type": "string",
    "pattern": "^[0-9A-HJKMNP-TV-Z]{26}$",
    "description": "The id of the record this is about.",
}


class StoredDefinition(Part):
    """One command, as data; the fields are those of `CommandDefinition`."""

    code: Code
    pack: str
    display_name: Text
    description: Text
    agent_hint: Text
    risk: Risk
    idempotent: bool
    reversible: bool
    undo: Code | None = None
    undo_input: dict[str, Expression] = Field(default_factory=dict)
    undo_when: Expression | None = None
    record: str | None = None
    operation: Operation
    targeted: bool = False
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None = None
    example: dict[str, Any]
    permission: str
    feature: str | None = None
    people_only: bool = False
    transition: Transition | None = None
    sod: tuple[SodRule, ...] = ()
    approvers: Approvers | None = None
    approval_ttl_s: int | None = Field(None, ge=30, le=86_400)
    related: tuple[str, ...] = ()
    rules: Rules = Rules()
    set: dict[str, str] = Field(default_factory=dict)
    map: dict[str, str] = Field(default_factory=dict)
    computed: dict[str, Expression] = Field(default_factory=dict)
    has_handler: bool = False
    previewable: bool = True
    side_effects: tuple[SideEffect, ...] = ()
    roll_ups: tuple[RollUp, ...] = ()
    post_actions: tuple[PostAction, ...] = ()
    events: tuple[Told, ...] = ()
    webhooks: tuple[Told, ...] = ()
    api_calls: tuple[ApiCall, ...] = ()
    tags: tuple[str, ...] = ()

    @classmethod
    def of(cls, declared: CommandDefinition, pack: str) -> Self:
        """What `pack` declares, as data."""
        same = set(cls.model_fields) & set(CommandDefinition.model_fields)
        given = {name: getattr(declared, name) for name in same}
        schema = schema_of(declared.input)
        example = dict(declared.example)
        if declared.is_targeted:
            schema, example = with_target(schema, declared.operation, example)
        return cls(
            **{
                **given,
                "pack": pack,
                "record": declared.record.RECORD if declared.record else None,
                "targeted": declared.is_targeted,
                "input_schema": schema,
                "output_schema": schema_of(declared.output) if declared.output else None,
                "example": example,
                "has_handler": declared.handler is not None,
                "events": tuple(map(_told, declared.events)),
                "webhooks": tuple(map(_told, declared.webhooks)),
            }
        )

    @property
    def writes(self) -> bool:
        """Whether a call may change anything."""
        return self.risk is not Risk.L0

    @property
    def needs_approval(self) -> bool:
        """Whether a person has to assent to each call (CMD-11)."""
        return (
            self.risk.level >= 3
            or (not self.reversible and self.writes)
            or self.approvers is not None
        )

    @property
    def secrets(self) -> frozenset[str]:
        """The input fields that no reader may see, nested ones joined by `/` (CMD-20)."""
        return frozenset(_secrets(self.input_schema, self.input_schema.get("$defs", {})))

    def data(self) -> dict[str, Any]:
        """The JSON that is stored."""
        return self.model_dump(mode="json", by_alias=True)

    @property
    def content_hash(self) -> str:
        """SHA-256 of the JSON: the same content is the same version."""
        return hashlib.sha256(rfc8785.dumps(self.data())).hexdigest()


def with_target(
    schema: dict[str, Any], operation: Operation, example: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A schema and an example with the fields that name the target (CMD-F6, CMD-F7)."""
    fields: dict[str, Any] = {"targetRecordId": TARGET}
    sample: dict[str, Any] = {"targetRecordId": "01JDXP5Y8GZ0000000000000AB"}
    if operation is not Operation.READ:
        word = "DELETE" if operation is Operation.DELETE else "UPDATE"
        fields["operationType"] = {
            "type": "string",
            "enum": [word],
            "description": "What happens to the record; there is one possible value.",
        }
        sample["operationType"] = word
    return (
        {
            **schema,
            "properties": {**fields, **schema.get("properties", {})},
            "required": [*fields, *schema.get("required", [])],
        },
        {**sample, **example},
    )


def _told(given: Told | str) -> Told:
    return Told(type=given) if isinstance(given, str) else given


def _secrets(
    schema: dict[str, Any],
    definitions: dict[str, Any],
    path: str = "",
    inside: frozenset[str] = frozenset(),
) -> list[str]:
    """Pointers to what is secret in a schema; a part without an own pointer is it as a whole."""
    if path and schema.get("x-secret"):
        return [path]
    if name := schema.get("$ref", "").rpartition("/")[2]:
        if name in inside:  # it holds its own kind, to any depth
            return [path] if "'x-secret'" in repr(definitions[name]) else []
        return _secrets(definitions.get(name, {}), definitions, path, inside | {name})
    found: list[str] = []
    for name, part in schema.get("properties", {}).items():
        found += _secrets(part, definitions, f"{path}/{name}" if path else name, inside)
    for branch in ("anyOf", "oneOf", "allOf"):
        for part in schema.get(branch, ()):
            found += _secrets(part, definitions, path, inside)
    if isinstance(items := schema.get("items"), dict):
        found += _secrets(items, definitions, f"{path}/*", inside)
    if isinstance(others := schema.get("additionalProperties"), dict) and _secrets(
        others, definitions, f"{path}/*", inside
    ):
        found.append(path)
    return found
