"""What a refusal leaves behind: its entry, and the approval it opens or ends (CMD-5, CMD-11)."""

from collections.abc import Callable
from dataclasses import dataclass

from app.commands import approval_events, approvals, entries
from app.commands.call import Call
from app.commands.context import Context
from app.commands.outcome import Preview
from app.commands.refused import Refused
from app.kernel.db import Work

Rehearse = Callable[[Work, Call], Preview]


@dataclass(slots=True)
class Trying:
    """A call under way; `ctx` is how far its last try came, which says what the entry can name."""

    _call: Call | None = None
    ctx: Context | None = None

    @property
    def call(self) -> Call:
        """The call; there is one from the first stage on."""
        if self._call is None:
            raise RuntimeError("nothing was tried")
        return self._call

    @call.setter
    def call(self, call: Call) -> None:
        self._call = call


def record(work: Work, trying: Trying, refusal: Refused, rehearse: Rehearse) -> Refused:
    """Put a refusal on record, in a transaction of its own; returns what the caller is told.

    For `approval_required` that is the approval that was opened, with what a person will be shown;
    if not even a rehearsal goes through, that is the refusal, and nobody is asked.
    """
    ctx, opened = trying.ctx, None
    if refusal.stage == "approval_check" and refusal.reason == "approval_required" and ctx:
        try:
            opened = _ask_a_person(work, ctx, refusal, rehearse)
        except Refused as earlier:
            refusal = earlier
    news = [opened.row if opened else None]
    if ctx is not None and (used := ctx.consent) is not None:
        why = (refusal.stage, refusal.reason)
        news.append(approvals.fail(work, trying.call, used.approval_id, *why))
    _write(work, trying, refusal)
    for row in news:
        if row is not None:
            approval_events.tell(work, row)  # last, in the order of locks
    return refusal


def _ask_a_person(
    work: Work, ctx: Context, refusal: Refused, rehearse: Rehearse
) -> approvals.Opened:
    # a savepoint: the rehearsal is rolled back, what the refusal leaves behind is not
    trial = Work(work.connection)
    savepoint = work.connection.begin_nested()
    try:
        shown = rehearse(trial, ctx.call)
        trial.flush()
    finally:
        trial.discard()
        savepoint.rollback()
    opened = approvals.open(work, ctx, shown)
    refusal.facts |= {
        "approvalId": opened.approval_id,
        "approvalUrl": opened.url,
        "expiresAt": opened.expires_at,
    }
    return opened


def _write(work: Work, trying: Trying, refusal: Refused) -> None:
    ctx = trying.ctx
    is_loaded = ctx is not None and ctx.is_loaded
    entries.write_refusal(
        work,
        trying.call,
        refusal,
        published=ctx.published if ctx is not None and is_loaded else None,
        org_id=ctx.acting.org_id if ctx is not None and ctx.acting else None,
        target_type=ctx.command.record if ctx is not None and is_loaded else None,
        timings=ctx.timings if ctx is not None else {},
        approval_id=refusal.facts.get("approvalId"),
    )
