"""Stage `idempotency_check`: a repeat gets the first answer and ends here (CMD-9, CMD-10).

After `authorize`: whoever lost the right to call does not read the old answer either (CMD-F1).
"""

from sqlalchemy.exc import OperationalError

from app.commands import idempotency
from app.commands.context import Context
from app.commands.errors import Rejected
from app.commands.idempotency import First
from app.commands.outcome import Done, Undo

LOCK_NOT_AVAILABLE = "55P03"


def run(ctx: Context) -> None:
    """Claim the key for this call, or leave the first answer as `ctx.replay`.

    Raises:
        Rejected: `key_required`, `key_reused`, `in_flight`, or `invalid_input` for what has no
            canonical form.
    """
    call = ctx.call
    try:
        ctx.input_digest = idempotency.input_digest(call)
    except ValueError as fault:
        raise Rejected("invalid_input") from fault
    if ctx.is_rehearsal or call.depth or not ctx.command.writes:
        return
    if call.idempotency_key is None:
        if _needs_key(ctx):
            raise Rejected("key_required")
        return
    ctx.key_digest = idempotency.scope_digest(call)
    first = _claim(ctx, ctx.key_digest, ctx.input_digest)
    if first is not None:
        ctx.replay = _answer(ctx, first)


def _needs_key(ctx: Context) -> bool:
    """An assent is good for one call, so it does instead of a key; where none is asked for, not."""
    is_used_once = ctx.command.needs_approval and ctx.call.approval_id is not None
    return not (ctx.command.idempotent or ctx.call.principal.is_person or is_used_once)


def _claim(ctx: Context, key_digest: str, digest: str) -> First | None:
    try:
        return idempotency.claim(ctx.work, ctx.call, key_digest, digest, ctx.now)
    except OperationalError as fault:
        if getattr(fault.orig, "sqlstate", None) == LOCK_NOT_AVAILABLE:
            raise Rejected("in_flight") from fault  # five seconds later the first is still at work
        raise


def _answer(ctx: Context, first: First) -> Done:
    if first.input_digest != ctx.input_digest:
        raise Rejected("key_reused", firstCallId=first.call_id)
    if first.outcome is None or first.outcome["outcome"] == "dispatched":
        raise Rejected("in_flight", firstCallId=first.call_id)
    kept = first.outcome
    undo = kept.get("undo")
    return Done(
        call_id=first.call_id,
        code=kept["cmdCode"],
        version=kept["version"],
        outcome="replayed",
        result=kept["result"],
        record=kept["record"],
        audit_seq=kept["auditSeq"],
        undo=Undo(code=undo["cmdCode"], input=undo["input"]) if undo else None,
        timings=ctx.timings,
    )
