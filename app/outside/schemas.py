"""Schemas that others wrote: taken apart, checked, and written anew without a reference (SEC-68).

What is admitted holds the keywords we know and nothing else: whatever reads it later, a validator,
a form or a model, finds no pointer to follow and no tree that grows. What the server meant beyond
that, it checks for itself.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

import jsonschema_rs
from jsonschema_rs import RegexOptions

from app.kernel import json
from app.outside import texts

DIALECTS = frozenset(
    {
        "https://json-schema.org/draft/2020-12/schema",
        "http://json-schema.org/draft-07/schema",
        "https://json-schema.org/draft-07/schema",
    }
)
DEEPEST = 16
SUBSCHEMAS = 500
LONGEST_PATTERN = 256  # characters
SMALL = RegexOptions(size_limit=64 << 10, dfa_size_limit=64 << 10)  # bytes of a pattern
MATCHED = 100_000  # letters times patterns of one value: each may cost microseconds (measured)
COMPILED = 16  # validators that are kept
SAMPLED = 200  # values of an example
LONGEST_NAME = 128  # characters of a property's name
LONGEST_STEP = 3 * LONGEST_NAME  # characters of a part of a pointer
LARGEST = 64 << 10  # bytes, as JSON
CHECKED_TO = 64  # levels of JSON that are looked at; what is deeper is refused

MAPS = frozenset({"properties", "patternProperties", "dependentSchemas"})
LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
SINGLE = frozenset(
    {
        *("items", "contains", "additionalProperties", "propertyNames", "not", "if", "then"),
        *("else", "unevaluatedItems", "unevaluatedProperties"),
    }
)
PLAIN = frozenset(
    {
        *("type", "enum", "const", "required", "minItems", "maxItems", "uniqueItems"),
        *("minContains", "maxContains", "minLength", "maxLength", "pattern", "format"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minProperties", "maxProperties", "dependentRequired", "default", "examples"),
        *("deprecated", "readOnly", "writeOnly", "contentEncoding", "contentMediaType"),
    }
)
WORDS = frozenset({"title", "description"})
_RULES = {"It is too large.": "too_large", "It is nested too deeply.": "too_deep"}
REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})


class Unfit(Exception):
    """A schema, or a tool, that is not taken; `rule` says which rule it breaks."""

    def __init__(self, rule: str) -> None:
        super().__init__(rule)
        self.rule = rule


@dataclass(slots=True)
class Spare:
    """How many patterns may still be compiled, and how long they may be together.

    A short pattern may cost 30 ms, in which nothing else of the process runs (measured).
    """

    patterns: int
    characters: int
    above: "Spare | None" = None

    def take(self, patterns: Collection[str]) -> None:
        """Count these, here and above.

        Raises:
            Unfit: they are too many.
        """
        characters = sum(map(len, patterns))
        if len(patterns) > self.patterns or characters > self.characters:
            raise Unfit("too_many_patterns")
        if self.above is not None:
            self.above.take(patterns)
        self.patterns -= len(patterns)
        self.characters -= characters


def of_list() -> Spare:
    """What a whole list may use."""
    return Spare(200, 10_000)


def of_tool(above: Spare | None = None) -> Spare:
    """What one tool may use."""
    return Spare(30, 2_000, above)


def admitted(schema: Any, spare: Spare | None = None) -> dict[str, Any]:
    """`schema` of an object, as far as it is understood, with nothing left to look up.

    Patterns are compiled one by one, and what they cost is taken from `spare`.

    Raises:
        Unfit: it points out of its document, is of another dialect, too deep, too large, or none.
    """
    whole = _read(schema)
    _look(whole)
    admission = _Admission(whole)
    made = admission.whole()
    if made.get("type") != "object":
        raise Unfit("not_an_object")
    if len(json.dumps(made)) > LARGEST:
        raise Unfit("too_large")
    (spare or of_tool()).take(admission.patterns)
    _check(made, admission.patterns)
    return made


def is_valid(value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether `value` is as an admitted schema wants it.

    Nothing is said of very long texts with very many patterns: those are taken as they are.
    """
    if _patterns(schema) * _letters(value) > MATCHED:
        return True
    return bool(_compiled(json.dumps(schema)).is_valid(value))


