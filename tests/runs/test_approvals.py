"""Consent in runs: asked by the pipeline, decided by a person, used once, told to the model."""

import asyncio
from typing import Any

import pytest

from app.commands import approval_closing, publishing
from app.commands.approval_errors import ApprovalClosed
from app.commands.definition import Text
from app.commands.overrides import Overrides
from app.kernel import db
from app.kernel.db import Work
from app.runs import cancelling, waking, worker
from app.runs.models.scripted import Call, Step
from app.runs.run_models import Run, RunWait
from tests.clock import Clock
from tests.runs.playing import (
    CREATE,
    GET,
    TRIP,
    Stage,
    playing,
    remind,
    told,
)

pytestmark = pytest.mark.anyio

REMIND = "expense.report.remind"


async def waiting(stage: Stage, *after: Step) -> str:
    """A run that waits for alice's word on a reminder; the report it is about."""
    report = await stage.desk.submitted("alice", 5_000)
    playing(Step(calls=[remind(report)]), *after)
    await stage.tell("Nudge my approver")
    assert stage.run().state == "suspended"
    return report


@pytest.mark.requirement("RUN-89", "RUN-91", "RUN-42", "F-16", "F-33", "F-24")
async def test_an_approved_call_runs_once_and_the_model_is_not_asked_to_repeat_it(
    stage: Stage,
) -> None:
    await waiting(stage, Step(check=told('\\"outcome\\":\\"done\\"')))
    (before,) = stage.calls()
    assert (before.state, stage.results()) == ("waiting", [])

    await stage.decide()  # nobody works meanwhile; another process goes on
    await stage.play()

    (call,) = stage.calls()
    (result,) = stage.results()
    assert stage.run().state == "completed", stage.run().public_error
    assert (call.state, call.attempt, result["outcome"]) == ("done", 2, "done")
    assert len(stage.done("expense.report.remind")) == 1
    assert [each.state for each in stage.approvals()] == ["consumed"]
    assert len(stage.requests()) == 2
    assert stage.is_tidy()


@pytest.mark.requirement("F-17", "F-20", "F-32", "F-39", "RUN-87", "RUN-90")
async def test_a_denial_is_that_calls_result_word_for_word_and_the_other_call_is_done(
    stage: Stage,
) -> None:
    report = await stage.desk.submitted("alice", 5_000)
    playing(
        Step(calls=[Call(CREATE, TRIP), remind(report), Call(GET, {"targetRecordId": report})]),
        Step(check=told("Not on a Sunday!")),
    )
    await stage.tell()

    await stage.decide("deny", reason="Not on a Sunday!")
    await stage.play()

    assert stage.outcomes() == ["done", "denied", "done"]
    assert stage.results()[1]["by"] == stage.world.acme["alice"].display_name
    assert stage.results()[1]["reason"] == "Not on a Sunday!"
    assert [each.state for each in stage.calls()] == ["done", "denied", "done"]
    assert stage.done("expense.report.remind") == []
    assert stage.run().state == "completed"
    assert stage.is_tidy()


@pytest.mark.requirement("RUN-87", "RUN-89")
async def test_nobody_who_decides_in_time_is_told_as_that_and_not_as_a_no(
    stage: Stage, clock: Clock
) -> None:
    await waiting(stage, Step())
    (approval,) = stage.open_approvals()

    clock.set(approval.expires_at)
    db.transact_now(approval_closing.expire_due)
    await stage.play()

    assert stage.outcomes() == ["expired"]
    assert stage.calls()[0].state == "expired"
    assert stage.run().state == "completed"
    assert stage.is_tidy()


@pytest.mark.requirement("F-30", "F-40", "F-45", "RUN-90", "RUN-74")
async def test_a_stop_closes_what_was_asked_and_a_late_click_finds_it_over(stage: Stage) -> None:
    await waiting(stage)
    (asked,) = stage.open_approvals()

    stopped = await stage.stop()
    with pytest.raises(ApprovalClosed):
        await stage.asking.decide("alice", asked)
    playing(Step())
    await stage.tell("Something else")

    assert (stopped.state, stopped.reason) == ("canceled", "by_user")
    assert stage.outcomes() == ["not_started"]
    assert [each.state for each in stage.approvals()] == ["cancelled"]
    assert stage.done("expense.report.remind") == []
    assert [run.state for run in stage.runs()] == ["canceled", "completed"]
    assert stage.is_tidy()


