"""The heartbeat keeps leases, and hears of stops and takeovers."""

from datetime import timedelta
from typing import Any

import pytest

from app.kernel import clock as kernel_clock
from app.kernel import db
from app.runs import cancelling, heartbeat, rows
from app.runs.errors import Cancelled, LeaseLost
from app.runs.heartbeat import Hands, Leaving
from app.runs.run_models import Run
from tests.runs.agents import Office


@pytest.mark.requirement("RUN-64")
async def test_a_beat_extends_the_lease_of_what_is_ours(office: Office) -> None:
    office.say("alice")
    run = await office.begun()
    soon = kernel_clock.now() + timedelta(seconds=1)
    office.force(Run, (run.claim.tenant_id, run.claim.run_id), lease_until=soon)

    assert db.transact_now(heartbeat.beat, [run.claim]) == {}

    extended = office.run().lease_until
    assert extended is not None
    assert extended - soon > timedelta(seconds=50)


@pytest.mark.requirement("RUN-64", "RUN-52")
async def test_who_was_taken_over_hears_it_and_its_execution_ends(office: Office) -> None:
    office.say("alice")
    run = await office.begun()
    hands = Hands()
    hands.take(run.claim).began(run)
    office.force(Run, (run.claim.tenant_id, run.claim.run_id), claim_token="another's")

    heartbeat.heard(hands, db.transact_now(heartbeat.beat, hands.claims))

    assert run.stop.is_set()
    with pytest.raises(LeaseLost):
        run.check()


@pytest.mark.requirement("RUN-69")
async def test_a_stop_reaches_the_run_by_the_next_beat_with_its_reason(office: Office) -> None:
    office.say("alice")
    run = await office.begun()
    db.transact_now(cancelling.cancel, office.run(), office.person("alice"))
    hands = Hands()
    held = hands.take(run.claim)
    heartbeat.heard(hands, db.transact_now(heartbeat.beat, hands.claims))
    run.check()

    held.began(run)  # its session is there only now

    with pytest.raises(Cancelled) as ended:
        run.check()
    assert ended.value.reason == "by_user"


async def test_the_first_reason_to_end_counts(office: Office) -> None:
    office.say("alice")
    run = await office.begun()
    hands = Hands()
    hands.take(run.claim).began(run)

    hands.end_all(Leaving())
    heartbeat.heard(hands, {run.claim.token: Cancelled()})

    with pytest.raises(Leaving):
        run.check()


@pytest.mark.requirement("RUN-64", "RUN-61")
async def test_a_lease_that_cannot_be_extended_costs_no_other(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.say("alice")
    broken = await office.begun()
    office.say("bob")
    other = await office.begun()
    soon = kernel_clock.now() + timedelta(seconds=1)
    for run in (broken, other):
        office.force(Run, (run.claim.tenant_id, run.claim.run_id), lease_until=soon)
    extend = rows.BEAT.run

    def extend_some(connection: Any, **values: Any) -> Any:
        if values["run_id"] == broken.claim.run_id:
            raise ValueError("a row that nobody can read")
        return extend(connection, **values)

    monkeypatch.setattr(rows.BEAT, "run", extend_some)

    assert await heartbeat.beat_all([broken.claim, other.claim]) == {}

    assert office.run(broken.claim.run_id).lease_until == soon
    extended = office.run(other.claim.run_id).lease_until
    assert extended is not None
    assert extended > soon
