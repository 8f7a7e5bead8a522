"""Runs whose worker is gone: queued again once, and ended where they kill every worker."""

import asyncio
from datetime import UTC, datetime

import pytest

from app.kernel import db
from app.runs import claiming, ending, inputs, recovery
from app.runs.lease import Claim
from app.runs.run_models import Run
from tests.runs.agents import Office

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)  # for the clock of either database


def _die(office: Office, claim: Claim) -> None:
    office.force(Run, (claim.tenant_id, claim.run_id), lease_until=LONG_AGO)


@pytest.mark.requirement("F-54", "F-55", "RUN-61")
async def test_a_run_whose_worker_died_is_taken_by_another(office: Office) -> None:
    office.say("alice")
    first = await office.begun()
    await inputs.admit_first(first)
    assert await recovery.recover_due(()) == 0
    _die(office, first.claim)

    assert await recovery.recover_due(()) == 1

    row = office.run()
    assert (row.state, row.claim_token, row.takeovers) == ("queued", None, 1)
    (second,) = office.claim(process="there")
    assert second.run_id == first.claim.run_id
    assert second.token != first.claim.token
    assert office.fates() == [("accepted", None)]


@pytest.mark.requirement("F-57")
async def test_two_who_see_the_same_dead_run_count_one_takeover(office: Office) -> None:
    office.say("alice")
    run = await office.begun()
    _die(office, run.claim)
    (found,) = db.read_now(recovery._expired)

    recovered = await asyncio.gather(*(db.transaction(recovery.recover, found) for _ in range(4)))

    assert sorted(recovered) == [False, False, False, True]
    assert office.run().takeovers == 1


@pytest.mark.requirement("F-58")
async def test_nobody_takes_a_live_lease_or_adopts_its_own_run(office: Office) -> None:
    office.say("alice")
    run = await office.begun()
    assert await recovery.recover_due(()) == 0
    _die(office, run.claim)

    assert await recovery.recover_due({(run.claim.tenant_id, run.claim.run_id)}) == 0

    assert office.run().state == "running"


@pytest.mark.requirement("F-56")
async def test_a_run_that_kills_each_worker_ends_after_three_takeovers(office: Office) -> None:
    office.say("alice")
    run = await office.begun()
    await inputs.admit_first(run)
    for takeovers in (1, 2, 3):
        _die(office, run.claim)
        await recovery.recover_due(())
        assert (office.run().state, office.run().takeovers) == ("queued", takeovers)
        (claim,) = office.claim()
        run = office.session(claim)
    _die(office, run.claim)

    await recovery.recover_due(())

    row = office.run()
    assert (row.state, row.reason) == ("interrupted", "crash_loop")
    assert office.fates() == [("interrupted", "crash_loop")]


@pytest.mark.requirement("F-56", "RUN-61", "RUN-17")
async def test_a_run_whose_calls_nobody_can_settle_ends_and_keeps_nobody_from_the_others(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.say("alice")
    broken = await office.begun()
    await inputs.admit_first(broken)
    key = (broken.claim.tenant_id, broken.claim.run_id)
    office.force(Run, key, takeovers=recovery.TAKEOVERS)
    office.say("bob")
    other = await office.begun()
    for run in (broken, other):
        _die(office, run.claim)
    monkeypatch.setattr(ending, "_settle_calls", _breaks)

    assert await recovery.recover_due(()) == 2

    row = office.run(broken.claim.run_id)
    assert (row.state, row.reason, row.claim_token) == ("interrupted", "crash_loop", None)
    assert office.run(other.claim.run_id).state == "queued"
    assert office.fates()[0] == ("interrupted", "crash_loop")
    assert await recovery.recover_due(()) == 0


@pytest.mark.requirement("RUN-61")
async def test_a_run_that_cannot_be_recovered_is_not_given_up_before_its_time(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.say("alice")
    run = await office.begun()
    _die(office, run.claim)
    with monkeypatch.context() as patched:
        patched.setattr(claiming, "tell", _breaks)
        assert await recovery.recover_due(()) == 0
        assert (office.run().state, office.run().takeovers) == ("running", 0)

    assert await recovery.recover_due(()) == 1
    assert (office.run().state, office.run().takeovers) == ("queued", 1)


def _breaks(*_: object) -> None:
    raise RuntimeError("a fault nobody expected")
