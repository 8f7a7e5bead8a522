"""What kind of value a field of an input is, by its schema alone, and what people call it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

from app.commands import registry
from app.commands.descriptors import Descriptor
from app.commands.governed import GovernedRecord
from app.kernel.i18n import gettext
from app.runs.models.planner.same import Same

TARGET, OPERATION = "targetRecordId", "operationType"
SEARCHES = frozenset({"q", "text", "query"})
PAGING = frozenset({"cursor", "limit", "expectedVersion"})


class Kind(StrEnum):
    """What a person would have to say."""

    TARGET = "target"
    FIXED = "fixed"
    REFERENCE = "reference"
    AMOUNT = "amount"
    DAY = "day"
    MONTH = "month"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    CHOICE = "choice"
    CURRENCY = "currency"
    CODE = "code"
    SEARCH = "search"
    TEXT = "text"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Field:
    """One field of an input.

    Attributes:
        schema: its branch that is not null.
        record: of a reference: the type of what it names, None where that is no governed record.
    """

    name: str
    kind: Kind
    schema: Mapping[str, Any]
    is_required: bool
    record: str | None = None

    @property
    def choices(self) -> tuple[str, ...]:
        """The values of a choice, without the empty one."""
        return tuple(str(each) for each in self.schema.get("enum", ()) if each not in ("", None))


def fields(descriptor: Descriptor) -> tuple[Field, ...]:
    """The fields of a command's input, in their order."""
    return _fields(Same(descriptor))


@lru_cache(maxsize=8_192)
def _fields(command: Same) -> tuple[Field, ...]:
    descriptor = command.descriptor
    schema = descriptor.definition.input_schema
    required = set(schema.get("required", ()))
    return tuple(
        _field(descriptor, name, _branch(told, schema), name in required)
        for name, told in schema.get("properties", {}).items()
    )


def label(descriptor: Descriptor, name: str) -> str:
    """What people call a field: as its record's column is called, else its own words."""
    column = descriptor.definition.map.get(snake(name), snake(name))
    for each in (column, f"{column.removesuffix('_name')}_id"):  # a name stands for its id
        for model in models(descriptor):
            if (named := model.FIELDS.get(each) or model.COMMON_FIELDS.get(each)) is not None:
                return gettext(named)
    return gettext(words(name).capitalize())


def words(name: str) -> str:
    """A wire name as words, without what only says its form: `amountMinor` is "amount"."""
    parts = snake(name).split("_")
    if len(parts) > 1 and parts[-1] in {"id", "minor"}:
        parts.pop()
    return " ".join(parts)


def snake(name: str) -> str:
    """`targetRecordId` is `target_record_id`."""
    return re.sub(r"[A-Z]", lambda found: f"_{found[0].lower()}", name)


def models(descriptor: Descriptor) -> Iterator[type[GovernedRecord]]:
    """The record type of a command, and those related to it."""
    types, record = registry.record_types(), descriptor.definition.record
    if record is not None and record in types:
        yield types[record]
        for related in types[record].RELATED.values():
            if related.record in types:
                yield types[related.record]


def names_of(descriptor: Descriptor) -> tuple[str, ...]:
    """What a command and its records are called in both languages: words that tell no record."""
    told = descriptor.definition
    records = [name for model in models(descriptor) for name in model.NAMES.values()]
    code = told.code.replace(".", " ").replace("_", " ")
    return (told.display_name.en, told.display_name.zh, code, *records)


def _field(descriptor: Descriptor, name: str, told: Mapping[str, Any], required: bool) -> Field:
    kind = _kind(name, told)
    record = _record_of(descriptor, name) if kind is Kind.REFERENCE else None
    if kind is Kind.TARGET:
        record = descriptor.definition.record
    return Field(name, kind, told, required, record)


def _branch(told: Mapping[str, Any], whole: Mapping[str, Any]) -> Mapping[str, Any]:
    """The branch of a field that is not null, with what stands beside it."""
    if (ref := str(told.get("$ref", "")).rpartition("/")[2]) and ref in whole.get("$defs", {}):
        return {**whole["$defs"][ref], **{k: v for k, v in told.items() if k != "$ref"}}
    for part in (*told.get("anyOf", ()), *told.get("oneOf", ())):
        if part.get("type") != "null":
            beside = {k: v for k, v in told.items() if k not in {"anyOf", "oneOf"}}
            return {**_branch(part, whole), **beside}
    return told


def _kind(name: str, told: Mapping[str, Any]) -> Kind:
    if name == TARGET:
        return Kind.TARGET
    enum, pattern = told.get("enum"), str(told.get("pattern", ""))
    if name == OPERATION or "const" in told or (enum is not None and len(enum) == 1):
        return Kind.FIXED
    match told.get("type"):
        case "integer" | "number":
            return Kind.AMOUNT if name.endswith("Minor") else Kind.INTEGER
        case "boolean":
            return Kind.BOOLEAN
        case "string":
            return _text_kind(name, told, pattern, enum)
    return Kind.OTHER


def _text_kind(name: str, told: Mapping[str, Any], pattern: str, enum: Any) -> Kind:
    if "currency" in name.lower():
        return Kind.CURRENCY
    if enum:
        return Kind.CHOICE
    if "26}" in pattern or (name.endswith("Id") and told.get("maxLength") == 26):
        return Kind.REFERENCE
    if told.get("format") == "date":
        return Kind.DAY
    if told.get("format"):
        return Kind.OTHER
    if "1[0-2]" in pattern or (name.lower().endswith(("period", "month")) and not pattern):
        return Kind.MONTH
    if name in PAGING:
        return Kind.OTHER
    if name in SEARCHES:
        return Kind.SEARCH
    return Kind.CODE if pattern else Kind.TEXT


def _record_of(descriptor: Descriptor, name: str) -> str | None:
    """The type a reference names: its last word is that of the name; of the own pack first."""
    last = snake(name).removesuffix("_id").rpartition("_")[2]
    own = (descriptor.definition.record or descriptor.code).partition(".")[0]
    found = [each for each in registry.record_types() if each.rpartition(".")[2] == last]
    return min(found, key=lambda each: (each.partition(".")[0] != own, each), default=None)
