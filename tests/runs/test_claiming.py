"""Claims: the oldest queued run that has room, by a token of its own."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy.exc import InterfaceError

from app.kernel import db
from app.kernel.db import Work
from app.runs import claiming, lease, opening
from app.runs.errors import LeaseLost
from app.runs.lease import Claim
from app.runs.run_models import Run
from tests.clock import Clock
from tests.runs.agents import Office


async def _queue(office: Office, *people: str) -> list[Run]:
    for person in people:
        office.say(person, thread_id=f"about-{len(office.runs())}")
        await office.hear()
        await opening.open_due()
    return office.runs()


@pytest.mark.requirement("RUN-62", "RUN-63")
async def test_the_oldest_queued_run_is_taken_with_a_fresh_token(
    office: Office, clock: Clock
) -> None:
    office.say("alice")
    await office.hear()
    await opening.open_due()
    clock.move(seconds=5)
    office.say("bob")
    await office.hear()
    await opening.open_due()

    (first,) = office.claim(room=1)
    (second,) = office.claim(room=1)

    assert [first.run_id, second.run_id] == [run.id for run in office.runs()]
    assert first.token != second.token
    row = office.run(first.run_id)
    assert (row.state, row.claim_token, row.claimed_by) == ("running", first.token, "here")
    assert row.started_at is not None
    assert row.lease_until is not None
    assert office.claim() == []


@pytest.mark.requirement("RUN-62")
async def test_many_who_claim_at_once_get_each_run_once(office: Office) -> None:
    office.publish(limits={"concurrent": 100, "concurrent_per_user": 100})
    await _queue(office, *["alice"] * 6)

    with ThreadPoolExecutor(6) as pool:
        taken = [
            claim for found in pool.map(lambda _: office.claim(2), range(6)) for claim in found
        ]

    assert len(taken) == len({claim.run_id for claim in taken}) == 6


@pytest.mark.requirement("RUN-62")
async def test_an_agent_works_on_so_many_at_once_and_a_user_has_so_many(office: Office) -> None:
    office.publish(limits={"concurrent": 3, "concurrent_per_user": 2})
    runs = await _queue(office, "alice", "alice", "alice", "bob", "bob")

    taken = office.claim()

    users = [office.run(claim.run_id).user_id for claim in taken]
    acme = office.world.acme
    assert users == [acme["alice"].id, acme["alice"].id, acme["bob"].id]
    office.end(taken[0])
    (next_one,) = office.claim()
    assert next_one.run_id == runs[2].id


@pytest.mark.requirement("RUN-62")
async def test_without_a_word_of_the_release_an_agent_works_on_three_at_once(
    office: Office,
) -> None:
    await _queue(office, *["alice"] * 4)

    assert len(office.claim()) == 3


@pytest.mark.requirement("RUN-62")
async def test_a_process_takes_no_more_than_it_has_room_for(office: Office) -> None:
    await _queue(office, "alice", "alice", "bob")

    assert len(office.claim(room=2)) == 2


@pytest.mark.requirement("RUN-63", "RUN-52")
async def test_who_was_replaced_writes_nothing_whatever_the_clock_says(
    office: Office, clock: Clock
) -> None:
    await _queue(office, "alice")
    (old,) = office.claim()
    clock.move(hours=1)
    db.transact_now(lease.hold, old)  # late, and not replaced

    key = (old.tenant_id, old.run_id)
    office.force(Run, key, claim_token="another's")

    with pytest.raises(LeaseLost):
        db.transact_now(lease.hold, old)
    with pytest.raises(LeaseLost):
        db.transact_now(lease.hold, Claim(*key, "here"))


async def test_a_run_that_is_to_wait_is_not_taken_before_its_time(
    office: Office, clock: Clock
) -> None:
    (run,) = await _queue(office, "alice")
    office.force(Run, (run.tenant_id, run.id), not_before=clock.move(seconds=5))
    clock.move(seconds=-1)
    assert office.claim() == []
    clock.move(seconds=2)

    assert len(office.claim()) == 1


@pytest.mark.requirement("RUN-62")
@pytest.mark.parametrize("limits", [{"concurrent": "many", "concurrent_per_user": None}, 5])
async def test_a_release_that_cannot_be_read_stops_nobodys_claims(
    office: Office, limits: Any
) -> None:
    await _queue(office, "alice")
    office.say("alice", to="expenses")
    await office.hear()
    await opening.open_due()

    office.publish(limits=limits)  # behind the back of who checks it

    assert len(office.claim()) == 2


@pytest.mark.requirement("RUN-62", "RUN-61")
async def test_a_run_that_nobody_can_be_told_of_is_claimed_and_stops_nobodys_claims(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, other = await _queue(office, "alice", "bob")
    tell = claiming.tell

    def tell_of_some(work: Work, tenant_id: str, run_id: str) -> None:
        if run_id == broken.id:
            raise ValueError("a row that nobody can read")
        tell(work, tenant_id, run_id)

    monkeypatch.setattr(claiming, "tell", tell_of_some)

    claims = await claiming.claim_due("here", 8, 60.0)

    assert {claim.run_id for claim in claims} == {broken.id, other.id}
    assert {run.state for run in office.runs()} == {"running"}


@pytest.mark.requirement("RUN-62", "RUN-61")
async def test_what_was_claimed_is_executed_though_the_store_goes_away_before_it_is_told(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    queued = await _queue(office, "alice", "bob")
    faults: list[Exception] = [ValueError("a row that nobody can read")]

    def tell_of_none(_work: Work, _tenant_id: str, _run_id: str) -> None:
        raise faults.pop() if faults else InterfaceError("", {}, OSError("gone"))

    monkeypatch.setattr(claiming, "tell", tell_of_none)

    claims = await claiming.claim_due("here", 8, 60.0)

    assert [claim.run_id for claim in claims] == [run.id for run in queued]
