"""Definitions that come from a tenant's own rows, beside those that packs declare.

A source is a slice above this one, found by its module, which ends in `SOURCE`; codes that begin
with its prefix are its alone. What it defines is published, retired and overridden like what packs
declare, and its external commands it performs itself.
"""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from sqlmodel import Session

from app.commands.stored import StoredDefinition

if TYPE_CHECKING:
    from app.commands.external import Performer

PLACES = ("app.outside.source",)
RESERVED = ("mcp.",)  # no pack's command begins so (RUN-96)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A slice that defines commands.

    Attributes:
        prefix: of all its codes, one of `RESERVED`.
        definitions: what it defines in a tenant now, by code.
        perform: does what its external commands order.
    """

    prefix: str
    definitions: Callable[[Session, str], Mapping[str, StoredDefinition]]
    perform: "Performer"


def definitions(session: Session, tenant_id: str) -> dict[str, StoredDefinition]:
    """What every source defines in a tenant, by code."""
    return {
        code: definition
        for source in found()
        for code, definition in source.definitions(session, tenant_id).items()
    }


def of(code: str) -> Source | None:
    """The source a command is of, None where it is a pack's."""
    if not is_reserved(code):
        return None
    return next((source for source in found() if code.startswith(source.prefix)), None)


def is_reserved(code: str) -> bool:
    """Whether no pack may have a command of this code."""
    return code.startswith(RESERVED)


@cache
def found() -> tuple[Source, ...]:
    """Every source.

    Raises:
        RuntimeError: a module has not what it must have.
    """
    return tuple(_source(place) for place in PLACES)


def _source(place: str) -> Source:
    source: Any = getattr(importlib.import_module(place), "SOURCE", None)
    if not isinstance(source, Source) or source.prefix not in RESERVED:
        raise RuntimeError(f"{place} has no SOURCE")
    return source
