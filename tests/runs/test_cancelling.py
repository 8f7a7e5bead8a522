"""Stopping runs: at once where nobody works on them, and with whatever they stand on."""

import json

import pytest

from app.identity import agents, delegations, users
from app.kernel import db
from app.kernel.db import Work
from app.kernel.errors import NotFound
from app.runs import cancelling, inputs, opening, transcript, waking
from app.runs.run_models import Run
from app.runs.session import RunSession
from app.runs.states import EntryKind, WaitKind
from tests.runs.agents import Office


@pytest.mark.requirement("RUN-69", "F-45")
async def test_a_suspended_run_stops_in_the_same_transaction_and_its_lane_is_free(
    office: Office,
) -> None:
    office.say("alice")
    run = await office.begun()
    await inputs.admit_first(run)
    office.suspend(run.claim, WaitKind.MESSAGE)

    assert db.transact_now(cancelling.cancel, office.run(), office.person("alice"))

    row = office.run()
    assert (row.state, row.reason) == ("canceled", "by_user")
    assert row.cancel_requested_by == office.world.acme["alice"].id
    assert office.fates() == [("canceled", "by_user")]
    assert office.waits()[0].satisfied_at is not None
    office.say("alice", text="Next")
    await office.hear()
    assert await opening.open_due() == 1
    assert not db.transact_now(cancelling.cancel, row, office.person("alice"))


@pytest.mark.requirement("RUN-69")
async def test_a_queued_run_stops_with_what_opened_it(office: Office) -> None:
    office.say("alice")
    await office.hear()
    await opening.open_due()

    db.transact_now(cancelling.cancel, office.run(), office.person("alice"))

    assert office.run().state == "canceled"
    assert office.fates() == [("dropped", "stopped")]
    assert await opening.open_due() == 0


@pytest.mark.requirement("RUN-69", "F-11")
async def test_a_running_one_is_asked_and_what_comes_after_stays_queued(office: Office) -> None:
    office.say("alice")
    run = await office.begun()
    await inputs.admit_first(run)

    assert db.transact_now(cancelling.cancel, office.run(), office.person("alice"))
    office.say("alice", text="After the stop")
    await office.hear()

    row = office.run()
    assert row.state == "running"
    assert row.cancel_requested_at is not None
    assert [each.state for each in office.inputs()] == ["accepted", "queued"]
    assert not db.transact_now(cancelling.cancel, office.run(), office.person("alice"))


@pytest.mark.requirement("F-1")
async def test_what_waited_behind_a_batch_keeps_its_place_and_opens_the_next_run(
    office: Office,
) -> None:
    office.say("alice", text="One")
    run = await office.begun()
    await inputs.admit_first(run)
    office.suspend(run.claim, WaitKind.CALL, ref="a-call")
    waiting = office.say("alice", text="Two")
    await office.hear()
    db.transact_now(waking.hold_inputs)

    db.transact_now(cancelling.cancel, office.run(), office.person("alice"))

    assert office.inputs()[1].run_id is None
    assert await opening.open_due() == 1
    assert office.runs()[-1].origin_message_id == waiting.id


@pytest.mark.requirement("RUN-98")
async def test_a_disabled_users_runs_end_and_their_inputs_are_dropped(office: Office) -> None:
    office.say("bob")
    run = await office.begun()
    await inputs.admit_first(run)
    office.suspend(run.claim, WaitKind.MESSAGE)
    office.say("bob", to="stock", text="Elsewhere", thread_id="other")
    office.say("alice")
    await office.hear()
    await opening.open_due()
    bob, ada = office.world.acme["bob"], office.person("ada")

    db.transact_now(
        lambda work: users.disable(work, ada, users.one(work.session, bob.tenant_id, bob.id))
    )

    states = {(each.user_id == bob.id, each.state, each.reason) for each in office.runs()}
    assert states == {(True, "canceled", "user_disabled"), (False, "queued", None)}
    assert office.fates() == [
        ("canceled", "user_disabled"),
        ("dropped", "principal_disabled"),
        ("queued", None),
    ]


