"""A release that lets its model judge: one request without tools, and three words it may answer."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from sqlmodel import select

from app.aun.group_models import Group
from app.kernel import db
from app.runs import inputs, judging, opening
from app.runs.errors import Cancelled
from app.runs.models.scripted import Script, ScriptedModel, Step
from app.runs.release import Content
from app.runs.run_models import ModelRequest
from app.runs.session import RunSession
from tests.clock import Clock
from tests.runs.agents import Office


async def _asked(office: Office, *steps: Step) -> RunSession:
    """The run that is opened to judge what another agent said."""
    office.publish(participation="model")
    group = office.group(agents=("stock", "expenses"))
    office.say_in(group, "expenses", "Anybody for lunch?")
    return _with(office, await office.begun(), *steps)


def _with(office: Office, run: RunSession, *steps: Step) -> RunSession:
    run.model = ScriptedModel(Script(list(steps)))
    run.content = Content.of({"participation": "model"})
    run.facts = replace(run.facts, group_id="the group")
    return run


def _requests(session: Any) -> list[ModelRequest]:
    return list(session.exec(select(ModelRequest)))


@pytest.mark.requirement("RUN-16", "RUN-71")
async def test_what_the_model_takes_part_in_is_admitted(office: Office) -> None:
    run = await _asked(office, Step(text="Participate."))
    assert office.fates() == [("queued", "wait")]

    assert await inputs.admit_first(run)

    (request,) = db.read_now(_requests)
    assert (request.purpose, request.state) == ("participation", "done")
    assert office.fates() == [("accepted", None)]
    assert office.run().steps_used == 1


@pytest.mark.requirement("RUN-16", "RUN-71")
@pytest.mark.parametrize("said", ["silent", "I would rather not say", ""])
async def test_what_it_lets_pass_by_enters_no_context(office: Office, said: str) -> None:
    run = await _asked(office, Step(text=said))

    assert not await inputs.admit_first(run)

    assert office.fates() == [("archived", "not_for_me")]
    assert office.entries() == []


@pytest.mark.requirement("RUN-71")
async def test_what_it_waits_with_is_judged_again_three_times_at_most(
    office: Office, clock: Clock
) -> None:
    run = await _asked(office, Step(text="wait"))
    assert not await inputs.admit_first(run)
    office.end(run.claim)
    assert office.fates() == [("queued", "wait")]
    assert await opening.open_due() == 0

    for _ in range(2):
        clock.move(seconds=61)
        assert await opening.open_due() == 1
        clock.move(seconds=31)
        (claim,) = office.claim()
        run = _with(office, office.session(claim), Step(text="wait"))
        assert not await inputs.admit_first(run)
        office.end(claim)

    assert office.fates() == [("archived", "not_for_me")]


@pytest.mark.requirement("RUN-71")
async def test_the_next_message_lets_it_be_judged_at_once(office: Office) -> None:
    run = await _asked(office, Step(text="wait"))
    await inputs.admit_first(run)
    office.end(run.claim)
    assert await opening.open_due() == 0
    group_id = db.read_now(_group_of, run.facts.tenant_id)

    office.say_in(group_id, "alice", "For whom?", thread_id="lunch")
    await office.hear()

    judged_again = office.inputs()[0].judge_after
    assert judged_again is not None
    assert judged_again <= office.inputs()[1].arrived_at


@pytest.mark.requirement("RUN-28", "RUN-82")
async def test_an_answer_that_breaks_off_is_none_and_it_is_asked_again_later(
    office: Office,
) -> None:
    run = await _asked(office, Step(text="partici", finish=None))

    assert not await inputs.admit_first(run)

    (request,) = db.read_now(_requests)
    assert (request.state, request.fault) == ("cut", "cut")
    assert office.fates() == [("queued", "wait")]


@pytest.mark.requirement("RUN-28", "RUN-71")
async def test_a_model_that_does_not_answer_is_waited_for_no_longer_than_a_minute(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "PATIENCE_S", 0.01)
    run = await _asked(office, Step(text="participate", gate="never"))

    assert not await asyncio.wait_for(inputs.admit_first(run), 60)

    (request,) = db.read_now(_requests)
    assert (request.state, request.fault) == ("failed", "timeout")
    assert office.fates() == [("queued", "wait")]


@pytest.mark.requirement("RUN-26", "RUN-28", "F-61")
async def test_a_stop_does_not_wait_for_the_judge(office: Office) -> None:
    run = await _asked(office, Step(text="participate", end_gate="never"))
    assert isinstance(run.model, ScriptedModel)
    judged = asyncio.ensure_future(inputs.admit_first(run))
    await asyncio.wait_for(run.model.gate("never").reached.wait(), 60)

    run.end(Cancelled("by_user"))
    with pytest.raises(Cancelled):
        await asyncio.wait_for(judged, 60)

    (request,) = db.read_now(_requests)
    assert (request.state, request.fragment) == ("cancelled", "participate")
    assert office.fates() == [("queued", "wait")]


def _group_of(session: Any, tenant_id: str) -> str:
    found: str = session.exec(select(Group.id).where(Group.tenant_id == tenant_id)).one()
    return found
