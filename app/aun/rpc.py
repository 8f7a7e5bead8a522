"""One call of a method: found, limited, understood, run in one transaction, answered.

The same table and the same checks serve the socket, `/aun/rpc`, the console and hosted agents.
"""

import importlib
import pkgutil
from functools import cache
from typing import Any, TypeVar

import structlog
from pydantic import BaseModel, ValidationError
from sqlalchemy import Connection
from sqlmodel import Session

from app.access import acting
from app.aun import client_signatures, frames, methods, queries
from app.aun.buckets import Buckets
from app.aun.caller import Caller, Stranger
from app.aun.errors import (
    AunError,
    BadParams,
    NotAdmitted,
    NotAParty,
    NotConnected,
    Throttled,
    UnknownMethod,
)
from app.aun.frames import Request
from app.aun.method import Method
from app.aun.models import IdentityKind
from app.aun.wire import Params
from app.kernel import clock, db, ids, json, metrics
from app.kernel.db import Work
from app.kernel.errors import AppError, Busy, Invalid, NotFound, PermissionDenied, TooMany
from app.kernel.i18n import N_

P = TypeVar("P", bound=Params)

log = structlog.get_logger(__name__)

calls = metrics.counter("aun_calls", "Calls of AUN methods that are over.", ["outcome"])
_done, _refused, _failed = map(calls.labels, ("done", "refused", "failed"))


class Internal(AunError):
    """Something nobody expected; the cause is in the log, under the trace id."""

    code = -32603
    reason = "internal_error"
    status = 500
    says = N_("Something went wrong on our side.")


class Degraded(AunError):
    """The database had no place in time; clients know these words as a reason to try again."""

    code = -32002
    reason = "busy"
    status = 503
    says = Busy.says


@cache
def table() -> dict[str, tuple[Method, bool]]:
    """Every method by its name on the wire, and whether it writes."""
    return {name: (method, False) for name, method in _collected("READS").items()} | {
        name: (method, True) for name, method in _collected("WRITES").items()
    }


@cache
def before() -> dict[str, Method]:
    """The methods of a socket that has not authenticated."""
    return _collected("BEFORE")


def _collected(kind: str) -> dict[str, Method]:
    found: dict[str, Method] = {}
    for module in pkgutil.iter_modules(methods.__path__):
        family = importlib.import_module(f"{methods.__name__}.{module.name}")
        found |= getattr(family, kind, {})
    return found


_buckets = Buckets()


async def answer(caller: Caller, request: Request) -> bytes | None:
    """The frame that answers a request; None for a notification, which has run all the same."""
    try:
        value = await call(caller, request.method, request.params)
        told = frames.result(request.id, value)
    except AunError as error:
        told = frames.failure(request.id, error, ids.ulid())
    except Exception:
        trace_id = ids.ulid()
        log.exception("aun_method_failed", trace_id=trace_id)
        told = frames.failure(request.id, Internal("internal error"), trace_id)
    return None if request.id is None else told


async def call(caller: Caller, name: str, params: dict[str, Any]) -> dict[str, Any]:
    """Run a method with parameters from outside.

    Raises:
        AunError: it was refused, whatever the reason.
    """
    try:
        found = await _called(caller, name, params)
    except AunError:
        _refused.inc()
        raise
    except AppError as error:
        _refused.inc()
        raise in_aun_words(error) from error
    except Exception:
        _failed.inc()
        raise
    _done.inc()
    return found


async def _called(caller: Caller, name: str, params: dict[str, Any]) -> dict[str, Any]:
    method, _ = _method(caller, name)
    _buckets.take(caller.aid, method.cost)
    if client_signatures.FIELD in params:
        await client_signatures.check(caller, name, params)
    return await _run(caller, name, params)


async def invoke(caller: Caller, name: str, params: dict[str, Any]) -> dict[str, Any]:
    """Run a method for a page or a run of this server: the same table, transaction and refusals.

    Raises:
        AunError, AppError: it was refused.
    """
    return await _run(caller, name, params)


async def _run(caller: Caller, name: str, params: dict[str, Any]) -> dict[str, Any]:
    method, writes = _method(caller, name)
    ready = understood(method.params, params)
    if method.prepare is not None:
        ready = await method.prepare(caller, ready)
    if writes:
        return await db.transaction(_written, method, caller, ready)
    return await db.read(_read, method, caller, ready)


async def call_before(stranger: Stranger, name: str, params: dict[str, Any]) -> dict[str, Any]:
    """Run a method of a socket that has not authenticated.

    Raises:
        NotConnected: it is one for those who have.
        AunError: it was refused, whatever the reason.
    """
    method = before().get(name)
    if method is None:
        raise NotConnected("call auth.connect first")
    try:
        ready = understood(method.params, params)
        return await db.transaction(_written_before, method, stranger, ready)
    except AunError:
        raise
    except AppError as error:
        raise in_aun_words(error) from error


def understood(model: type[P], params: dict[str, Any]) -> P:
    """The parameters as a model.

    Raises:
        BadParams: they do not fit; names the first that does not.
    """
    try:
        return model.model_validate(params)
    except ValidationError as fault:
        first = fault.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise BadParams(f"invalid params: {where}: {first['msg']}") from None


def _method(caller: Caller, name: str) -> tuple[Method, bool]:
    found = table().get(name)
    if found is None or caller.door not in found[0].doors:
        raise UnknownMethod(f"method not found: {name[:100]}")
    return found


def _written(work: Work, method: Method, caller: Caller, params: Any) -> dict[str, Any]:
    if caller.principal is not None:  # disabled meanwhile: nothing of theirs commits (SEC-33)
        acting.now_acting(work.connection, caller.principal, clock.now())
    _check_stands(work.connection, caller)
    return _plain(method.run(work, caller, params))


def _written_before(work: Work, method: Method, stranger: Stranger, params: Any) -> dict[str, Any]:
    return _plain(method.run(work, stranger, params))


def _read(session: Session, method: Method, caller: Caller, params: Any) -> dict[str, Any]:
    _check_stands(session.connection(), caller)
    return _plain(method.run(session, caller, params))


def _check_stands(connection: Connection, caller: Caller) -> None:
    is_outside = caller.kind == IdentityKind.OUTSIDE
    if is_outside and not queries.stands(connection, caller.tenant_id, caller.aid):
        raise NotAdmitted("aid is blocked", retryable=False)


def _plain(found: BaseModel | dict[str, Any]) -> dict[str, Any]:
    if isinstance(found, BaseModel):
        return found.model_dump(mode="json", by_alias=True, exclude_none=True)
    return found


def in_aun_words(error: AppError) -> AunError:
    """A refusal of the platform as clients of AUN know it."""
    match error:
        case TooMany():
            return Throttled(retry_after_ms=error.retry_after_s * 1_000)
        case Busy():
            return Degraded("gateway service degraded", retryable=True)
        case NotFound() | PermissionDenied():
            return NotAParty(error.reason.replace("_", " "))
        case Invalid():
            first = error.errors[0] if error.errors else None
            return BadParams(f"invalid params: {first.pointer}: {first.says}" if first else "")
        case _:
            return NotAParty(error.reason.replace("_", " "))


def size_of(value: Any) -> int:
    """How many bytes a value takes in a frame."""
    return len(json.dumps(value))
