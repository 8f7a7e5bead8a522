"""`await_approval`: a request of the same person, opened by this lane; it executes nothing."""

from dataclasses import replace

import pytest

from app.commands.approval_models import Approval
from app.kernel import db
from app.runs import waking
from app.runs.models.scripted import Call, Step
from app.runs.outcome import Refused, Suspended
from app.runs.states import WaitKind
from tests.commands.asking import Asking
from tests.runs.playing import Stage, playing, told
from tests.runs.sessions import Desks

pytestmark = pytest.mark.anyio


async def opened(desks: Desks) -> tuple[object, str]:
    """A run of alice's, and the approval that it opened."""
    desks.enable()
    run = await desks.at_work()
    report = await desks.desk.submitted("alice", 5_000)
    about = {"targetRecordId": report, "operationType": "UPDATE"}
    waits = await desks.call(run, "expense-report-remind", **about)
    assert isinstance(waits, Suspended)
    return run, waits.ref or ""


@pytest.mark.requirement("RUN-92", "RUN-94")
async def test_a_request_of_the_same_lane_is_waited_for_and_nothing_runs(desks: Desks) -> None:
    run, approval_id = await opened(desks)

    waits = await desks.call(run, "await_approval", approval_id=approval_id)  # type: ignore[arg-type]

    row = Asking(desks.desk).row(approval_id)
    assert isinstance(waits, Suspended)
    assert (waits.kind, waits.ref, waits.is_open) == (WaitKind.APPROVAL, approval_id, False)
    assert waits.due_at == row.expires_at
    assert (desks.calls()[-1].state, row.state) == ("done", "open")


@pytest.mark.requirement("RUN-94", "RUN-99")
async def test_a_request_of_somebody_else_looks_like_none(desks: Desks) -> None:
    _, approval_id = await opened(desks)
    desks.enable("bob")
    bobs = await desks.at_work(who="bob")
    asking = Asking(desks.desk)
    outside = await asking.ask(
        asking.call("alice", "expense.report.remind", await desks.desk.submitted("alice", 70))
    )

    errors = [
        await desks.call(bobs, "await_approval", approval_id=approval_id),
        await desks.call(bobs, "await_approval", approval_id=approval_id[:-1] + "Z"),
        await desks.call(bobs, "await_approval", approval_id=outside.id),
    ]

    for each in errors:
        assert isinstance(each, Refused)
        assert each.reason == "not_found"
    assert replace(bobs.facts, user_id=None).user_id is None


@pytest.mark.requirement("RUN-92", "RUN-73")
@pytest.mark.parametrize("is_decided", [False, True])
async def test_a_message_ends_the_pause_and_waits_for_no_batch(
    stage: Stage, is_decided: bool
) -> None:
    """The call of `await_approval` is over: no batch is open that a message would stand behind."""
    playing(Step(), Step(calls=[Call("finish_silently")]))
    await stage.tell("Hello")
    asked = await stage.asking.ask(
        stage.asking.call("alice", "expense.report.remind", await stage.desk.submitted("alice", 70))
    )
    key = (stage.tenant_id, asked.id)
    stage.force(Approval, key, run_id=stage.runs()[0].id)
    playing(
        Step(calls=[Call("await_approval", {"approval_id": asked.id})]),
        Step(check=told("By the way"), calls=[Call("finish_silently")]),
    )
    await stage.tell("Wait for it")
    assert stage.runs()[-1].state == "suspended"

    if is_decided:
        await stage.decide("deny", reason="No.")
    stage.say("alice", "expenses", "By the way")
    await stage.hear()
    assert db.transact_now(waking.hold_inputs) == 0
    await stage.play()

    run = stage.runs()[-1]
    assert (len(stage.runs()), run.state) == (2, "completed")
    assert [each.run_id for each in stage.inputs("expenses")[1:]] == [run.id, run.id]
    assert stage.notes() == (["approval"] if is_decided else [])
