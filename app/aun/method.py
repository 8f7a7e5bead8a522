"""One entry of the method table: what runs, with which parameters, at which cost."""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, get_type_hints

from pydantic import BaseModel
from sqlmodel import Session

from app.aun.caller import Caller, Door
from app.aun.wire import Params
from app.kernel.db import Work

Answer = BaseModel | dict[str, Any]
Prepare = Callable[[Caller, Any], Awaitable[Any]]
EVERY_DOOR = frozenset(Door)


class Cost(StrEnum):
    """Which window a call counts in (aun.md, 10)."""

    SEND = "aun_send"
    OTHER = "aun_other"


@dataclass(frozen=True, slots=True)
class Method:
    """A method of the protocol.

    Attributes:
        run: `(work, caller, params)` of a write, `(session, caller, params)` of a read.
        params: the model of its parameters.
        prepare: awaited before the transaction, for what takes long (cryptography); gives what to
            run with.
    """

    run: Callable[..., Answer]
    params: type[Params]
    cost: Cost = Cost.OTHER
    prepare: Prepare | None = None
    doors: frozenset[Door] = EVERY_DOOR


def write(
    run: Callable[[Work, Caller, Any], Answer],
    *,
    cost: Cost = Cost.OTHER,
    prepare: Prepare | None = None,
    doors: frozenset[Door] = EVERY_DOOR,
) -> Method:
    """An entry of a family's `WRITES`; the parameters' model is what its first step takes."""
    return Method(run, _params_of(prepare or run), cost, prepare, doors)


def read(
    run: Callable[[Session, Caller, Any], Answer],
    *,
    prepare: Prepare | None = None,
    doors: frozenset[Door] = EVERY_DOOR,
) -> Method:
    """An entry of a family's `READS`."""
    return Method(run, _params_of(prepare or run), Cost.OTHER, prepare, doors)


def _params_of(run: Callable[..., Any]) -> type[Params]:
    last = list(inspect.signature(run).parameters)[-1]
    found: type[Params] = get_type_hints(run)[last]
    return found