def example(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A small input that an admitted schema takes, as far as one can be made up."""
    try:
        made = _Sampling().of(schema)
    except _TooMuch:
        return {}
    return made if isinstance(made, dict) and is_valid(made, schema) else {}


def _read(schema: Any) -> Any:
    """The same, as JSON that can be stored and digested."""
    try:
        return json.loads(json.dumps(schema), max_bytes=LARGEST, max_depth=CHECKED_TO)
    except (TypeError, ValueError):
        raise Unfit("not_json") from None
    except json.BadJSON as bad:
        raise Unfit(_RULES.get(bad.rule, "not_json")) from None


def _look(schema: Any) -> None:
    """Look at every part, wherever it stands: a pointer inside may lead to any of them."""
    for part in _parts(schema):
        if isinstance(part, dict):
            _look_at(part)


def _look_at(part: dict[str, Any]) -> None:
    for name in REFERENCES & part.keys():
        if isinstance(part[name], str) and not part[name].startswith("#"):
            raise Unfit("foreign_reference")
    dialect = part.get("$schema")
    if isinstance(dialect, str) and dialect.rstrip("#") not in DIALECTS:
        raise Unfit("dialect")


class _Admission:
    """One schema on its way in."""

    def __init__(self, document: Any) -> None:
        self._document = document
        self._left = SUBSCHEMAS
        self.patterns: set[str] = set()

    def whole(self) -> dict[str, Any]:
        return self._of(self._document, 1, ())

    def _of(self, schema: Any, depth: int, inside: tuple[str, ...]) -> dict[str, Any]:
        if isinstance(schema, bool):
            schema = {} if schema else {"not": {}}
        if not isinstance(schema, dict):
            raise Unfit("not_a_schema")
        self._left -= 1
        if depth > DEEPEST:
            raise Unfit("too_deep")
        if self._left < 0:
            raise Unfit("too_many_subschemas")
        made = self._keywords(schema, depth, inside)
        for name in ("$dynamicRef", "$recursiveRef"):
            if name in schema:
                raise Unfit("dynamic_reference")
        pointer = schema.get("$ref")
        if pointer is None:
            return made
        if not isinstance(pointer, str):
            raise Unfit("not_a_schema")
        if pointer in inside:  # it holds its own kind: from here on anything is taken
            return made
        target = self._of(self._found(pointer), depth + 1, (*inside, pointer))
        if made.keys() <= WORDS | {"default", "examples", "deprecated"}:
            return {**target, **made}
        return {**made, "allOf": [*made.get("allOf", ()), target]}

    def _keywords(
        self, schema: dict[str, Any], depth: int, inside: tuple[str, ...]
    ) -> dict[str, Any]:
        def below(part: Any) -> dict[str, Any]:
            return self._of(part, depth + 1, inside)

        made: dict[str, Any] = {}
        for name, value in schema.items():
            if name in MAPS and isinstance(value, dict):
                made[name] = {self._name(key, name): below(part) for key, part in value.items()}
            elif name in LISTS and isinstance(value, list):
                made[name] = [below(part) for part in value]
            elif name == "items" and isinstance(value, list):  # as draft-07 writes a tuple
                made["prefixItems"] = [below(part) for part in value]
                if "additionalItems" in schema:
                    made["items"] = _boolean_or(schema["additionalItems"], below)
            elif name in SINGLE:
                made[name] = _boolean_or(value, below)
            elif name in WORDS and isinstance(value, str):
                made[name] = texts.shown(value)
            elif name in PLAIN:
                made[name] = self._pattern(value) if name == "pattern" else _plain(value)
        return made

    def _name(self, key: str, where: str) -> str:
        if where == "patternProperties":
            return self._pattern(key)
        if len(key) > LONGEST_NAME or not key or not texts.is_plain(key):
            raise Unfit("property_name")
        return key

    def _pattern(self, value: Any) -> str:
        if not isinstance(value, str) or len(value) > LONGEST_PATTERN:
            raise Unfit("pattern")
        self.patterns.add(value)
        return str(_plain(value))

    def _found(self, pointer: str) -> Any:
        """The part that a local pointer names."""
        if pointer != "#" and not pointer.startswith("#/"):
            raise Unfit("reference")  # an anchor, which we do not look for
        found = self._document
        for step in pointer[2:].split("/") if pointer != "#" else ():
            if len(step) > LONGEST_STEP:
                raise Unfit("reference")
            key = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and key.isdecimal() and int(key) < len(found):
                found = found[int(key)]
            elif isinstance(found, dict) and key in found:
                found = found[key]
            else:
                raise Unfit("reference")
        return found


def _boolean_or(value: Any, below: Callable[[Any], dict[str, Any]]) -> Any:
    return value if isinstance(value, bool) else below(value)


def _plain(value: Any) -> Any:
    """A value that stands in a schema, where no text in it hides anything."""
    for part in _parts(value):
        said = (part,) if isinstance(part, str) else part if isinstance(part, dict) else ()
        if not all(map(texts.is_plain, said)):
            raise Unfit("hidden_text")
    return value


def _check(schema: Mapping[str, Any], patterns: Collection[str]) -> None:
    """Return where a validator can be made of it, in pieces that are each a short time."""
    try:
        jsonschema_rs.meta.validate(dict(schema))
    except (jsonschema_rs.ValidationError, ValueError):
        raise Unfit("invalid") from None
    for pattern in sorted(patterns):
        _compile({"pattern": pattern})


@lru_cache(maxsize=COMPILED)
def _compiled(schema: bytes) -> Any:
    """The validator of an admitted schema; what is used again was made once."""
    return _compile(json.loads(schema))


def _compile(schema: dict[str, Any]) -> Any:
    """A validator in which no pattern takes longer than its text is long."""
    try:
        return jsonschema_rs.Draft202012Validator(
            schema, retriever=_refuse, pattern_options=SMALL, validate_formats=True
        )
    except (jsonschema_rs.ValidationError, ValueError):
        raise Unfit("invalid") from None


def _refuse(_uri: str) -> Any:
    raise Unfit("foreign_reference")


def _patterns(schema: Mapping[str, Any]) -> int:
    """How many patterns there are, wherever they stand."""
    parts = [part for part in _parts(dict(schema)) if isinstance(part, dict)]
    named = (part.get("patternProperties") for part in parts)
    by_name = sum(len(each) for each in named if isinstance(each, dict))
    return sum("pattern" in part for part in parts) + by_name


def _letters(value: Any) -> int:
    """How long all the texts and names in a value are together."""
    parts = list(_parts(value))
    texts_of = (part for part in parts if isinstance(part, str))
    names_of = (name for part in parts if isinstance(part, dict) for name in part)
    return sum(map(len, texts_of)) + sum(map(len, names_of))


def _parts(value: Any) -> Iterator[Any]:
    """A value, and everything in it."""
    left = [value]
    while left:
        part = left.pop()
        yield part
        if isinstance(part, dict):
            left += part.values()
        elif isinstance(part, list):
            left += part


class _TooMuch(Exception):
    """An example would be too large."""


class _Sampling:
    """One example while it is made up; so many values, and it is given up."""

    def __init__(self) -> None:
        self._left = SAMPLED

    def of(self, schema: Mapping[str, Any]) -> Any:
        """A value that `schema` may take."""
        self._count()
        for name in ("default", "const"):
            if name in schema:
                return self._given(schema[name])
        for name in ("examples", "enum"):
            if isinstance(found := schema.get(name), list) and found:
                return self._given(found[0])
        for name in ("allOf", "anyOf", "oneOf"):
            if schema.get(name) and "properties" not in schema:
                return self.of(schema[name][0])
        kind = schema.get("type")
        return self._of_kind(kind[0] if isinstance(kind, list) and kind else kind, schema)

    def _of_kind(self, kind: Any, schema: Mapping[str, Any]) -> Any:
        match kind:
            case "object":
                parts = schema.get("properties", {})
                needed = [name for name in schema.get("required", ()) if name in parts]
                return {name: self._below(parts[name]) for name in needed}
            case "array":
                least = schema.get("minItems", 0)
                number = min(int(least), 10)
                return [self._below(schema.get("items")) for _ in range(number)]
            case "integer" | "number":
                return schema.get("minimum", 1)
            case "boolean":
                return True
            case "null":
                return None
        return "text"

    def _below(self, schema: Any) -> Any:
        return self.of(schema) if isinstance(schema, Mapping) else "text"

    def _given(self, value: Any) -> Any:
        """What the schema itself gives, each part of it counted."""
        for _ in _parts(value):
            self._count()
        return value

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise _TooMuch
