"""`task_update`: a report on one's own task, with the record of its call."""

import pytest

from app.kernel import db
from app.runs import ledger
from app.runs.ledger import Assignment
from app.runs.outcome import Done, Refused
from app.runs.run_models import Task
from tests.runs.sessions import Desks

pytestmark = pytest.mark.anyio


def assign(desks: Desks, who: str = "alice", agent: str = "expenses") -> Task:
    """A task."""
    given = Assignment(title="Count", instructions="Count the chairs.")
    return db.transact_now(ledger.assign, desks.person(who), desks.agent(agent), given)


@pytest.mark.requirement("RUN-94", "RUN-95")
async def test_progress_and_end_are_reported_and_then_it_is_closed(desks: Desks) -> None:
    desks.enable()
    run = await desks.at_work()
    made = assign(desks)

    begun = await desks.call(
        run, "task_update", task_id=made.id, state="working", report="On the first floor."
    )
    done = await desks.call(run, "task_update", task_id=made.id, state="done", report="12.")
    late = await desks.call(run, "task_update", task_id=made.id, state="working", report="No.")

    assert isinstance(begun, Done)
    assert isinstance(done, Done)
    assert (done.result["state"], done.result["report"]) == ("done", "12.")
    assert isinstance(late, Refused)
    assert late.reason == "task_closed"
    row = db.read_now(lambda session: session.get_one(Task, (desks.tenant_id, made.id)))
    assert (row.state, row.report, row.run_id) == ("done", "12.", run.claim.run_id)


@pytest.mark.requirement("RUN-37", "RUN-94")
async def test_a_task_of_another_person_or_agent_looks_like_none(desks: Desks) -> None:
    desks.enable()
    run = await desks.at_work()
    foreign = [assign(desks, "bob"), assign(desks, "alice", "stock")]

    for task_id in (*(each.id for each in foreign), "01JDXP5Y8GZ0000000000000AB"):
        refused = await desks.call(
            run, "task_update", task_id=task_id, state="done", report="Mine now."
        )
        assert isinstance(refused, Refused)
        assert refused.reason == "not_found"
    for each in foreign:
        assert _state(desks, each.id) == "open"


def _state(desks: Desks, task_id: str) -> str:
    key = (desks.tenant_id, task_id)
    return db.read_now(lambda session: session.get_one(Task, key)).state