@pytest.mark.requirement("F-39", "RUN-90")
async def test_deny_and_stop_are_two_acts(stage: Stage) -> None:
    await waiting(stage)

    await stage.decide("deny", reason="No.")
    stopped = await stage.stop()
    await stage.play()

    assert stopped.state == "canceled"
    assert [each.state for each in stage.approvals()] == ["denied"]
    assert len(stage.requests()) == 1
    assert stage.is_tidy()


@pytest.mark.requirement("F-21", "RUN-89")
@pytest.mark.parametrize("answer", ["approved", None, {"approved": True}])
async def test_a_forged_wake_executes_nothing_and_waits_on(stage: Stage, answer: Any) -> None:
    await waiting(stage, Step())

    db.transact_now(_satisfy, stage.tenant_id, stage.waits()[-1].id, answer)
    await stage.play()

    assert stage.run().state == "suspended"
    assert [each.state for each in stage.calls()] == ["waiting"]
    assert stage.done("expense.report.remind") == []
    await stage.decide()
    await stage.play()
    assert stage.run().state == "completed"
    assert len(stage.done("expense.report.remind")) == 1


@pytest.mark.requirement("F-22", "F-23", "RUN-90")
async def test_the_same_call_once_more_asks_once_more_and_later_messages_run_nothing_again(
    stage: Stage,
) -> None:
    report = await waiting(stage, Step())
    await stage.decide()
    await stage.play()

    playing(Step(), Step(), Step(), Step(calls=[remind(report)]))
    for text in ("Thanks", "Fine", "Good"):
        await stage.tell(text)
    assert len(stage.done("expense.report.remind")) == 1
    await stage.tell("Nudge again")

    assert [each.state for each in stage.approvals()] == ["consumed", "open"]
    assert len(stage.done("expense.report.remind")) == 1


@pytest.mark.requirement("F-19")
async def test_a_release_that_was_published_meanwhile_does_not_take_a_decision_back(
    stage: Stage,
) -> None:
    await waiting(stage, Step())

    stage.publish("expenses", tools={"deny": ["expense-*"]})
    await stage.decide()
    await stage.play()

    assert stage.outcomes() == ["done"]
    assert stage.run().state == "completed"


@pytest.mark.requirement("F-19")
async def test_a_consent_to_a_definition_that_is_another_by_now_is_stale_and_asked_for_anew(
    stage: Stage,
) -> None:
    report = await stage.desk.submitted("alice", 5_000)
    again = Step(calls=[remind(report)], check=told("approval_stale"))
    playing(Step(calls=[remind(report)]), again, Step())
    await stage.tell("Nudge my approver")

    await stage.decide()
    db.transact_now(_say_otherwise, stage)
    await stage.play()

    (result,) = stage.results()
    assert (result["outcome"], result["reason"]) == ("refused", "approval_stale")
    assert [each.state for each in stage.calls()] == ["failed", "waiting"]
    assert [each.state for each in stage.approvals()] == ["failed", "open"]
    assert stage.done(REMIND) == []

    await stage.decide()
    await stage.play()

    assert stage.outcomes() == ["refused", "done"]
    assert len(stage.done(REMIND)) == 1
    assert stage.run().state == "completed"
    assert stage.is_tidy()


def _say_otherwise(work: Work, stage: Stage) -> None:
    """Put another version of the reminder's definition in force."""
    tenant_id = stage.tenant_id
    now = publishing.definition_of(publishing.one(work.session, tenant_id, REMIND).newest)
    wanted = Overrides.of(now).model_copy(
        update={"agent_hint": Text(en="To remind.", zh="需要提醒时使用。")}
    )
    publishing.publish(work, tenant_id, wanted.on(now), stage.world.acme_admin)


@pytest.mark.requirement("F-27", "F-28")
async def test_of_clicks_at_once_one_decides_and_the_run_goes_on_once(stage: Stage) -> None:
    await waiting(stage, Step())
    (asked,) = stage.open_approvals()

    clicks = [stage.asking.decide("alice", asked, verdict) for verdict in ("deny", "approve")]
    again = stage.asking.decide("alice", asked, "deny")
    made = await asyncio.gather(*clicks, again, return_exceptions=True)
    await stage.play()

    (decided,) = stage.approvals()
    fits = {"consumed": "done", "denied": "denied"}
    assert [each for each in made if isinstance(each, ApprovalClosed)]
    assert stage.outcomes() == [fits[decided.state]]
    assert len(stage.done("expense.report.remind")) == (decided.state == "consumed")
    assert len(stage.requests()) == 2
    assert stage.is_tidy()


