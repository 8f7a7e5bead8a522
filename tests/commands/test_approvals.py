"""A call that needs a person waits for one, and their word runs it once (CMD-11 … CMD-16)."""

import asyncio
import threading
from collections.abc import Callable
from datetime import timedelta

import pytest

from app.commands import approval_closing, approval_warning, approvals, pipeline
from app.commands.approval_models import Approval, ApprovalState
from app.commands.call import Call, Origin
from app.identity import agents, delegations, users
from app.identity.models import Delegation
from app.kernel import clock, db
from app.kernel.db import Work
from app.kernel.errors import NotFound
from tests.commands.asking import DISCARD, REMIND, SEND, Asking, fate
from tests.packs.expenses.desk import Desk
from tests.people import World


@pytest.fixture
def asking(world: World, spenders: None) -> Asking:
    """Everybody who asks and decides, on a database of each kind in turn."""
    return Asking(Desk(world))


@pytest.mark.requirement("CMD-11", "CMD-14", "CMD-F13")
async def test_what_was_approved_runs_once_and_says_who_approved_it(asking: Asking) -> None:
    report = await asking.desk.submitted("alice", 2_000)
    call = asking.call("alice", REMIND, report, message="please")

    refused = await asking.refused(call)
    row = asking.row(str(refused.facts["approvalId"]))

    assert (refused.stage, refused.status, refused.advice) == ("approval_check", 428, "ask_user")
    assert refused.facts["approvalUrl"].endswith(f"/approvals/{row.id}")
    assert refused.facts["expiresAt"] == clock.rfc3339(row.expires_at)
    assert (row.state, row.user_id, row.target_id) == ("open", asking.acme["alice"].id, report)
    assert row.arguments["message"] == "please"
    assert [change["id"] for change in row.preview["changes"]] == [report]
    assert row.preview["outside"][0]["name"] == "expense.report.reminded"

    await asking.decide("alice", row)
    named = asking.call("alice", REMIND, report, message="please", approval_id=row.id)
    done = await asking.run(named)
    again = await asking.refused(named)

    assert done.outcome == "done"
    assert (again.reason, again.advice) == ("approval_consumed", "reread_state")
    used = asking.row(row.id)
    assert (used.state, used.consumed_by_call) == ("consumed", done.call_id)
    outcomes = [(each.outcome, each.command) for each in asking.entries(row.id)]
    assert outcomes == [
        ("refused", REMIND),
        ("approved", REMIND),
        ("done", REMIND),
        ("refused", REMIND),
    ]
    ran = asking.entries(row.id)[2]
    assert ran.approved_by == asking.acme["alice"].id
    assert ran.approved_at == used.decided_at


@pytest.mark.requirement("CMD-14", "SEC-T6")
async def test_another_call_than_the_approved_one_does_not_run(asking: Asking) -> None:
    report = await asking.desk.submitted("alice", 2_000)
    row = await asking.ask(asking.call("alice", REMIND, report, message="é 100"))
    await asking.decide("alice", row)

    for swapped in ("é 101", "é 100 ", "e\u0301 100", ""):
        other = asking.call("alice", REMIND, report, message=swapped, approval_id=row.id)
        assert (await asking.refused(other)).reason == "approval_stale", swapped
    assert asking.row(row.id).state == "approved"

    call = asking.call("alice", REMIND, report, message="é 100", approval_id=row.id)
    reordered = dict(reversed(list(call.input.items())))
    done = await pipeline.execute(
        Call(code=call.code, input=reordered, principal=call.principal, approval_id=row.id)
    )
    assert done.outcome == "done"


