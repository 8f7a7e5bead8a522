"""Effects outside that a committed call ordered: sent at most once, or at least once with a key.

The transaction wrote `dispatched`; what came of it is a second entry of the same call: `done`,
`failed` or `unknown`. An effect that may have happened is never repeated by the system (CMD-27).
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

import structlog
from sqlmodel import Session, col, select

from app.audit import trail
from app.audit.models import AuditEntry
from app.audit.trail import NewEntry
from app.commands import backoff, expressions, published, sources, told
from app.commands.models import CommandOutcome
from app.commands.outbox_models import EffectState, ExternalEffect
from app.kernel import clock, db, json, sealing
from app.kernel.db import Work
from app.kernel.due import is_away
from app.kernel.events import Event
from app.kernel.prepared import Prepared

if TYPE_CHECKING:
    from app.commands.context import Context

log = structlog.get_logger(__name__)

LEASE = timedelta(minutes=2)
LIMIT_S = 60.0  # for one performance
AT_ONCE = 50
HIDDEN = "secret"

_INSERT = Prepared(
    "INSERT INTO external_effect (tenant_id, call_id, code, performer, is_idempotent, user_id, "
    "record_type, record_id, sealed, state, attempts, due_at, last_error, created_at) "
    "VALUES (:tenant_id, :call_id, :code, :performer, :is_idempotent, :user_id, "
    ":record_type, :record_id, :sealed, 'waiting', 0, :now, '', :now)"
)
_START = Prepared(
    "UPDATE external_effect SET state = 'started', attempts = attempts + 1, leased_until = :until "
    "WHERE tenant_id = :tenant_id AND call_id = :call_id AND attempts = :attempts "
    "AND state IN ('waiting', 'started') AND (leased_until IS NULL OR leased_until <= :now)"
)
_AGAIN = Prepared(
    "UPDATE external_effect SET state = 'waiting', leased_until = NULL, due_at = :due_at, "
    "last_error = :last_error "
    "WHERE tenant_id = :tenant_id AND call_id = :call_id AND attempts = :attempts "
    "AND state = 'started'"
)
_SETTLE = Prepared(
    "UPDATE external_effect SET state = :state, leased_until = NULL, result = :result, "
    "last_error = :last_error, settled_at = :now "
    "WHERE tenant_id = :tenant_id AND call_id = :call_id AND attempts = :attempts "
    "AND state = 'started'"
)
_GIVE_UP = Prepared(
    "UPDATE external_effect SET state = 'unknown', leased_until = NULL, "
    "last_error = :last_error, settled_at = :now "
    "WHERE tenant_id = :tenant_id AND call_id = :call_id AND state IN ('waiting', 'started')"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalRequest:
    """What a performer is asked to do.

    Attributes:
        key: the same for every try of one call; the other side may tell repeats by it.
        performer: the name by which it was found, and by which an address is set.
        user_id: for whom it is done.
    """

    tenant_id: str
    call_id: str
    code: str
    performer: str
    key: str
    is_idempotent: bool
    attempt: int
    data: Mapping[str, Any]
    user_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalResult:
    """What came of it.

    Attributes:
        outcome: `unknown` where it was sent and no answer tells.
        may_retry: the other side surely did nothing, or tells repeats apart: try again later.
        data: of the answer, for the caller; plain JSON.
    """

    outcome: Literal["done", "failed", "unknown"]
    reason: str = ""
    may_retry: bool = False
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectSettled(Event):
    """An effect outside ended; told inside the transaction that writes it down."""

    call_id: str
    code: str
    outcome: str
    result: Mapping[str, Any]


Performer = Callable[[ExternalRequest], Awaitable[ExternalResult]]

performers: dict[str, Performer] = {}


def put(ctx: "Context") -> None:
    """Order the effect, in the transaction of the call that writes `dispatched`."""
    principal, record = ctx.call.principal, ctx.record
    _INSERT.run(
        ctx.work.connection,
        tenant_id=principal.tenant_id,
        call_id=ctx.call.call_id,
        code=ctx.command.code,
        performer=told.performer(ctx.command),
        is_idempotent=ctx.command.idempotent,
        user_id=principal.user_id,
        record_type=record.RECORD if record is not None else None,
        record_id=record.id if record is not None else None,
        sealed=sealing.seal(
            json.dumps(told.request(ctx)), _purpose(principal.tenant_id, ctx.call.call_id)
        ),
        now=ctx.now,
    )


def shown(ctx: "Context") -> dict[str, Any]:
    """What would be asked for, without secrets."""
    asked = told.request(ctx, is_preview=True)
    declared = next((call.data for call in ctx.command.api_calls if call.data), None)
    if declared is not None:
        return {
            name: HIDDEN if _reads_a_secret(declared[name], ctx.command.secrets) else value
            for name, value in asked.items()
        }
    plain: dict[str, Any] = _without(asked, ctx.command.secrets)
    return plain


def one(session: Session, tenant_id: str, call_id: str) -> ExternalEffect | None:
    """The effect of a call, if it ordered one."""
    query = select(ExternalEffect).where(
        ExternalEffect.tenant_id == tenant_id, ExternalEffect.call_id == call_id
    )
    return session.exec(query).first()


def unknown(session: Session, tenant_id: str, limit: int = 100) -> list[ExternalEffect]:
    """Effects that may have happened, the newest first: a person has to find out (CMD-27)."""
    query = (
        select(ExternalEffect)
        .where(ExternalEffect.tenant_id == tenant_id, ExternalEffect.state == EffectState.UNKNOWN)
        .order_by(col(ExternalEffect.created_at).desc())
        .limit(limit)
    )
    return list(session.exec(query).all())


def due(session: Session, more: int = 0) -> list[tuple[str, str]]:
    """Keys of effects whose time has come, and of those whose performer was lost."""
    now = clock.now()
    query = (
        select(ExternalEffect.tenant_id, ExternalEffect.call_id)
        .where(
            col(ExternalEffect.state).in_([EffectState.WAITING, EffectState.STARTED]),
            ExternalEffect.due_at <= now,
            col(ExternalEffect.leased_until).is_(None) | (col(ExternalEffect.leased_until) <= now),
        )
        .order_by(col(ExternalEffect.due_at))
        .limit(AT_ONCE + more)
    )
    return list(session.exec(query).all())


async def perform(effect: ExternalEffect, otherwise: Performer) -> None:
    """Take one effect that is due, have it performed, and write down what came of it.

    Its source performs it, or who registered for its name, or else `otherwise`.
    """
    was_started = effect.state == EffectState.STARTED
    if not await db.transaction(_start, effect):
        return  # somebody else has it
    attempt = effect.attempts + 1
    if was_started and (not effect.is_idempotent or attempt > backoff.TRIES):
        lost = ExternalResult(outcome="unknown", reason="performer_lost")
        await _write_down(effect, attempt, lost)
        return
    try:
        data = _opened(effect)
    except Exception:  # whatever is wrong with what was sealed will not change
        log.exception("effect_unreadable", tenant_id=effect.tenant_id, call_id=effect.call_id)
        outcome: Literal["failed", "unknown"] = "unknown" if effect.attempts else "failed"
        await _write_down(effect, attempt, ExternalResult(outcome=outcome, reason="unreadable"))
        return
    request = ExternalRequest(
        tenant_id=effect.tenant_id,
        call_id=effect.call_id,
        code=effect.code,
        performer=effect.performer,
        key=effect.call_id,
        is_idempotent=effect.is_idempotent,
        attempt=attempt,
        data=data,
        user_id=effect.user_id,
    )
    result = await _perform(_performer(effect, otherwise), request)
    if result.may_retry and attempt < backoff.TRIES:
        await db.transaction(_again, effect, attempt, result)
    else:
        await _write_down(effect, attempt, result)


def give_up(work: Work, tenant_id: str, call_id: str) -> None:
    """Let a person find out what came of an effect that nobody can take on, or put on record."""
    key = {"tenant_id": tenant_id, "call_id": call_id}
    _GIVE_UP.run(work.connection, last_error="given_up", now=clock.now(), **key)


async def _write_down(effect: ExternalEffect, attempt: int, result: ExternalResult) -> None:
    """Settle it; who hears of it may fail, and must not have it performed once more."""
    try:
        await db.transaction(_settle, effect, attempt, result)
    except Exception as fault:
        if is_away(fault):
            raise
        log.exception("effect_not_told", tenant_id=effect.tenant_id, call_id=effect.call_id)
        await db.transaction(_settle, effect, attempt, result, tells=False)


def _performer(effect: ExternalEffect, otherwise: Performer) -> Performer:
    if (source := sources.of(effect.code)) is not None:
        return source.perform
    return performers.get(effect.performer, otherwise)


async def _perform(performer: Performer, request: ExternalRequest) -> ExternalResult:
    try:
        async with asyncio.timeout(LIMIT_S):
            return await performer(request)
    except Exception as fault:  # whatever it was, it may have been sent already
        log.exception("performer_failed", performer=request.performer)
        reason = type(fault).__name__
        return ExternalResult(outcome="unknown", reason=reason, may_retry=request.is_idempotent)


def _start(work: Work, effect: ExternalEffect) -> bool:
    """Write down that it is about to be sent; False where somebody else was faster."""
    now = clock.now()
    started = _START.run(
        work.connection,
        tenant_id=effect.tenant_id,
        call_id=effect.call_id,
        attempts=effect.attempts,
        until=now + LEASE,
        now=now,
    )
    return started.rowcount == 1


def _again(work: Work, effect: ExternalEffect, attempt: int, result: ExternalResult) -> None:
    _AGAIN.run(
        work.connection,
        tenant_id=effect.tenant_id,
        call_id=effect.call_id,
        attempts=attempt,
        due_at=clock.now() + backoff.after(attempt),
        last_error=result.reason[:200],
    )


def _settle(
    work: Work,
    effect: ExternalEffect,
    attempt: int,
    result: ExternalResult,
    *,
    tells: bool = True,
) -> None:
    settled = _SETTLE.run(
        work.connection,
        tenant_id=effect.tenant_id,
        call_id=effect.call_id,
        attempts=attempt,
        state=result.outcome,
        result=result.data,
        last_error=result.reason[:200],
        now=clock.now(),
    )
    if settled.rowcount != 1:
        return  # its lease ran out meanwhile, and whoever took it wrote down what is known
    if tells:
        put_on_record(work, effect, result)
    else:
        _record(work, effect, result)


def put_on_record(work: Work, effect: ExternalEffect, result: ExternalResult) -> None:
    """Say what came of an effect: in one more entry of its call, to repeats, and to who listens."""
    _record(work, effect, result)
    _answer_repeats(work, effect, result)
    work.announce(
        EffectSettled(
            tenant_id=effect.tenant_id,
            call_id=effect.call_id,
            code=effect.code,
            outcome=result.outcome,
            result=result.data,
        )
    )


def ordered_by(session: Session, effect: ExternalEffect) -> AuditEntry | None:
    """The entry of the call that ordered an effect."""
    query = (
        select(AuditEntry)
        .where(AuditEntry.tenant_id == effect.tenant_id, AuditEntry.call_id == effect.call_id)
        .where(AuditEntry.outcome == "dispatched")
        .order_by(col(AuditEntry.seq))
    )
    return session.exec(query).first()


def _record(work: Work, effect: ExternalEffect, result: ExternalResult) -> None:
    if (first := ordered_by(work.session, effect)) is not None:
        trail.append(work, _second_entry(first, result))


def _second_entry(first: AuditEntry, result: ExternalResult) -> NewEntry:
    """Of the same call, with the same facts; when and what is new."""
    kept = (each.name for each in fields(NewEntry) if each.name in AuditEntry.model_fields)
    same = {name: getattr(first, name) for name in kept}
    new = {
        "at": clock.now(),
        "outcome": result.outcome,
        "reason": result.reason[:64] or None,
        "changes": None,
        "timings": None,
    }
    return NewEntry(**{**same, **new})


def _answer_repeats(work: Work, effect: ExternalEffect, result: ExternalResult) -> None:
    """Whoever asks for the call, or repeats its key, hears what came of it (CMD-9)."""
    query = select(CommandOutcome).where(
        CommandOutcome.tenant_id == effect.tenant_id, CommandOutcome.call_id == effect.call_id
    )
    kept = work.session.exec(query).first()
    if kept is None or kept.outcome is None:
        return
    outside = {"outcome": result.outcome, "reason": result.reason, **result.data}
    kept.outcome = {
        **kept.outcome,
        "outcome": result.outcome,
        "result": {**kept.outcome.get("result", {}), "outside": outside},
    }
    work.session.add(kept)


def _opened(effect: ExternalEffect) -> dict[str, Any]:
    plain = sealing.unseal(effect.sealed, _purpose(effect.tenant_id, effect.call_id))
    opened: dict[str, Any] = json.loads(plain)
    return opened


def _reads_a_secret(expression: str, secrets: frozenset[str]) -> bool:
    compiled = expressions.compiled(expression)
    names = {published.python_name(pointer.partition("/")[0]) for pointer in secrets}
    return any(compiled.reads("input", name) for name in names)


def _without(data: Any, secrets: frozenset[str], at: str = "") -> Any:
    if at and at in secrets:
        return HIDDEN
    if isinstance(data, Mapping):
        return {
            name: _without(value, secrets, f"{at}/{name}" if at else name)
            for name, value in data.items()
        }
    if isinstance(data, list):
        return [_without(value, secrets, f"{at}/*") for value in data]
    return data


def _purpose(tenant_id: str, call_id: str) -> str:
    return f"external_effect:{tenant_id}:{call_id}"
