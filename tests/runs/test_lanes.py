"""Lanes: found or made once, and their person's to pause and to reset."""

import asyncio

import pytest

from app.kernel import db
from app.kernel.errors import NotFound
from app.runs import lanes
from app.runs.lanes import Party
from tests.runs.agents import Office


@pytest.mark.requirement("RUN-10")
async def test_the_same_four_are_one_lane_however_many_ask(office: Office) -> None:
    said = office.say("alice")
    party = Party(office.world.acme["alice"].id)
    asked = (office.tenant_id, office.agent().id, party, said.conversation_id, "")

    made = await asyncio.gather(*(db.transaction(lanes.find_or_make, *asked) for _ in range(4)))

    assert len(set(made)) == len(office.lanes()) == 1


@pytest.mark.requirement("RUN-113")
async def test_a_lane_is_its_persons_alone(office: Office) -> None:
    office.say("alice")
    await office.hear()
    (lane,) = office.lanes()

    for login in ("bob", "ada"):
        stranger = office.person(login)
        with pytest.raises(NotFound):
            db.transact_now(lanes.pause, stranger, lane.id, True)
        with pytest.raises(NotFound):
            db.transact_now(lanes.reset, stranger, lane.id)

    assert db.transact_now(lanes.pause, office.person("alice"), lane.id, True).paused_at


@pytest.mark.requirement("RUN-113")
async def test_a_pause_twice_is_one_pause(office: Office) -> None:
    office.say("alice")
    await office.hear()
    (lane,), alice = office.lanes(), office.person("alice")

    first = db.transact_now(lanes.pause, alice, lane.id, True).paused_at
    again = db.transact_now(lanes.pause, alice, lane.id, True).paused_at

    assert first == again
