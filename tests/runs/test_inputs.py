"""Admission: receipt, transcript entry and quota in one commit, one input at a boundary."""

import asyncio
from typing import Any

import pytest
from sqlmodel import Session, select

from app.kernel import db
from app.kernel.models import LoggedEvent
from app.runs import inputs, lanes, opening, transcript
from app.runs.errors import Cancelled, LeaseLost
from app.runs.models.protocol import Entry
from app.runs.run_models import Run
from app.runs.session import Transcript
from app.runs.states import EntryKind, InputState, RunState
from tests.runs import bare
from tests.runs.agents import Office


def _texts(office: Office) -> list[str]:
    return [entry.body["text"] for entry in office.entries() if entry.kind == EntryKind.INPUT]


@pytest.mark.requirement("RUN-13", "RUN-72", "RUN-116")
async def test_the_input_that_opened_the_run_gets_receipt_entry_and_count_in_one_commit(
    office: Office,
) -> None:
    said = office.say("alice", text="Hello", input_mode="follow_up")
    run = await office.begun()

    assert await inputs.admit_first(run)

    (heard,), (entry,), (lane,) = office.inputs(), office.entries(), office.lanes()
    assert (heard.state, heard.run_id, heard.round) == ("accepted", run.claim.run_id, 1)
    assert (heard.accepted_seq, entry.input_id) == (entry.seq, heard.id)
    assert entry.body | {"message_id": said.id, "text": "Hello", "is_principal": True} == entry.body
    assert (lane.hour_used, lane.agent_streak) == (1, 0)
    assert run.current_input is not None
    assert (run.current_input.message_id, run.current_input.sent_as) == (said.id, said.message_id)
    assert list(run.transcript)[-1].seq == entry.seq