@pytest.mark.requirement("CMD-F14", "SEC-T7")
async def test_an_approval_is_for_its_command_record_user_and_agent(asking: Asking) -> None:
    report = await asking.desk.draft("alice", 2_000)
    other = await asking.desk.draft("alice", 3_000)
    row = await asking.ask(asking.call("alice", DISCARD, report))
    await asking.decide("alice", row)

    for call in (
        asking.call("alice", DISCARD, other, approval_id=row.id),
        asking.call(asking.agent("alice"), DISCARD, report, approval_id=row.id),
    ):
        refused = await asking.refused(call)
        assert refused.reason == "approval_required"
        assert refused.facts["approvalId"] != row.id
    with pytest.raises(NotFound):
        db.read_now(approvals.call_of, asking.agent("alice"), row.id)
    with pytest.raises(NotFound):
        db.read_now(approvals.call_of, asking.desk.person("bob"), row.id)
    assert asking.row(row.id).state == "approved"


@pytest.mark.requirement("CMD-14")
async def test_a_caller_who_names_the_approval_alone_gets_what_was_approved(
    asking: Asking,
) -> None:
    report = await asking.desk.submitted("alice", 2_000)
    agent = asking.agent("alice")
    row = await asking.ask(asking.call(agent, REMIND, report, message="as written"))
    assert (row.agent_id, row.user_id) == (agent.agent_id, asking.acme["alice"].id)
    await asking.decide("alice", row)

    done = await asking.run(db.read_now(approvals.call_of, agent, row.id))

    entry = asking.entries(row.id)[-1]
    assert (done.outcome, entry.agent_id) == ("done", agent.agent_id)
    assert entry.input_redacted is not None
    assert entry.input_redacted["message"] == "as written"


@pytest.mark.requirement("CMD-14", "CMD-16")
async def test_a_record_that_changed_meanwhile_makes_the_approval_stale(asking: Asking) -> None:
    report = await asking.desk.draft("alice", 2_000)
    call = asking.call("alice", DISCARD, report)
    row = await asking.ask(call)
    await asking.decide("alice", row)
    await asking.desk.add("alice", report, 500)

    named = asking.call("alice", DISCARD, report, approval_id=row.id)
    refused = await asking.refused(named)

    assert (refused.reason, refused.advice) == ("approval_stale", "ask_user")
    assert asking.row(row.id).state == "approved"


@pytest.mark.requirement("CMD-11")
async def test_asking_twice_while_it_is_open_is_one_request(asking: Asking) -> None:
    report = await asking.desk.submitted("alice", 2_000)
    first = await asking.ask(asking.call("alice", REMIND, report))
    second = await asking.ask(asking.call("alice", REMIND, report))
    in_a_run = await asking.ask(
        asking.call("alice", REMIND, report, origin=Origin(run_id="R" * 26, turn=2))
    )

    assert second.id == first.id
    assert in_a_run.id != first.id
    assert (in_a_run.run_id, in_a_run.turn) == ("R" * 26, 2)


@pytest.mark.requirement("CMD-5", "CMD-11")
async def test_a_call_that_could_not_run_asks_nobody(asking: Asking) -> None:
    draft = await asking.desk.draft("alice", 2_000)
    not_submitted = await asking.refused(asking.call("alice", REMIND, draft))
    assert not_submitted.stage == "assert"
    assert asking.count() == 0


@pytest.mark.requirement("CMD-15")
async def test_an_approval_lives_as_long_as_its_kind_does(asking: Asking) -> None:
    own = await asking.ask(
        asking.call("alice", REMIND, await asking.desk.submitted("alice", 2_000))
    )
    others = await asking.ask(
        asking.call("fiona", SEND, await asking.desk.approved("alice", 2_000))
    )

    assert own.expires_at - own.opened_at == timedelta(minutes=10)
    assert others.expires_at - others.opened_at == timedelta(hours=24)


