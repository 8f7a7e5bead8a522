"""Assigned work: open until it is reported, and no run's end closes it."""

import pytest

from app.kernel import db
from app.runs import ledger
from app.runs.ledger import Assignment
from app.runs.run_models import Run, Task
from app.runs.states import RunState
from tests.runs.sessions import Desks

pytestmark = pytest.mark.anyio

GIVEN = Assignment(title="Count", instructions="Count the chairs by Friday.")


def assigned(desks: Desks, who: str = "alice", given: Assignment = GIVEN) -> Task:
    """A task of `expenses`."""
    return db.transact_now(ledger.assign, desks.person(who), desks.agent("expenses"), given)


def task(desks: Desks, id: str) -> Task:
    """A task as it is now."""
    return db.read_now(lambda session: session.get_one(Task, (desks.tenant_id, id)))


def end(desks: Desks, state: RunState = RunState.COMPLETED) -> Run:
    """Let the run that is due work, and be over; the run."""
    (claim,) = desks.claim()
    desks.end(claim, state)
    return desks.run(claim.run_id)


@pytest.mark.requirement("RUN-94")
async def test_work_that_is_assigned_opens_a_run_under_its_person(desks: Desks) -> None:
    live = desks.enable()
    said = desks.say("alice", "expenses", "Hello")

    made = assigned(desks)

    run = desks.run()
    assert (run.kind, run.state, run.task_id) == ("work", "queued", made.id)
    assert (run.user_id, run.delegation_id, run.lane_id) == (
        desks.world.acme["alice"].id,
        live.id,
        None,
    )
    assert run.conversation_id == said.conversation_id
    assert "Count the chairs by Friday." in (run.note or "")
    assert (made.state, made.run_id) == ("open", run.id)


@pytest.mark.requirement("RUN-47", "RUN-94")
async def test_a_run_that_ends_without_a_report_leaves_it_open_and_reminds_once(
    desks: Desks,
) -> None:
    desks.enable()
    made = assigned(desks)

    first = end(desks)
    second = end(desks)

    found = task(desks, made.id)
    assert (found.state, found.report) == ("working", None)
    assert found.reminded_at is not None
    assert (first.task_id, second.task_id) == (made.id, made.id)
    assert "without a report" in (second.note or "")
    assert len(desks.runs()) == 2


@pytest.mark.requirement("RUN-47")
async def test_a_report_is_what_closes_it_and_nobody_is_reminded_then(desks: Desks) -> None:
    desks.enable()
    made = assigned(desks)
    (claim,) = desks.claim()
    run = desks.session_of(claim)

    await desks.call(run, "task_update", task_id=made.id, state="done", report="12 chairs.")
    desks.end(claim)

    found = task(desks, made.id)
    assert (found.state, found.report, found.reminded_at) == ("done", "12 chairs.", None)
    assert len(desks.runs()) == 1


async def test_a_run_without_a_task_has_nothing_in_the_ledger(desks: Desks) -> None:
    run = await desks.at_work()

    desks.end(run.claim)

    assert len(desks.runs()) == 1


async def test_of_a_run_that_somebody_stopped_nobody_is_reminded(desks: Desks) -> None:
    desks.enable()
    made = assigned(desks)

    end(desks, RunState.CANCELED)

    assert len(desks.runs()) == 1
    assert task(desks, made.id).reminded_at is None
