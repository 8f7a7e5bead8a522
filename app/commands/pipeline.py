"""The governed write path, top to bottom.

Whoever calls, a page, the API, MCP, a run, a process, the call passes `execute`: there is no other
way to change business data. The order is a decision, so it is written out here and nowhere else.
A stage is a module in `stages/`, named for the stage, with one plain function: `run(ctx)`.
"""

from collections.abc import Callable
from functools import cache
from typing import Protocol

import structlog
from sqlalchemy.exc import DBAPIError

from app.commands import approvals, refusals
from app.commands.call import Call
from app.commands.context import Context
from app.commands.errors import CallerGone, Fault, Rejected
from app.commands.outcome import Done, Preview
from app.commands.records import Records
from app.commands.refused import Refused
from app.commands.stages import (
    api_call,
    approval_check,
    assert_,
    authorize,
    change_tracking,
    computed_fields,
    cross_field_validation,
    domain_event,
    effect,
    entitlement_check,
    field_map,
    governance_snapshot,
    handler,
    idempotency_check,
    load,
    post_action,
    post_invariant,
    pre_invariant,
    roll_up,
    schema_validate,
    side_effect,
    sod_check,
    state_check,
    webhook,
)
from app.kernel import clock, db
from app.kernel.db import Work
from app.kernel.errors import AppError, Busy

log = structlog.get_logger(__name__)


class Stage(Protocol):
    """What the pipeline asks of a module in `stages/`; mypy holds each of them to it."""

    __name__: str

    def run(self, ctx: Context) -> None:
        """Look at the call, change what is yours, or raise `Rejected`."""


MAY_IT_RUN: tuple[Stage, ...] = (
    load,  # 1  a published definition, or nothing
    authorize,  # 2  permission, data scope, organisation scope; finds the record through them
    schema_validate,  # 3  unknown fields are refused; later stages see typed input only
    idempotency_check,  # 4  a repeat gets the first answer and ends here
    entitlement_check,  # 5
    sod_check,  # 6  who submitted does not approve
    state_check,  # 7
    assert_,  # 8
    pre_invariant,  # 9
    cross_field_validation,  # 10
    approval_check,  # 11  last: nobody is asked to assent to what could not run anyway
)
CHANGE_IT: tuple[Stage, ...] = (
    field_map,  # 12  automatic values, then input to columns
    computed_fields,  # 13
    change_tracking,  # 14
    handler,  # 15
    side_effect,  # 16
    roll_up,  # 17
    post_action,  # 18
    effect,  # 19  the audit entry and the outbox rows, in this same commit
    post_invariant,  # 20  the last word; a no here takes the audit entry back too
)
TELL_OTHERS = (domain_event, api_call, webhook, governance_snapshot)


async def execute(call: Call) -> Done:
    """Run `call` through the twenty stages, in one transaction.

    Raises:
        Refused: a stage said no. All that stays is what a refusal leaves behind: its audit entry
            and, for `approval_required`, the approval that now waits for a person.
        CallerGone: the call's own guard said no. Nothing stays, not even an entry.
        Busy: the database had no place for it, five times over; nothing was done.
        ValueError: the call is a rehearsal, which `preview` runs.
    """
    if call.preview:
        raise ValueError("a rehearsal is not executed")
    return await execute_as(lambda _work: call)


async def execute_as(make: Callable[[Work], Call]) -> Done:
    """The same for a call whose caller is looked up in its own transaction, before the first stage.

    Raises:
        What `execute` raises, and what `make` raises: then nothing was tried, and nothing stays.
    """
    trying = refusals.Trying()
    try:
        return await db.transaction(_make_and_perform, make, trying)
    except Refused as refusal:
        # apart: the call's own work is gone
        raise await db.transaction(refusals.record, trying, refusal, rehearse) from None


async def preview(call: Call) -> Preview:
    """What `call` would change, before and after: done for real, then rolled back.

    Raises:
        Refused: it could not run. A rehearsal leaves no audit entry and opens no approval.
    """
    return await db.rehearsal(rehearse, call)


