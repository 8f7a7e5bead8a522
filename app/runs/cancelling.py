"""Stopping runs: by a person, or because what they stand on is gone (RUN-69, RUN-98).

Who is waiting ends in the same transaction; who is running is asked to, and hears it at once. Each
write is one conditional UPDATE, so a stop never undoes an end.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

from sqlmodel import Session, col, select
from sqlmodel.sql.expression import SelectOfScalar

from app.commands import approval_closing
from app.commands.approval_models import ApprovalState
from app.identity.facts import AccessChanged
from app.identity.models import Delegation
from app.identity.principal import Principal
from app.kernel import clock, events, ids
from app.kernel.db import Work
from app.kernel.errors import Conflict, NotFound
from app.kernel.i18n import N_
from app.runs import (
    claiming,
    ending,
    gates,
    lanes,
    records,
    rows,
    told,
    transcript,
    waking,
)
from app.runs.lease import Claim
from app.runs.outcome import NotStarted
from app.runs.run_models import Lane, Run, RunInput, RunWait
from app.runs.session import Transcript
from app.runs.states import LIVE_RUNS, Hold, InputState, RunKind, RunState, WaitKind

RESUMED = "delegation_resumed"
BY_USER, STOPPED, WITHDRAWN = "by_user", "stopped", "withdrawn"


class NothingToWithdraw(Conflict):
    """The run waits for nobody's decision any more."""

    reason = "nothing_to_withdraw"
    says = N_("This request is over already.")


def cancel(work: Work, run: Run, by: Principal | None, reason: str = BY_USER) -> bool:
    """Stop a run: at once where nobody works on it, else as soon as its worker hears; else False.

    What opened it and was not taken is not handled by another run: it was meant by the stop.
    """
    row = work.session.get_one(Run, (run.tenant_id, run.id), populate_existing=True)
    if row.state not in LIVE_RUNS:
        return False
    if row.state == RunState.RUNNING:
        stopped = _request(work, row, by, reason)
    else:
        if by is not None:
            row.cancel_requested_at, row.cancel_requested_by = clock.now(), by.user_id
            work.session.add(row)
            work.session.flush()
        stopped = ending.end(work, row, RunState.CANCELED, reason)
    if stopped and by is not None:
        _drop_origin(work, row)
    return stopped


def begin_anew(work: Work, person: Principal, lane_id: str) -> Lane:
    """Forget what was said in a lane, and stop what still works or waits on it.

    Raises:
        NotFound: it is not the person's.
    """
    lane = lanes.reset(work, person, lane_id)
    query = select(Run).where(
        Run.tenant_id == lane.tenant_id, Run.lane_id == lane.id, col(Run.state).in_(LIVE_RUNS)
    )
    for run in work.session.exec(query).all():
        cancel(work, run, person, lanes.CONTEXT_RESET)
    return lane


def withdraw(work: Work, person: Principal, run_id: str) -> None:
    """Take back what a run asked for, so that it reads the message that came meanwhile (RUN-73).

    Raises:
        NotFound: it is not one of the person's runs.
        NothingToWithdraw: it waits for no decision.
    """
    run = work.session.get(Run, (person.tenant_id, run_id), populate_existing=True)
    if run is None or not person.is_person or run.user_id != person.user_id:
        raise NotFound
    wait = work.session.exec(_open_wait(run)).first()
    if run.state != RunState.SUSPENDED or wait is None:
        raise NothingToWithdraw
    approval_closing.close_turn(
        work, run.tenant_id, run.id, None, ApprovalState.SUPERSEDED, WITHDRAWN, person
    )
    _close_batch(work, run)
    waking.satisfy(work, wait, WITHDRAWN)


def listen() -> Callable[[], None]:
    """Stop what users, agents and delegations leave behind, in the transaction that ends them."""
    return events.subscribe_inside(AccessChanged, follow)


def follow(work: Work, change: AccessChanged) -> None:
    """End the runs of whoever may no longer act, and drop what waits for them (RUN-98)."""
    if not change.ends:
        _follow_resumed(work, change)
        return
    if change.session_id is not None or change.client_id is not None:
        return
    for run in _live(work.session, change):
        if _is_about(run, change):
            cancel(work, run, None, _cause(change))
    if change.user_id is not None:
        for lane in _lanes(work.session, change):
            lanes.drop_queued(work, lane.tenant_id, lane.id, gates.PRINCIPAL_DISABLED)


