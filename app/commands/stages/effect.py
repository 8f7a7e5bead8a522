"""Stage `effect`: the audit entry, the outcome for a repeat, and what others will be told.

All in the commit of the change itself: there is never one without the other (CMD-17).
"""

from app.commands import approvals, changes, entries, idempotency, outbox, undoing
from app.commands.context import Context
from app.commands.errors import Rejected


def run(ctx: Context) -> None:
    """Put the call on record, and write down what came of it.

    Raises:
        Rejected: `approval_stale`, it would do something else than what was assented to (CMD-16);
            `key_reused`, the id belongs to another call.
    """
    if ctx.replay is not None:
        entries.write(ctx, "replayed")
        return
    ctx.records.flush()
    ctx.changes = ctx.records.changes(ctx.since)
    if ctx.is_rehearsal or ctx.consent is not None:
        ctx.outside = outbox.preview(ctx)
    if ctx.consent is not None and ctx.consent.preview_digest != effect_digest(ctx):
        raise Rejected("approval_stale", approvalId=ctx.consent.approval_id)
    ctx.undo = undoing.of(ctx)
    if ctx.is_rehearsal:
        return
    outcome = "dispatched" if ctx.is_dispatched else "done"
    ctx.audit_seq = entries.write(ctx, outcome)
    approvals.tell_consumed(ctx)
    outbox.put(ctx)
    if ctx.command.writes and not ctx.call.depth:
        _keep(ctx, outcome)


def effect_digest(ctx: Context) -> str:
    """By which what a call does is compared with what was shown."""
    return changes.digest(ctx.changes, ctx.outside)


def _keep(ctx: Context, outcome: str) -> None:
    answer = {**ctx.done(outcome).data(), "timings": {}}
    digest = ctx.input_digest or ""
    if not idempotency.keep(ctx.work, ctx.call, ctx.key_digest, digest, answer):
        raise Rejected("key_reused")