@pytest.mark.requirement("F-29", "F-35", "F-36")
@pytest.mark.parametrize("verdicts", [("deny", "approve"), ("approve", "deny")])
async def test_calls_that_need_consent_ask_in_their_turn_and_each_gets_its_own_answer(
    stage: Stage, verdicts: tuple[str, str]
) -> None:
    first = await stage.desk.submitted("alice", 5_000)
    second = await stage.desk.submitted("alice", 7_000)
    create = Call(CREATE, TRIP)
    playing(Step(calls=[create, remind(first), create, remind(second)]), Step())
    await stage.tell()
    assert len(stage.approvals()) == 1

    earlier = await stage.decide(verdicts[0])
    await stage.play()
    assert len(stage.approvals()) == 2
    with pytest.raises(ApprovalClosed):
        await stage.asking.decide("alice", earlier, verdicts[1])
    await stage.decide(verdicts[1])
    await stage.play()

    words = {"deny": "denied", "approve": "done"}
    assert stage.outcomes() == ["done", words[verdicts[0]], "done", words[verdicts[1]]]
    assert len(stage.done("expense.report.create")) == 2 + 2  # two of the desk's, one each here
    assert stage.is_tidy()


@pytest.mark.requirement("F-35")
async def test_a_stop_at_the_second_question_leaves_one_result_for_each_call(stage: Stage) -> None:
    first = await stage.desk.submitted("alice", 5_000)
    second = await stage.desk.submitted("alice", 7_000)
    create = Call(CREATE, TRIP)
    playing(Step(calls=[create, remind(first), create, remind(second), create]))
    await stage.tell()
    await stage.decide()
    await stage.play()

    await stage.stop()

    assert stage.outcomes() == ["done", "done", "done", "not_started", "not_started"]
    assert stage.is_tidy()


@pytest.mark.requirement("F-31", "F-34")
async def test_decisions_that_come_in_another_order_reach_their_own_calls(stage: Stage) -> None:
    mine = await stage.desk.submitted("alice", 5_000)
    other = await stage.desk.submitted("bob", 7_000)
    stage.enable("bob")
    playing(Step(calls=[remind(mine)]), Step(calls=[remind(other)]), Step(), Step())
    await stage.tell("Nudge", "alice")
    await stage.tell("Nudge", "bob")  # another conversation with the same agent goes on
    first, second = stage.open_approvals()

    await stage.asking.decide("bob", second, "deny", reason="No.")
    await stage.play()
    await stage.asking.decide("alice", first)
    await stage.play()

    runs = {run.user_id: run.id for run in stage.runs()}
    of = {who: stage.results(runs[stage.world.acme[who].id]) for who in ("alice", "bob")}
    assert [each["outcome"] for each in of["alice"]] == ["done"]
    assert [each["outcome"] for each in of["bob"]] == ["denied"]
    assert stage.is_tidy()


