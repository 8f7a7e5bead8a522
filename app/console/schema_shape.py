"""Which control each part of an input asks for (UI-103): JSON Schema 2020-12, read as shapes.

Where a schema says something no control can show, the shape is `json`: a field for the value as
it is written down.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Text = Literal["text", "long", "date", "moment", "email", "uri", "secret", "record", "json"]
Number = Literal["integer", "number", "money"]
Chosen = Literal["boolean", "choice", "choices", "fixed"]
Group = Literal["object", "list", "variant"]
Kind = Text | Number | Chosen | Group
Schema = Mapping[str, Any]

LONG_TEXT = 200  # characters, above which a field has several lines
DEEPEST = 6  # levels of fieldsets; below them the value is written as JSON
FORMATS: dict[str, Kind] = {
    "date": "date",
    "date-time": "moment",
    "email": "email",
    "uri": "uri",
    "url": "uri",
}
TYPES: dict[str, Kind] = {"string": "text", "integer": "integer", "number": "number"}


@dataclass(frozen=True, slots=True)
class Shape:
    """One value of the input.

    Attributes:
        schema: with references followed and null taken out.
        record: the type of the records it names, of a `record`.
        parts: of an `object`, in their order.
        item: of a `list`.
        tag: the property that says which of `variants` it is, by their tags.
    """

    kind: Kind
    schema: Schema
    name: str = ""
    is_required: bool = True
    record: str = ""
    parts: "tuple[Shape, ...]" = ()
    item: "Shape | None" = None
    tag: str = ""
    variants: "Mapping[str, Shape]" = field(default_factory=dict)

    @property
    def choices(self) -> tuple[Any, ...]:
        """The values it may have, where they can be listed."""
        schema = self.schema["items"] if self.kind == "choices" else self.schema
        if schema.get("type") == "boolean":
            return (True, False)
        return tuple(schema.get("enum", ()))

    @property
    def may_be_empty(self) -> bool:
        """Whether an empty text is a value of its own, and not only what was left out."""
        refuses = self.schema.get("minLength") or self.schema.get("pattern")
        return self.kind in {"text", "long"} and not self.is_required and not refuses


def shape_of(schema: Schema, record_of: Callable[[str], str] = lambda _name: "") -> Shape:
    """The shape of a whole input.

    Args:
        schema: of the input, as a definition has it.
        record_of: which type of record a text of this name names, by its id; empty for none.
    """
    return _Reader(schema.get("$defs", {}), record_of).read(schema, "", is_required=True, depth=0)


def snake(name: str) -> str:
    """A name of the wire as Python and SQL write it."""
    return re.sub(r"[A-Z]", lambda found: f"_{found[0].lower()}", name)


def said_name(name: str) -> str:
    """A name of the wire or of a column as words: `amountMinor` is `Amount`."""
    words = re.sub(r"(?<=[a-z0-9])([A-Z])", r" \1", name).replace("_", " ").lower().split()
    if len(words) > 1 and words[-1] in {"id", "minor"}:
        words.pop()
    return " ".join(words).capitalize()


class _Reader:
    def __init__(self, definitions: Schema, record_of: Callable[[str], str]) -> None:
        self.definitions = definitions
        self.record_of = record_of

    def read(self, schema: Schema, name: str, *, is_required: bool, depth: int) -> Shape:
        schema, is_nullable = self._resolved(schema)
        if "properties" in schema and depth < DEEPEST:
            parts = tuple(self._parts(schema, depth))
            return Shape("object", schema, name, is_required, parts=parts)
        if (variants := self._variants(schema, depth)) and depth < DEEPEST:
            tag = schema["discriminator"]["propertyName"]
            return Shape("variant", schema, name, is_required, tag=tag, variants=variants)
        if schema.get("type") == "array" and isinstance(schema.get("items"), Mapping):
            return self._list(schema, name, is_required, depth)
        record = str(schema.get("x-record", "") or self.record_of(name))
        kind = _kind(schema, name, is_nullable, is_required, record)
        return Shape(kind, schema, name, is_required, record=record)

    def _parts(self, schema: Schema, depth: int) -> Iterator[Shape]:
        required = set(schema.get("required", ()))
        for name, part in schema["properties"].items():
            yield self.read(part, name, is_required=name in required, depth=depth + 1)

    def _list(self, schema: Schema, name: str, is_required: bool, depth: int) -> Shape:
        item = self.read(schema["items"], name, is_required=True, depth=depth + 1)
        if item.kind == "choice":
            listed = {**schema, "items": item.schema}
            return Shape("choices", listed, name, is_required)
        if item.kind in {"list", "json", "choices"} or depth >= DEEPEST:
            return Shape("json", schema, name, is_required)
        return Shape("list", schema, name, is_required, item=item)

    def _variants(self, schema: Schema, depth: int) -> dict[str, Shape]:
        """The alternatives of a union, by the constant that tells them apart."""
        tag = schema.get("discriminator", {}).get("propertyName")
        found = {}
        for each in schema.get("oneOf", ()) if tag else ():
            shape = self.read(each, "", is_required=True, depth=depth + 1)
            told = shape.schema.get("properties", {}).get(tag, {})
            if shape.kind != "object" or not isinstance(told.get("const"), str):
                return {}
            found[told["const"]] = shape
        return found

    def _resolved(self, schema: Schema) -> tuple[dict[str, Any], bool]:
        """A schema with what it refers to, and whether it may be null."""
        merged, is_nullable = dict(schema), False
        for _ in range(DEEPEST):
            if reference := merged.pop("$ref", ""):
                found = self.definitions.get(str(reference).rpartition("/")[2], {})
            elif (single := _without_null(merged)) is not None:
                found, is_nullable = single, True
                merged.pop("anyOf")
            else:
                break
            named = {key: found[key] for key in found if key not in {"title", "description"}}
            merged = {**named, **merged}
        return merged, is_nullable


def _without_null(schema: Schema) -> Schema | None:
    options = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    return options[0] if len(options) == 1 and len(schema["anyOf"]) == 2 else None


def _kind(schema: Schema, name: str, is_nullable: bool, is_required: bool, record: str) -> Kind:
    said = schema.get("type")
    if schema.get("x-secret"):
        return "secret"
    if record and said == "string":
        return "record"
    if "const" in schema or len(schema.get("enum", ())) == 1:
        return "fixed" if is_required else "choice"
    if "enum" in schema:
        return "choice"
    if said == "boolean":
        return "choice" if is_nullable else "boolean"
    if said == "integer" and (schema.get("x-money") or name.endswith("Minor")):
        return "money"
    if said == "string":
        is_long = schema.get("maxLength", 0) > LONG_TEXT or schema.get("x-multiline")
        return FORMATS.get(schema.get("format", ""), "long" if is_long else "text")
    return TYPES.get(str(said), "json")