@pytest.mark.requirement("CMD-14", "CMD-15")
async def test_what_comes_too_late_does_not_run(asking: Asking) -> None:
    report = await asking.desk.submitted("alice", 2_000)
    row = await asking.ask(asking.call("alice", REMIND, report))
    await asking.decide("alice", row)
    named = asking.call("alice", REMIND, report, approval_id=row.id)
    asking.set(row.id, expires_at=clock.now() - timedelta(seconds=1))

    assert (await asking.refused(named)).reason == "approval_expired"
    assert db.transact_now(approval_closing.expire_due) == 1
    assert db.transact_now(approval_closing.expire_due) == 0
    assert asking.row(row.id).state == "expired"
    last = asking.entries(row.id)[-1]
    assert (last.outcome, last.user_id) == ("expired", asking.acme["alice"].id)
    assert (await asking.refused(named)).reason == "approval_expired"
    anew = await asking.ask(asking.call("alice", REMIND, report))
    assert anew.id != row.id


@pytest.mark.requirement("CMD-15")
async def test_an_open_one_that_ran_out_is_not_offered_again(asking: Asking) -> None:
    report = await asking.desk.submitted("alice", 2_000)
    row = await asking.ask(asking.call("alice", REMIND, report))
    asking.set(row.id, expires_at=clock.now() - timedelta(seconds=1))

    anew = await asking.ask(asking.call("alice", REMIND, report))

    assert anew.id != row.id
    assert asking.row(row.id).state == "expired"


@pytest.mark.requirement("CMD-14")
async def test_a_failure_after_the_consumption_ends_the_approval(asking: Asking) -> None:
    report = await asking.desk.submitted("alice", 2_000)
    row = await asking.ask(asking.call("alice", REMIND, report))
    await asking.decide("alice", row)
    asking.set(row.id, preview_digest="0" * 64)  # what would run is not what was shown
    named = asking.call("alice", REMIND, report, approval_id=row.id)

    refused = await asking.refused(named)
    again = await asking.refused(named)

    assert (refused.stage, refused.reason) == ("effect", "approval_stale")
    ended = asking.row(row.id)
    assert (ended.state, ended.failed_stage) == ("failed", "effect")
    assert again.reason == "approval_consumed"


@pytest.mark.requirement("CMD-15")
async def test_a_request_can_be_withdrawn_by_who_made_it_and_nobody_else(asking: Asking) -> None:
    report = await asking.desk.submitted("alice", 2_000)
    row = await asking.ask(asking.call(asking.agent("alice"), REMIND, report))
    alice, bob = asking.desk.person("alice"), asking.desk.person("bob")

    assert await fate(db.transaction(approval_closing.withdraw, bob, row.id)) == "not_found"
    assert await fate(db.transaction(approval_closing.withdraw, alice, row.id)) == "cancelled"
    assert await fate(db.transaction(approval_closing.withdraw, alice, row.id)) == "approval_closed"
    entry = asking.entries(row.id)[-1]
    assert (entry.outcome, entry.reason, entry.user_id) == ("cancelled", "withdrawn", alice.user_id)
    named = asking.call(asking.agent("alice"), REMIND, report, approval_id=row.id)
    assert (await asking.refused(named)).reason == "approval_stale"


@pytest.mark.requirement("CMD-15")
async def test_a_run_that_moves_on_ends_what_its_turn_asked_for(asking: Asking) -> None:
    report = await asking.desk.submitted("alice", 2_000)
    run = "01JDXP5Y8GZ0000000000000AB"
    rows = [
        await asking.ask(asking.call("alice", REMIND, report, origin=Origin(run_id=run, turn=turn)))
        for turn in (1, 2)
    ]
    await asking.decide("alice", rows[1])

    closed = db.transact_now(
        approval_closing.close_turn, asking.acme.id, run, 2, ApprovalState.CANCELLED, "stopped"
    )

    assert closed == 1
    assert [asking.row(each.id).state for each in rows] == ["open", "cancelled"]


