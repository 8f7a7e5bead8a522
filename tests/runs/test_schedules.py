"""Schedules: they open runs in time, belong to one person, and what was missed happens once."""

from datetime import UTC, datetime

import pytest

from app.kernel import db
from app.kernel.errors import Invalid, NotFound
from app.runs import preparing, schedules
from app.runs.run_models import AgentSchedule
from app.runs.states import EntryKind
from tests.clock import Clock
from tests.runs.agents import Office

MONDAY = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)


def _create(office: Office, rule: str = "daily 10:00") -> AgentSchedule:
    return db.transact_now(
        schedules.create,
        office.person("alice"),
        office.agent().id,
        "Tell me what is low in stock.",
        rule,
        "UTC",
    )


@pytest.mark.requirement("RUN-54")
async def test_a_schedule_opens_a_run_for_its_person_in_the_conversation_of_the_two(
    clock: Clock, office: Office
) -> None:
    said = office.say("alice")
    clock.set(MONDAY)
    made = _create(office)
    assert await schedules.fire_due() == 0
    clock.move(minutes=30)

    assert await schedules.fire_due() == 1
    assert await schedules.fire_due() == 0

    run = office.run()
    assert (run.kind, run.state, run.lane_id) == ("scheduled", "queued", None)
    assert (run.note, run.conversation_id) == (made.instruction, said.conversation_id)
    assert run.user_id == office.world.acme["alice"].id
    assert run.delegation_id == office.delegation("alice").id
    assert run.request_key == f"schedule:{made.id}:1"


@pytest.mark.requirement("RUN-54", "RUN-78")
async def test_what_a_schedule_says_is_its_persons_word_and_names_that_person(
    clock: Clock, office: Office
) -> None:
    office.say("alice")
    clock.set(MONDAY)
    made = _create(office)
    clock.move(minutes=30)
    await schedules.fire_due()
    (claim,) = office.claim()

    run = await preparing.prepare(claim)

    (note,) = (entry.body for entry in run.transcript if entry.kind is EntryKind.NOTE)
    assert note == {
        "kind": "schedule",
        "text": made.instruction,
        "is_principal": True,
        "sender_name": office.world.acme["alice"].display_name,
    }


@pytest.mark.requirement("F-62")
async def test_what_was_missed_happens_once(clock: Clock, office: Office) -> None:
    clock.set(MONDAY)
    _create(office)
    clock.move(days=10)

    assert await schedules.fire_due() == 1

    (kept,) = db.read_now(schedules.of_user, office.person("alice"))
    assert kept.next_at == datetime(2026, 3, 12, 10, 0, tzinfo=UTC)
    assert (kept.run_count, kept.last_at) == (1, clock.now)


async def test_a_schedule_of_somebody_who_let_the_agent_go_opens_nothing(
    clock: Clock, office: Office
) -> None:
    clock.set(MONDAY)
    made = db.transact_now(
        schedules.create, office.person("olga"), office.agent().id, "Look.", "daily 10:00", "UTC"
    )
    clock.move(hours=1)

    assert await schedules.fire_due() == 0

    assert office.runs() == []
    kept = db.read_now(lambda session: session.get_one(AgentSchedule, (made.tenant_id, made.id)))
    assert kept.next_at is not None
    assert kept.next_at > clock.now


async def test_a_schedule_is_its_persons_to_pause_and_to_end(clock: Clock, office: Office) -> None:
    clock.set(MONDAY)
    made, alice = _create(office), office.person("alice")
    with pytest.raises(NotFound):
        db.transact_now(schedules.pause, office.person("bob"), made.id, True)
    db.transact_now(schedules.pause, alice, made.id, True)
    clock.move(days=3)
    assert await schedules.fire_due() == 0

    resumed = db.transact_now(schedules.pause, alice, made.id, False)

    assert resumed.next_at is not None
    assert resumed.next_at > clock.now
    db.transact_now(schedules.remove, alice, made.id)
    assert db.read_now(schedules.of_user, alice) == []


@pytest.mark.parametrize(
    ("instruction", "rule", "zone"),
    [("", "daily 9:00", "UTC"), ("Look.", "now and then", "UTC"), ("Look.", "daily 9:00", "Moon")],
)
async def test_what_no_schedule_can_be_made_of_is_refused_with_the_field(
    office: Office, instruction: str, rule: str, zone: str
) -> None:
    with pytest.raises(Invalid):
        db.transact_now(
            schedules.create, office.person("alice"), office.agent().id, instruction, rule, zone
        )


async def test_a_person_has_twenty_schedules_with_an_agent_and_no_more(
    clock: Clock, office: Office
) -> None:
    clock.set(MONDAY)
    made = [_create(office) for _ in range(schedules.AT_MOST)]

    with pytest.raises(Invalid) as refused:
        _create(office)

    assert "You have %(most)s schedules" in refused.value.errors[0].says
    assert len(db.read_now(schedules.of_user, office.person("alice"))) == 20
    db.transact_now(
        schedules.create, office.person("bob"), office.agent().id, "Look.", "daily 9:00", "UTC"
    )
    db.transact_now(schedules.remove, office.person("alice"), made[0].id)
    _create(office)
