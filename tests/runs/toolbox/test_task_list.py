"""`task_list`: the agent's own open work for its principal, and nobody else's."""

import pytest

from app.kernel import db
from app.runs import ledger
from app.runs.ledger import Assignment
from app.runs.outcome import Done
from tests.runs.sessions import Desks

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("RUN-94")
async def test_own_tasks_are_listed_the_oldest_first_and_no_others(desks: Desks) -> None:
    desks.enable()
    run = await desks.at_work()
    for who, agent, title in (
        ("alice", "expenses", "First"),
        ("alice", "expenses", "Second"),
        ("bob", "expenses", "Of Bob"),
        ("alice", "stock", "Of another agent"),
    ):
        given = Assignment(title=title, instructions="Do it.")
        db.transact_now(ledger.assign, desks.person(who), desks.agent(agent), given)

    done = await desks.call(run, "task_list")

    assert isinstance(done, Done)
    tasks = done.result["tasks"]
    assert [each["title"] for each in tasks] == ["First", "Second"]
    assert tasks[0]["state"] == "open"
    await desks.call(
        run, "task_update", task_id=tasks[0]["task_id"], state="failed", report="It is gone."
    )
    left = await desks.call(run, "task_list")
    assert isinstance(left, Done)
    assert [each["title"] for each in left.result["tasks"]] == ["Second"]