@pytest.mark.requirement("F-5", "RUN-13")
async def test_a_store_that_fails_over_the_receipt_leaves_the_input_queued(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.say("alice")
    run = await office.begun()

    def fail(*_args: Any, **_more: Any) -> Entry:
        raise OSError("disk full")

    monkeypatch.setattr(transcript, "write", fail)
    with pytest.raises(OSError, match="disk full"):
        await inputs.admit_first(run)

    assert office.fates() == [("queued", None)]
    assert office.lanes()[0].hour_used == 0
    assert (run.current_input, list(run.transcript)) == (None, [])
    assert "accepted" not in {each.data["state"] for each in db.read_now(_told)}


@pytest.mark.requirement("RUN-11", "F-2")
async def test_steering_is_taken_one_at_a_time_and_never_inside_a_batch(office: Office) -> None:
    office.say("alice", text="One")
    run = await office.begun()
    await inputs.admit_first(run)
    office.say("alice", text="Two")
    office.say("alice", text="Three")
    await office.hear()
    before = run.transcript
    call = {"id": "c1", "provider_id": "p1", "tool": "look", "arguments": "{}"}
    open_batch = bare.entry(2, EntryKind.RESPONSE, turn=1, thoughts=[], text="", calls=[call])
    run.transcript = Transcript([*before, open_batch])

    assert not await inputs.admit_steering(run)

    run.transcript = before
    assert await inputs.admit_steering(run)
    assert _texts(office) == ["One", "Two"]
    assert await inputs.admit_steering(run)
    assert not await inputs.admit_steering(run)
    assert _texts(office) == ["One", "Two", "Three"]


@pytest.mark.requirement("F-4", "RUN-12")
async def test_steering_goes_before_a_follow_up_which_keeps_its_place(office: Office) -> None:
    office.say("alice", text="One")
    run = await office.begun()
    await inputs.admit_first(run)
    office.say("alice", text="Later", input_mode="follow_up")
    office.say("alice", text="Now")
    await office.hear()

    assert await inputs.admit_steering(run)
    assert not await inputs.admit_steering(run)

    assert _texts(office) == ["One", "Now"]
    assert await inputs.has_follow_up(run)
    assert [each.state for each in office.inputs()] == ["accepted", "queued", "accepted"]


@pytest.mark.requirement("RUN-20", "F-12")
async def test_each_follow_up_begins_a_round_and_a_scope_in_order(office: Office) -> None:
    office.say("alice", text="One")
    run = await office.begun()
    await inputs.admit_first(run)
    for text in ("Two", "Three"):
        office.say("alice", text=text, input_mode="follow_up")
    await office.hear()

    rounds = []
    while await inputs.has_follow_up(run):
        db.transact_now(
            inputs.settle, run.claim.tenant_id, run.claim.run_id, InputState.COMPLETED, None
        )
        assert await inputs.admit_follow_up(run)
        rounds.append((run.round, run.scope))

    assert rounds == [(2, 2), (3, 3)]
    assert _texts(office) == ["One", "Two", "Three"]
    assert [each.state for each in office.inputs()] == ["completed", "completed", "accepted"]
    row = office.run()
    assert (row.round, row.scope) == (3, 3)


@pytest.mark.requirement("F-8", "RUN-18")
async def test_what_comes_after_the_last_poll_stays_queued_and_opens_the_next_run(
    office: Office,
) -> None:
    office.say("alice", text="One")
    run = await office.begun()
    await inputs.admit_first(run)
    office.say("alice", text="As the answer streams")
    await office.hear()
    assert await inputs.admit_steering(run)
    late = office.say("alice", text="One moment later")
    await office.hear()

    assert not await inputs.has_follow_up(run)
    office.end(run.claim)

    assert [each.state for each in office.inputs()] == ["completed", "completed", "queued"]
    assert await opening.open_due() == 1
    assert office.runs()[-1].origin_message_id == late.id


@pytest.mark.requirement("RUN-10")
async def test_another_persons_words_never_enter_the_run(office: Office) -> None:
    group = office.group("bob")
    office.say_in(group, "alice", **office.mention())
    run = await office.begun()
    await inputs.admit_first(run)
    office.say_in(group, "bob", "Mine", **office.mention())
    office.say("alice", text="Between us two")
    await office.hear()

    assert not await inputs.admit_steering(run)
    assert not await inputs.has_follow_up(run)


@pytest.mark.requirement("RUN-17", "RUN-19", "F-7")
@pytest.mark.parametrize(
    ("state", "becomes"),
    [
        (RunState.COMPLETED, InputState.COMPLETED),
        (RunState.FAILED, InputState.FAILED),
        (RunState.CANCELED, InputState.CANCELED),
        (RunState.INTERRUPTED, InputState.INTERRUPTED),
        (RunState.OUTCOME_UNKNOWN, InputState.INTERRUPTED),
    ],
)
async def test_an_accepted_input_settles_with_its_run_and_a_settled_one_is_left_alone(
    office: Office, state: RunState, becomes: InputState
) -> None:
    office.say("alice", text="One")
    run = await office.begun()
    await inputs.admit_first(run)
    office.say("alice", text="Two", input_mode="follow_up")
    await office.hear()
    key = (run.claim.tenant_id, run.claim.run_id)
    db.transact_now(inputs.settle, *key, InputState.COMPLETED, None)
    await inputs.admit_follow_up(run)

    office.end(run.claim, state)

    assert [each.state for each in office.inputs()] == [InputState.COMPLETED, becomes]
    assert await opening.open_due() == 0
    office.say("alice", text="Three")
    await office.hear()
    assert await opening.open_due() == 1


@pytest.mark.requirement("RUN-17")
async def test_a_run_that_was_taken_over_keeps_its_receipts_and_admits_nothing_anew(
    office: Office,
) -> None:
    office.say("alice")
    run = await office.begun()
    await inputs.admit_first(run)

    again = office.session(run.claim)

    assert await inputs.admit_first(again)
    assert len(_texts(office)) == 1


@pytest.mark.requirement("RUN-52", "F-1")
async def test_nothing_is_admitted_by_who_lost_the_run_or_was_asked_to_stop(
    office: Office,
) -> None:
    office.say("alice")
    run = await office.begun()
    key = (run.claim.tenant_id, run.claim.run_id)
    office.force(Run, key, claim_token="another's")
    with pytest.raises(LeaseLost):
        await inputs.admit_first(run)
    office.force(Run, key, claim_token=run.claim.token, cancel_requested_at=office.run().queued_at)

    with pytest.raises(Cancelled):
        await inputs.admit_first(run)

    assert office.fates() == [("queued", None)]


@pytest.mark.requirement("RUN-22")
async def test_one_input_is_admitted_by_one_of_many_who_try(office: Office) -> None:
    office.say("alice")
    run = await office.begun()

    admitted = await asyncio.gather(
        *(inputs.admit_first(office.session(run.claim)) for _ in range(1)),
        inputs.admit_steering(office.session(run.claim)),
        return_exceptions=True,
    )

    assert any(each is True for each in admitted)
    assert len(_texts(office)) == 1


@pytest.mark.requirement("RUN-14")
async def test_without_a_step_left_an_input_waits_for_the_next_run(office: Office) -> None:
    office.say("alice", text="One")
    run = await office.begun()
    await inputs.admit_first(run)
    office.force(Run, (run.claim.tenant_id, run.claim.run_id), steps_used=24)
    office.say("alice", text="Two")
    office.say("alice", text="Three", input_mode="follow_up")
    await office.hear()

    assert not await inputs.admit_steering(run)
    assert not await inputs.has_follow_up(run)

    assert office.fates()[1:] == [("queued", "steps"), ("queued", "steps")]
    office.end(run.claim)
    assert await opening.open_due() == 1


@pytest.mark.requirement("RUN-116")
async def test_a_run_whose_input_was_dropped_has_nothing_to_do(office: Office) -> None:
    office.say("alice")
    run = await office.begun()
    (lane,) = office.lanes()
    db.transact_now(lanes.reset, office.person("alice"), lane.id)

    assert not await inputs.admit_first(run)

    assert office.fates() == [("dropped", lanes.CONTEXT_RESET)]


@pytest.mark.requirement("RUN-21")
async def test_what_is_being_handled_is_what_was_admitted_last(office: Office) -> None:
    office.say("alice", text="One")
    run = await office.begun()
    await inputs.admit_first(run)
    last = office.say("alice", text="Two")
    await office.hear()

    await inputs.admit_steering(run)

    assert run.current_input is not None
    assert run.current_input.message_id == last.id


def _told(session: Session) -> list[LoggedEvent]:
    query = select(LoggedEvent).where(LoggedEvent.kind == "input.state")
    return list(session.exec(query))
