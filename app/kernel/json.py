"""JSON in and out: one strict loader for what comes from outside, one writer, one canonical form.

Plain FastAPI takes NaN, duplicate keys (the last one wins), lone surrogates, NUL and 30 MB bodies
(measured). Each of them breaks a digest, so that what was approved is not what runs, or breaks the
database later. They are refused at the door (SEC-48).
"""

import json
from typing import Any

import orjson
import rfc8785

from app.kernel.errors import FieldError, Invalid
from app.kernel.i18n import N_

MAX_BYTES = 1 << 20
MAX_DEPTH = 64
MAX_NODES = 20_000  # keys and values together
MAX_NODES_AUN = 200_000  # envelopes list their recipients
MAX_INTEGER = 2**53 - 1  # beyond it RFC 8785 cannot tell numbers apart
WRITTEN_AS_FLOAT = 1e21  # from here on RFC 8785 writes an exponent

TOO_BIG = N_("An integer is beyond 2^53-1; send it as a text.")

_PLAIN_ONLY = (  # a time or an object has no canonical form of its own
    orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_SUBCLASS
)


class BadJSON(Invalid):
    """The text is not JSON we accept; its one field error names the rule and is safe to show."""

    reason = "invalid_json"
    says = N_("The body is not JSON that can be accepted.")

    def __init__(self, rule: str) -> None:
        super().__init__(FieldError("", rule))
        self.rule = rule


def loads(
    raw: bytes,
    *,
    max_bytes: int = MAX_BYTES,
    max_depth: int = MAX_DEPTH,
    max_nodes: int = MAX_NODES,
) -> Any:
    """The value of `raw`, every part of it safe to store and to digest.

    Raises:
        BadJSON: too large or too deep, malformed, a duplicate key, a number or a string that does
            not survive a round trip.
    """
    if len(raw) > max_bytes:
        raise BadJSON(N_("It is too large."))
    try:
        text = raw.decode("utf-8")
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except BadJSON:
        raise
    except (ValueError, RecursionError):  # UTF-8, syntax, 4,300 digits, deep nesting
        raise BadJSON(N_("It is malformed.")) from None  # the original quotes the body
    _check_all(value, max_depth, max_nodes)
    return value


def of_column(stored: Any) -> Any:
    """What a JSON column holds, as prepared SQL finds it: text in SQLite, a value in PostgreSQL."""
    return orjson.loads(stored) if isinstance(stored, str) else stored


def dumps(value: Any) -> bytes:
    """`value` as compact JSON; aware times become RFC 3339, ending in `Z` for UTC."""
    return orjson.dumps(value, option=orjson.OPT_UTC_Z)


def dumps_sorted(value: Any) -> bytes:
    """`value` with its keys in order, 60 times as fast as `canonical`.

    For plain values with ASCII keys, without floats and with integers up to 2^53-1 the bytes are
    those of RFC 8785: the rows of the audit chain are such (SEC-75).
    """
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS | _PLAIN_ONLY)


def canonical(value: Any) -> bytes:
    """`value` in the canonical form of RFC 8785: what a digest is taken of.

    Raises:
        ValueError: a part of it has no canonical form.
    """
    return dumps_sorted(value) if _is_simple(value) else rfc8785.dumps(value)


def _is_simple(value: Any) -> bool:
    """Whether `dumps_sorted` gives the same bytes: what most inputs are."""
    kind = type(value)
    if isinstance(value, str):
        return kind is str and value.isascii()
    if kind is dict:
        return all(
            type(key) is str and key.isascii() and _is_simple(item) for key, item in value.items()
        )
    if kind is list:
        return all(map(_is_simple, value))
    return value is None or kind is bool or (kind is int and -MAX_INTEGER <= value <= MAX_INTEGER)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise BadJSON(N_("A key stands twice in one object."))
    return made


def _constant(_name: str) -> Any:
    raise BadJSON(N_("NaN and Infinity are no JSON numbers."))


def _check_all(value: Any, max_depth: int, max_nodes: int) -> None:
    nodes, depth, level = 0, 0, [value]
    while level:  # level by level: the depth is their number, and nothing recurses
        nodes, depth = nodes + len(level), depth + 1
        if depth > max_depth:
            raise BadJSON(N_("It is nested too deeply."))
        if nodes > max_nodes:
            raise BadJSON(N_("It has too many keys and values."))
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below += [*item.keys(), *item.values()]
            elif isinstance(item, list):
                below += item
            else:
                _check(item)
        level = below


def _check(item: Any) -> None:
    match item:
        case str():
            if "\x00" in item:
                raise BadJSON(N_("A text contains a NUL character."))
            try:
                item.encode()
            except UnicodeEncodeError:
                raise BadJSON(N_("A text contains half a character (a lone surrogate).")) from None
        case float():
            if item in (float("inf"), float("-inf")):  # what 1e999 parses to
                raise BadJSON(N_("A number is out of range."))
            if MAX_INTEGER < abs(item) < WRITTEN_AS_FLOAT:  # its canonical form is an integer
                raise BadJSON(TOO_BIG)
        case int():
            if abs(item) > MAX_INTEGER:
                raise BadJSON(TOO_BIG)