@pytest.mark.requirement("RUN-76")
async def test_what_is_decided_before_the_wait_is_stored_wakes_the_run_all_the_same(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = await stage.desk.submitted("alice", 5_000)
    playing(Step(calls=[remind(report)]), Step())
    finish = worker._finish

    async def decided_first(run: Any, outcome: Any) -> None:
        for asked in stage.open_approvals():
            await stage.asking.decide("alice", asked)
        await finish(run, outcome)

    monkeypatch.setattr(worker, "_finish", decided_first)
    await stage.tell()

    assert stage.run().state == "completed"
    assert len(stage.done("expense.report.remind")) == 1


@pytest.mark.requirement("F-25", "RUN-89")
async def test_a_tool_that_went_while_its_call_waited_says_so_loudly(stage: Stage) -> None:
    await waiting(stage, Step())
    await stage.decide()

    stage.force(type(stage.delegation("alice")), _key(stage), scopes=["aun.message"])
    await stage.play()

    (result,) = stage.results()
    assert result["outcome"] in ("refused", "not_started")
    assert stage.done("expense.report.remind") == []
    assert stage.run().state == "completed"
    assert stage.is_tidy()


@pytest.mark.requirement("RUN-73", "F-6")
async def test_a_withdrawn_request_lets_the_message_behind_it_in(stage: Stage) -> None:

    await waiting(stage, Step(check=told("Wait, not yet")))
    await stage.tell("Wait, not yet")
    assert stage.fates("expenses")[-1] == ("queued", "approval")

    run = stage.run()
    db.transact_now(cancelling.withdraw, stage.desk.person("alice"), run.id)
    await stage.play()

    assert stage.outcomes() == ["not_started"]
    assert [each.state for each in stage.approvals()] == ["superseded"]
    assert stage.run().state == "completed"
    assert [state for state, _ in stage.fates("expenses")[:2]] == ["completed", "completed"]
    assert stage.is_tidy()


@pytest.mark.requirement("F-18", "F-38", "RUN-7", "RUN-90")
@pytest.mark.parametrize("verdict", ["approve", "deny"])
async def test_consent_within_a_sub_run_is_asked_once_and_its_parent_has_one_result(
    stage: Stage, verdict: str
) -> None:
    stage.enable("alice", "stock")
    stage.publish("expenses", contacts=["*"])
    report = await stage.desk.submitted("alice", 5_000)
    playing(
        Step(calls=[Call("delegate", {"agent": "stock", "task": "Nudge them"})]),
        Step(calls=[remind(report)]),
        Step(text="That is it."),
        Step(check=told("That is it.")),
    )
    await stage.tell()
    parent, child = stage.runs()
    assert (parent.state, child.state) == ("suspended", "suspended")

    await stage.decide(verdict)
    await stage.play()

    parent, child = stage.runs()
    assert (parent.state, child.state) == ("completed", "completed"), child.public_error
    assert len(stage.approvals()) == 1
    assert [each["outcome"] for each in stage.results(parent.id)] == ["done"]
    assert stage.results(parent.id)[0]["result"]["text"] == "That is it."
    words = {"approve": "done", "deny": "denied"}
    assert [each["outcome"] for each in stage.results(child.id)] == [words[verdict]]
    assert stage.is_tidy()


@pytest.mark.requirement("F-37", "RUN-88")
async def test_two_delegates_run_one_after_the_other_and_each_is_started_once(
    stage: Stage,
) -> None:
    stage.enable("alice", "stock")
    stage.publish("expenses", contacts=["*"])
    hand = [Call("delegate", {"agent": "stock", "task": task}) for task in ("One", "Two")]
    playing(Step(calls=hand), Step(text="First."), Step(text="Second."), Step())

    await stage.tell()

    parent, *children = stage.runs()
    assert [child.state for child in children] == ["completed", "completed"]
    texts = [each["result"]["text"] for each in stage.results(parent.id)]
    assert texts == ["First.", "Second."]
    assert stage.is_tidy()


@pytest.mark.requirement("F-30", "RUN-74")
async def test_a_stopped_parent_takes_its_sub_run_with_it(stage: Stage) -> None:
    stage.enable("alice", "stock")
    stage.publish("expenses", contacts=["*"])
    report = await stage.desk.submitted("alice", 5_000)
    playing(
        Step(calls=[Call("delegate", {"agent": "stock", "task": "Nudge them"})]),
        Step(calls=[remind(report)]),
    )
    await stage.tell()

    db.transact_now(_cancel, stage.runs()[0].id, stage.desk.person("alice"))

    ends = [(run.state, run.reason) for run in stage.runs()]
    assert ends == [("canceled", "by_user"), ("canceled", "parent_ended")]
    assert [each.state for each in stage.approvals()] == ["cancelled"]
    assert stage.is_tidy()


def _satisfy(work: Work, tenant_id: str, wait_id: str, answer: Any) -> None:
    waking.satisfy(work, work.session.get_one(RunWait, (tenant_id, wait_id)), answer)


def _cancel(work: Any, run_id: str, person: Any) -> None:

    row = work.session.get_one(Run, (person.tenant_id, run_id))
    cancelling.cancel(work, row, person)


def _key(stage: Stage) -> tuple[str, str]:
    return (stage.tenant_id, stage.enable("alice").id)