def _close_batch(work: Work, run: Run) -> None:
    """Give the call that waits, and the rest of its batch, the result that makes the boundary.

    The run's row is taken for it, so that no worker claims it meanwhile.
    """
    claim = Claim(run.tenant_id, run.id, ids.random_token())
    key = {"tenant_id": run.tenant_id, "run_id": run.id, "token": claim.token}
    if rows.TAKE_SUSPENDED.run_with(work.connection, key).first() is None:
        raise NothingToWithdraw
    script = Transcript(transcript.load(work.session, claim))
    batch, seq = script.open_batch(), script.next_seq
    answered = script.answered()
    for call in batch.calls if batch is not None else ():
        if call.id not in answered:
            records.settle(work, claim, call, NotStarted(WITHDRAWN), seq)
            seq += 1
    rows.SUSPEND_AGAIN.run_with(work.connection, key)


def _follow_resumed(work: Work, change: AccessChanged) -> None:
    """An agent that a person lets go on takes up what waited; it is not looked at again later."""
    if change.why != RESUMED or change.delegation_id is None:
        return
    delegation = work.session.get_one(Delegation, (change.tenant_id, change.delegation_id))
    for lane in _lanes(work.session, replace(change, agent_id=delegation.agent_id)):
        lanes.release(work, lane.tenant_id, lane.id, Hold.PAUSED, lane.user_id)


def _request(work: Work, row: Run, by: Principal | None, reason: str) -> bool:
    asked = rows.REQUEST_CANCEL.run(
        work.connection,
        tenant_id=row.tenant_id,
        run_id=row.id,
        moment=clock.now(),
        by=by.user_id if by else None,
        reason=reason,
    ).first()
    if asked is None:
        return False
    claiming.tell(work, row.tenant_id, row.id)
    work.announce(told.Hint(tenant_id=row.tenant_id, what="stop", id=row.id))
    return True


def _drop_origin(work: Work, row: Run) -> None:
    if row.kind != RunKind.CONVERSATION or row.origin_message_id is None:
        return
    query = select(RunInput.id).where(
        RunInput.tenant_id == row.tenant_id,
        RunInput.agent_id == row.agent_id,
        RunInput.message_id == row.origin_message_id,
    )
    for input_id in work.session.exec(query).all():
        closed = gates.close(work, row.tenant_id, input_id, InputState.DROPPED, STOPPED)
        lanes.tell(work, closed, row.user_id)


def _open_wait(run: Run) -> SelectOfScalar[RunWait]:
    return select(RunWait).where(
        RunWait.tenant_id == run.tenant_id,
        RunWait.run_id == run.id,
        RunWait.kind == WaitKind.APPROVAL,
        col(RunWait.satisfied_at).is_(None),
    )


def _live(session: Session, change: AccessChanged) -> Iterable[Run]:
    query = select(Run).where(Run.tenant_id == change.tenant_id, col(Run.state).in_(LIVE_RUNS))
    if change.user_id is not None:
        query = query.where(Run.user_id == change.user_id)
    return session.exec(query).all()


def _is_about(run: Run, change: AccessChanged) -> bool:
    """Whether a run stands on what ended: user, delegation of its chain, agent."""
    if change.delegation_id is not None:
        is_own = run.delegation_id == change.delegation_id
        return is_own or change.agent_id in run.actors[1:]
    return change.agent_id is None or change.agent_id in run.actors


def _lanes(session: Session, change: AccessChanged) -> Iterable[Lane]:
    """Lanes of a user; of one agent where only its delegation ended."""
    query = select(Lane).where(Lane.tenant_id == change.tenant_id, Lane.user_id == change.user_id)
    if change.agent_id is not None:
        query = query.where(Lane.agent_id == change.agent_id)
    return session.exec(query).all()


def _cause(change: AccessChanged) -> str:
    if change.delegation_id is not None:
        return "delegation_revoked"
    return "agent_disabled" if change.agent_id is not None else change.why