@pytest.mark.requirement("SEC-31", "SEC-33")
async def test_who_is_disabled_leaves_no_approval_behind(asking: Asking) -> None:
    report = await asking.desk.submitted("alice", 2_000)
    asked = await asking.ask(asking.call("alice", REMIND, report))
    paid = await asking.desk.approved("bob", 2_000)
    decided = await asking.ask(asking.call("fiona", SEND, paid))
    await asking.decide("frank", decided)
    untouched = await asking.ask(
        asking.call("bob", REMIND, await asking.desk.submitted("bob", 100))
    )

    for login in ("alice", "frank"):
        user = asking.desk.world.user(asking.acme[login])
        db.transact_now(users.disable, asking.desk.world.acme_admin, user)

    assert [asking.row(each.id).state for each in (asked, decided, untouched)] == [
        "cancelled",
        "cancelled",
        "open",
    ]
    assert asking.entries(asked.id)[-1].reason == "user_disabled"


@pytest.mark.requirement("SEC-31")
async def test_an_agent_that_may_no_longer_act_leaves_none_behind_either(asking: Asking) -> None:
    report = await asking.desk.submitted("alice", 2_000)
    own = await asking.ask(asking.call("alice", REMIND, report))
    rows = {}
    for code in ("expenses", "stock"):
        agent = asking.agent("alice", code)
        rows[code] = await asking.ask(asking.call(agent, REMIND, report, key=code))
    await asking.decide("alice", rows["stock"])
    delegation_id = str(asking.agent("alice", "expenses").delegation_id)

    db.transact_now(_revoke, asking, delegation_id)
    assert [asking.row(each.id).state for each in rows.values()] == ["cancelled", "approved"]
    stock = asking.acme.agents["stock"]
    db.transact_now(_disable, asking, stock.id)

    assert [asking.row(each.id).state for each in (own, rows["stock"])] == ["open", "cancelled"]
    assert asking.entries(rows["stock"].id)[-1].reason == "agent_disabled"


def _revoke(work: Work, asking: Asking, delegation_id: str) -> None:
    delegation = work.session.get_one(Delegation, (asking.acme.id, delegation_id))
    delegations.revoke(work, asking.desk.person("alice"), delegation)


def _disable(work: Work, asking: Asking, agent_id: str) -> None:
    agent = agents.one(work.session, asking.acme.id, agent_id)
    agents.disable(work, asking.desk.world.acme_admin, agent)


@pytest.mark.requirement("CMD-F13", "SEC-T7")
async def test_of_many_consumers_at_once_one_runs(asking: Asking) -> None:
    report = await asking.desk.submitted("alice", 2_000)
    row = await asking.ask(asking.call("alice", REMIND, report))
    await asking.decide("alice", row)

    def named() -> Call:
        return asking.call("alice", REMIND, report, approval_id=row.id)

    results = await asyncio.gather(
        *(pipeline.execute(named()) for _ in range(8)), return_exceptions=True
    )

    reasons = sorted(getattr(each, "reason", "done") for each in results)
    assert reasons == ["approval_consumed"] * 7 + ["done"]


@pytest.mark.requirement("CMD-F10", "UI-82")
@pytest.mark.parametrize(
    ("sweep", "left_s"), [(approval_closing.expire_due, -1), (approval_warning.warn_due, 50)]
)
async def test_a_sweep_of_many_waits_for_nobody_who_holds_one(
    asking: Asking, sweep: Callable[[Work], int], left_s: int
) -> None:
    held, free = [
        await asking.ask(asking.call("fiona", SEND, await asking.desk.approved("alice", 2_000)))
        for _ in range(2)
    ]
    opened, ends = clock.now() - timedelta(hours=1), clock.now() + timedelta(seconds=left_s)
    for row in held, free:
        asking.set(row.id, opened_at=opened, expires_at=ends)
    is_held, goes_on = threading.Event(), threading.Event()

    def holds(work: Work) -> None:
        """Somebody decides it, and is at its row."""
        work.session.get(Approval, (held.tenant_id, held.id), with_for_update=True)
        is_held.set()
        assert db.is_sqlite() or goes_on.wait(20)

    deciding = asyncio.create_task(db.transaction(holds))
    await asyncio.to_thread(is_held.wait, 20)
    first = await db.transaction(sweep)
    goes_on.set()
    await deciding

    assert (first, await db.transaction(sweep)) == ((2, 0) if db.is_sqlite() else (1, 1))