def _make_and_perform(work: Work, make: Callable[[Work], Call], trying: "refusals.Trying") -> Done:
    trying.call = make(work)
    return perform(work, trying.call, trying)


def perform(work: Work, call: Call, trying: "refusals.Trying | None" = None) -> Done:
    """The twenty stages, in the transaction of `work`; a unit for `execute` alone, and the demo."""
    ctx = _context(work, approvals.as_approved(work, call))
    if trying is not None:
        trying.ctx = ctx
    done = _pass(ctx, MAY_IT_RUN + CHANGE_IT)
    _ask_guard(work, call)
    return done  # TELL_OTHERS follow the commit, from the outbox; a crash only delays them


def rehearse(work: Work, call: Call) -> Preview:
    """Every stage but the approval a preview is made for; the caller rolls `work` back."""
    ctx = _context(work, call, is_rehearsal=True)
    _pass(ctx, tuple(stage for stage in MAY_IT_RUN + CHANGE_IT if stage is not approval_check))
    return ctx.preview(effect.effect_digest(ctx))


def _context(work: Work, call: Call, *, is_rehearsal: bool = False) -> Context:
    now = clock.now()
    return Context(
        call=call,
        work=work,
        records=Records(work, call.principal, now),
        now=now,
        is_rehearsal=is_rehearsal,
        follow=_follow,
    )


def _ask_guard(work: Work, call: Call) -> None:
    """Last before the commit: a run proves that it still owns its work, or nothing stays."""
    if call.guard is None:
        return
    try:
        call.guard(work)
    except (Busy, CallerGone):
        raise
    except Exception as fault:  # whatever it was, the caller could not prove it (CMD-26)
        if isinstance(fault, DBAPIError) and db.may_pass(fault):
            raise
        log.exception("guard_failed", command=call.code)
        raise CallerGone from fault


def _pass(ctx: Context, stages: tuple[Stage, ...]) -> Done:
    for stage in stages:
        _run(stage, ctx)
        if ctx.replay:  # a repeat: its own audit entry, and nothing else
            _run(effect, ctx)
            return ctx.replay
    return ctx.done("dispatched" if ctx.is_dispatched else "done")


def _follow(call: Call, outer: Context) -> None:
    """A command that follows from another: the same stages, the same transaction, its own entry."""
    inner = Context(
        call=call,
        work=outer.work,
        records=outer.records,
        now=outer.now,
        is_rehearsal=outer.is_rehearsal,
        since=outer.records.snapshot(),
        follow=_follow,
    )
    _pass(inner, MAY_IT_RUN + CHANGE_IT)


def _run(stage: Stage, ctx: Context) -> None:
    name, began = name_of(stage), clock.monotonic_s()
    try:
        stage.run(ctx)
    except (Busy, CallerGone):
        raise
    except Rejected as rejection:
        raise _refused(name, rejection, ctx) from rejection
    except AppError as error:  # another slice says no: what the caller stands on is gone
        standing = Rejected(
            error.reason, says=error.says, status=error.status, advice=error.advice, **error.facts
        )
        raise _refused(name, standing, ctx) from error
    except Exception as fault:
        if isinstance(fault, DBAPIError) and db.may_pass(fault):
            raise  # no answer yet: `db.transaction` starts over, at most five times
        # a bug refuses like a rule does: rolled back, and on record
        log.exception("stage_failed", stage=name, command=ctx.call.code)
        raise _refused(name, Fault(f"{name}_failed"), ctx) from fault
    finally:
        ctx.took(name, began)


def _refused(stage: str, rejection: Rejected, ctx: Context) -> Refused:
    return Refused(
        stage,
        rejection,
        call_id=ctx.call.call_id,
        code=ctx.call.code,
        people_only=ctx.is_loaded and ctx.command.people_only,
        inner=rejection.inner,
    )


def name_of(stage: Stage) -> str:
    """The stage's name in errors and audit, which is its file's name: `state_check`, `assert`."""
    return _file_name(stage.__name__)


@cache
def _file_name(module: str) -> str:
    return module.rpartition(".")[2].rstrip("_")
