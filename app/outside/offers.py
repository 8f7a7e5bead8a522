"""What a server offers, as it is taken in: named, described, pinned, or refused with the reason.

The pin is the SHA-256 of what the server said, word for word; what is kept to be shown and used is
what was admitted of it.
"""

import hashlib
import json as plain_json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from app.outside import names, schemas, texts
from app.outside.schemas import Spare, Unfit

TOOLS = 200  # of one server
LARGEST = 1 << 20  # bytes of a whole list, as JSON
KEPT_NAME = 128  # characters of a name that is not taken


@dataclass(frozen=True, slots=True)
class Listed:
    """A tool as its server lists it; nothing of it is believed."""

    name: str
    description: str
    input_schema: Any
    output_schema: Any


@dataclass(frozen=True, slots=True)
class Offer:
    """A tool as it could be used.

    Attributes:
        local: what it is called here; empty where its name is not taken.
        content: `description`, `input` and `output` (schemas, admitted; `output` may be None).
        unfit: the rule that refuses it; empty: it can be enabled.
    """

    name: str
    local: str
    pin: str
    content: Mapping[str, Any]
    unfit: str = ""


def of(listed: Iterable[Listed], pinned: Mapping[str, Offer] | None = None) -> list[Offer]:
    """Every tool of a server; where `pinned` is given, those of it alone, by name.

    What is still what was pinned is not looked at again.

    Raises:
        Unfit: there are too many, they are too large together, or two have one name.
    """
    tools = list(listed)
    if len(tools) > TOOLS:
        raise Unfit("too_many_tools")
    if len({tool.name for tool in tools}) < len(tools):
        raise Unfit("same_name")
    said = [_said(tool) for tool in tools]
    if sum(map(len, said)) > LARGEST:
        raise Unfit("list_too_large")
    doubled, spare = names.doubled(tool.name for tool in tools), schemas.of_list()
    found = []
    for tool, words in zip(tools, said, strict=True):
        if pinned is not None and tool.name not in pinned:
            continue
        had, pin = (pinned or {}).get(tool.name), _digest(words)
        is_same = had is not None and had.pin == pin
        found.append(had if had and is_same else _offer(tool, pin, doubled, spare))
    return found


def pin(tool: Listed) -> str:
    """SHA-256, hex, of name, description and schemas, as the server says them."""
    return _digest(_said(tool))


def _said(tool: Listed) -> bytes:
    said = [tool.name, tool.description, tool.input_schema, tool.output_schema]
    return plain_json.dumps(said, sort_keys=True).encode()


def _digest(said: bytes) -> str:
    return hashlib.sha256(said).hexdigest()


def _offer(tool: Listed, pin: str, doubled: frozenset[str], above: Spare) -> Offer:
    content: dict[str, Any] = {"description": texts.shown(tool.description.strip())}
    local, unfit = names.local(tool.name) or "", ""
    spare = schemas.of_tool(above)
    try:
        _check_name(tool, doubled)
        content["input"] = schemas.admitted(tool.input_schema, spare)
        given = tool.output_schema
        content["output"] = None if given is None else schemas.admitted(given, spare)
    except Unfit as fault:
        unfit = fault.rule
    name = tool.name if local else texts.shown(tool.name, KEPT_NAME)
    return Offer(name, local, pin, content, unfit)


def _check_name(tool: Listed, doubled: frozenset[str]) -> None:
    if names.local(tool.name) is None:
        raise Unfit("name")
    if tool.name in doubled:
        raise Unfit("same_name_here")
