"""`delegate`: the child is queued with the record of its call, once (RUN-95)."""

import pytest

from app.kernel import db
from app.runs import delegating, offering
from app.runs.delegating import Errand
from app.runs.outcome import Refused, Suspended
from app.runs.run_models import Run
from app.runs.session import RunSession
from tests.runs.sessions import Desks

pytestmark = pytest.mark.anyio


async def parent(desks: Desks) -> RunSession:
    """A run that may hand work to `stock`."""
    desks.enable()
    run = await desks.at_work()
    run.content = run.content.model_copy(update={"contacts": ("*",)})
    return run


@pytest.mark.requirement("RUN-94", "RUN-95")
async def test_an_agent_is_named_by_code_or_aid_and_called_once(desks: Desks) -> None:
    run = await parent(desks)

    first = await desks.call(run, "delegate", agent="stock", task="Count.")
    second = await desks.call(run, "delegate", agent=desks.aid("stock"), task="Count again.")
    assert isinstance(first, Suspended)
    assert isinstance(second, Suspended)
    errand = Errand(agent="stock", task="Count.")
    again = db.transact_now(delegating.delegate, run, errand, first.call_id or "")

    assert again.id == first.ref
    assert {each.note for each in desks.runs()} == {None, "Count.", "Count again."}
    assert desks.waits() == []  # the loop stores them


@pytest.mark.requirement("RUN-93")
async def test_it_is_offered_where_there_is_somebody_to_hand_work_to(desks: Desks) -> None:
    run = await parent(desks)
    assert "delegate" in await offering.tools_of(run)

    run.content = run.content.model_copy(update={"contacts": ()})

    assert "delegate" not in await offering.tools_of(run)


async def test_a_run_that_was_stopped_hands_nothing_on(desks: Desks) -> None:
    run = await parent(desks)
    refused = await desks.call(run, "delegate", agent="stock", task="")
    assert isinstance(refused, Refused)

    key = (desks.tenant_id, run.claim.run_id)
    row = db.read_now(lambda session: session.get_one(Run, key))
    assert row.state == "running"
    assert len(desks.runs()) == 1