@pytest.mark.requirement("RUN-98")
async def test_a_revoked_delegation_stops_what_it_carried(office: Office) -> None:
    office.say("alice")
    run = await office.begun()
    await inputs.admit_first(run)
    alice = office.person("alice")
    given = office.world.acme.delegations["alice"].id

    db.transact_now(
        lambda work: delegations.revoke(work, alice, delegations.own(work.session, alice, given))
    )

    row = office.run()
    assert (row.state, row.reason) == ("running", "delegation_revoked")
    assert row.cancel_requested_at is not None


@pytest.mark.requirement("RUN-98")
async def test_a_disabled_agents_runs_end_and_its_mail_waits(office: Office) -> None:
    office.say("alice")
    await office.hear()
    await opening.open_due()
    ada, agent = office.person("ada"), office.agent()

    db.transact_now(
        lambda work: agents.disable(work, ada, agents.one(work.session, agent.tenant_id, agent.id))
    )
    await opening.open_due()

    assert (office.run().state, office.run().reason) == ("canceled", "agent_disabled")
    assert office.fates() == [("queued", "paused")]


async def test_a_withdrawal_needs_a_request_that_is_open_and_ones_own(office: Office) -> None:
    office.say("alice")
    run = await office.begun()
    await inputs.admit_first(run)
    office.suspend(run.claim, WaitKind.TIMER)
    with pytest.raises(NotFound):
        db.transact_now(cancelling.withdraw, office.person("bob"), run.claim.run_id)

    with pytest.raises(cancelling.NothingToWithdraw):
        db.transact_now(cancelling.withdraw, office.person("alice"), run.claim.run_id)


@pytest.mark.requirement("RUN-73")
async def test_a_withdrawn_request_makes_the_boundary_for_what_waits(office: Office) -> None:
    office.say("alice")
    run = await office.begun()
    await inputs.admit_first(run)
    db.transact_now(_batch, run)
    office.suspend(run.claim, WaitKind.APPROVAL, ref="approval", call_id="c1")
    office.say("alice", text="Wait, read this")
    await office.hear()
    db.transact_now(waking.hold_inputs)
    assert office.fates()[1] == ("queued", "approval")

    db.transact_now(cancelling.withdraw, office.person("alice"), run.claim.run_id)

    assert office.run().state == "queued"
    assert office.waits()[0].answer == {"value": "withdrawn"}
    results = [json.loads(each.body["text"]) for each in office.entries() if each.kind == "results"]
    assert results == [{"outcome": "not_started", "reason": "withdrawn"}] * 2
    (claim,) = office.claim()
    again = office.session(claim)
    assert again.transcript.open_batch() is None
    assert await inputs.admit_first(again)
    assert await inputs.admit_steering(again)
    assert office.fates()[1] == ("accepted", None)


@pytest.mark.requirement("RUN-14", "RUN-69")
@pytest.mark.parametrize("is_waiting", [True, False])
async def test_who_begins_anew_stops_what_still_works_on_what_was_said(
    office: Office, is_waiting: bool
) -> None:
    office.say("alice")
    run = await office.begun()
    await inputs.admit_first(run)
    if is_waiting:
        office.suspend(run.claim, WaitKind.APPROVAL, ref="approval", call_id="c1")
    (lane,) = office.lanes()
    with pytest.raises(NotFound):
        db.transact_now(cancelling.begin_anew, office.person("bob"), lane.id)

    db.transact_now(cancelling.begin_anew, office.person("alice"), lane.id)

    row = office.run()
    assert row.cancel_requested_by == office.world.acme["alice"].id
    if is_waiting:
        assert (row.state, row.reason) == ("canceled", "context_reset")
        assert office.fates() == [("canceled", "context_reset")]
    else:
        assert (row.state, row.reason) == ("running", "context_reset")


async def test_a_stop_never_undoes_an_end(office: Office) -> None:
    office.say("alice")
    run = await office.begun()
    stale: Run = office.run()
    office.end(run.claim)

    assert not db.transact_now(cancelling.cancel, stale, office.person("alice"))

    assert office.run().state == "completed"


def _batch(work: Work, run: RunSession) -> None:
    """The model asked for two calls, and the first of them asks a person."""
    calls = [
        {"id": id, "provider_id": f"p-{id}", "tool": "payment-send", "arguments": "{}"}
        for id in ("c1", "c2")
    ]
    body = {"thoughts": [], "text": "", "calls": calls}
    seq = run.transcript.next_seq
    transcript.write(work, run.claim, seq, EntryKind.RESPONSE, body, turn=1)
