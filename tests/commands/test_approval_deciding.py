"""One person's click on exactly what was displayed, once (SEC-36, CMD-12, CMD-13)."""

import asyncio
from datetime import timedelta

import pytest
from sqlmodel import Session

from app.commands import (
    approval_execution,
    approval_reading,
    approval_replacement,
    approvals,
    deciding,
)
from app.commands.approval_reading import Wanted
from app.commands.approval_replacement import Replacement
from app.commands.deciding import Browser
from app.commands.refused import Refused
from app.identity import roles, users
from app.kernel import clock, db
from app.kernel.db import Work
from app.kernel.errors import Invalid
from tests.commands.asking import DISCARD, REMIND, SEND, Asking, fate
from tests.packs.expenses.desk import Desk
from tests.people import World


@pytest.fixture
def asking(world: World, spenders: None) -> Asking:
    """Everybody who asks and decides, on a database of each kind in turn."""
    return Asking(Desk(world))


def waiting(session: Session, asking: Asking, login: str, which: str) -> set[str]:
    """Ids of the approvals in one of somebody's lists, which the count agrees with."""
    person, wanted = asking.desk.person(login), Wanted(which=which)  # type: ignore[arg-type]
    page = approval_reading.listed(session, person, wanted, None)
    assert page.total == len(page.rows)
    return {each.row.id for each in page.rows}


@pytest.mark.requirement("CMD-12", "SEC-T40")
async def test_who_may_decide_is_somebody_else_where_the_command_says_so(asking: Asking) -> None:
    report = await asking.desk.approved("alice", 2_000)
    row = await asking.ask(asking.call("fiona", SEND, report))

    assert row.approver_permission == "expense.payment.execute"
    assert await fate(asking.decide("fiona", row)) == "not_an_approver"
    assert await fate(asking.decide("bob", row)) == "not_found"
    assert await fate(asking.decide("axel", row)) == "not_an_approver"  # an auditor sees all
    for login, sees in (("fiona", False), ("frank", True), ("bob", False), ("mia", False)):
        shown = db.read_now(waiting, asking, login, "open")
        assert (row.id in shown) is sees, login
    assert db.read_now(waiting, asking, "fiona", "requested") == {row.id}
    assert await fate(asking.decide("frank", row)) == "approved"
    assert db.read_now(waiting, asking, "frank", "decided") == {row.id}
    assert db.read_now(waiting, asking, "frank", "open") == set()


@pytest.mark.requirement("CMD-12")
async def test_who_ran_the_conflicting_command_may_not_decide(asking: Asking) -> None:
    grants = {"expense.report.approve": "all", "expense.report.read": "all"}
    asking.desk.world.give(asking.acme["frank"], "also_manager", grants=grants)
    report = await asking.desk.submitted("alice", 2_000)
    await asking.desk.run("frank", "expense.report.approve", report)
    row = await asking.ask(asking.call("fiona", SEND, report))

    assert await fate(asking.decide("frank", row)) == "not_found"
    assert db.read_now(waiting, asking, "frank", "open") == set()
    assert asking.row(row.id).state == "open"


@pytest.mark.requirement("CMD-F16")
async def test_where_nobody_may_decide_it_waits_until_it_expires(asking: Asking) -> None:
    frank = asking.desk.world.user(asking.acme["frank"])
    report = await asking.desk.approved("alice", 2_000)
    row = await asking.ask(asking.call("fiona", SEND, report))
    for role in ("finance", "member"):
        db.transact_now(_take, asking, frank.id, role)

    assert await fate(asking.decide("frank", row)) == "not_found"
    assert await fate(asking.decide("fiona", row)) == "not_an_approver"
    assert asking.row(row.id).state == "open"


@pytest.mark.requirement("CMD-13", "SEC-36", "SEC-T8")
async def test_of_two_verdicts_one_counts(asking: Asking) -> None:
    report = await asking.desk.submitted("alice", 2_000)
    alice = asking.desk.person("alice")
    for _ in range(4):
        row = await asking.ask(asking.call("alice", REMIND, report))
        fates = await asyncio.gather(
            fate(asking.decide(alice, row, "approve")), fate(asking.decide(alice, row, "deny"))
        )
        state = asking.row(row.id).state
        assert sorted(fates) == sorted([state, "approval_closed"])
        again = "approve" if state == "approved" else "deny"
        assert await fate(asking.decide(alice, row, again)) == state
        other_session = asking.desk.world.person(asking.acme["alice"])
        assert await fate(asking.decide(other_session, row, again)) == "approval_closed"
        if state == "approved":
            await asking.run(asking.call("alice", REMIND, report, approval_id=row.id))
            assert await fate(asking.decide(alice, row, "approve")) == "consumed"


@pytest.mark.requirement("SEC-36", "SEC-74", "SEC-T3")
async def test_what_no_dialog_of_this_session_sent_decides_nothing(asking: Asking) -> None:
    report = await asking.desk.submitted("alice", 2_000)
    row = await asking.ask(asking.call("alice", REMIND, report))
    other = await asking.ask(asking.call("alice", REMIND, report, message="other"))
    alice = asking.desk.person("alice")
    elsewhere = asking.desk.world.person(asking.acme["alice"])
    good = deciding.nonce_for(row, alice.session_id or "")

    for wrong in (
        {"nonce": ""},
        {"nonce": "x.y"},
        {"nonce": good[:-1] + ("0" if good[-1] != "0" else "1")},
        {"nonce": "9" + good},
        {"nonce": deciding.nonce_for(row, elsewhere.session_id or "")},
        {"nonce": deciding.nonce_for(other, alice.session_id or "")},
        {"digest": other.digest},
        {"digest": ""},
    ):
        assert await fate(asking.decide(alice, row, **wrong)) == "decision_not_shown", wrong

    assert asking.row(row.id).state == "open"
    entries = asking.forged()
    assert {(each.approval_id, each.user_id, each.outcome) for each in entries} == {
        (row.id, alice.user_id, "refused")
    }
    assert await fate(asking.decide(asking.agent("alice"), row)) == "not_found"
    assert asking.forged()[-1].agent_id == asking.agent("alice").agent_id


@pytest.mark.requirement("SEC-36")
async def test_a_dialog_is_good_for_two_minutes(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = await asking.desk.submitted("alice", 2_000)
    row = await asking.ask(asking.call("alice", REMIND, report))
    with monkeypatch.context() as patch:
        patch.setattr(deciding, "DIALOG_LIVES", timedelta(seconds=-1))
        old = deciding.nonce_for(row, asking.desk.person("alice").session_id or "")

    assert await fate(asking.decide("alice", row, nonce=old)) == "dialog_too_old"
    assert asking.forged() == []
    assert await fate(asking.decide("alice", row)) == "approved"


@pytest.mark.requirement("SEC-36", "SEC-38", "UI-71")
async def test_critical_ones_need_the_name_typed_and_a_recent_sign_in(asking: Asking) -> None:
    report = await asking.desk.approved("alice", 2_000)
    row = await asking.ask(asking.call("fiona", SEND, report))
    frank = asking.desk.person("frank")

    assert deciding.to_type(row) == row.target_label
    with pytest.raises(Invalid) as wrong:
        await asking.decide(frank, row, typed="EXP-")
    assert [each.pointer for each in wrong.value.errors] == ["typed"]
    stale = Browser(is_fresh=False)
    decision = asking.decision(frank, row)
    assert await fate(deciding.attempt(frank, row.id, decision, stale)) == "step_up_required"
    assert asking.row(row.id).state == "open"

    typed = asking.decision(frank, row, typed=f"  {row.target_label} ")
    decided = await deciding.attempt(frank, row.id, typed, Browser(is_fresh=True, user_agent="F"))
    assert (decided.decided_by, decided.decision_session_id) == (frank.user_id, frank.session_id)
    assert (decided.surface, decided.user_agent) == ("console", "F")
    assert decided.typed == row.target_label


@pytest.mark.requirement("CMD-17", "UI-67")
async def test_a_denial_says_why_to_the_caller_and_in_the_trail(asking: Asking) -> None:
    report = await asking.desk.submitted("alice", 2_000)
    call = asking.call(asking.agent("alice"), REMIND, report)
    row = await asking.ask(call)
    with pytest.raises(Invalid):
        await asking.decide("alice", row, "deny", reason="x" * 501)
    await asking.decide("alice", row, "deny", reason="wrong account")

    refused = await asking.refused(
        asking.call(asking.agent("alice"), REMIND, report, approval_id=row.id)
    )

    assert (refused.reason, refused.advice) == ("approval_denied", "report_to_user")
    assert refused.facts["said"] == "wrong account"
    denied = asking.entries(row.id)[1]
    assert (denied.outcome, denied.user_id) == ("denied", asking.acme["alice"].id)
    assert denied.agent_id is None
    assert denied.input_redacted == {"reason": "wrong account"}


@pytest.mark.requirement("UI-81")
async def test_what_can_no_longer_run_is_not_approved(asking: Asking) -> None:
    report = await asking.desk.draft("alice", 2_000)
    row = await asking.ask(asking.call("alice", DISCARD, report))
    await asking.desk.add("alice", report, 100)

    assert await fate(asking.decide("alice", row)) == "approval_stale"
    shown = db.read_now(approval_reading.one_for, asking.desk.person("alice"), row.id)
    assert [name for _, name in shown.changed] == ["Alice Wang 王爱丽"]
    assert await fate(asking.decide("alice", row, "deny")) == "denied"


@pytest.mark.requirement("CMD-14")
async def test_a_persons_own_call_is_made_as_soon_as_somebody_approves_it(asking: Asking) -> None:
    report = await asking.desk.approved("alice", 2_000)
    row = await asking.ask(asking.call("fiona", SEND, report))
    assert (await approval_execution.carry_out(asking.acme.id, row.id)).done is None
    await asking.decide("frank", row)

    tries = await asyncio.gather(
        *(approval_execution.carry_out(asking.acme.id, row.id) for _ in range(4))
    )

    (carried,) = [each.done for each in tries if each.done]
    assert carried.outcome == "done"
    assert all(each.refused is None for each in tries)
    entry = asking.entries(row.id)[-1]
    assert (entry.user_id, entry.approved_by) == (asking.acme["fiona"].id, asking.acme["frank"].id)
    assert (await asking.desk.report(report))["state"] == "paid"


@pytest.mark.requirement("CMD-14")
async def test_what_a_dead_process_left_behind_is_made_once(asking: Asking) -> None:
    report = await asking.desk.submitted("alice", 2_000)
    row = await asking.ask(asking.call("alice", REMIND, report))
    await asking.decide("alice", row)
    assert await asyncio.to_thread(approval_execution.carry_out_due) == 0

    asking.set(row.id, decided_at=clock.now() - timedelta(minutes=1))

    assert await asyncio.to_thread(approval_execution.carry_out_due) == 1
    assert await asyncio.to_thread(approval_execution.carry_out_due) == 0
    assert asking.row(row.id).state == "consumed"


@pytest.mark.requirement("CMD-14")
async def test_rights_of_the_requester_are_read_anew(asking: Asking) -> None:
    report = await asking.desk.approved("alice", 2_000)
    row = await asking.ask(asking.call("fiona", SEND, report))
    await asking.decide("frank", row)
    db.transact_now(_take, asking, asking.acme["fiona"].id, "finance")

    carried = await approval_execution.carry_out(asking.acme.id, row.id)

    assert isinstance(carried.refused, Refused)
    assert (carried.refused.stage, carried.refused.reason) == ("authorize", "permission_denied")
    ended = asking.row(row.id)
    assert (ended.state, ended.failed_stage) == ("failed", "authorize")
    assert ended.failed_reason == "permission_denied"


@pytest.mark.requirement("CMD-28")
async def test_an_approver_may_change_what_is_asked_for(asking: Asking) -> None:
    report = await asking.desk.submitted("alice", 2_000)
    agent = asking.agent("alice")
    old = await asking.ask(asking.call(agent, REMIND, report, message="NOW!"))
    alice = asking.desk.person("alice")
    edited = {**old.arguments, "message": "when you can"}

    new = await approval_replacement.attempt(
        alice, old.id, Replacement(digest=old.digest, input=edited)
    )

    closed = asking.row(old.id)
    assert (closed.state, closed.superseded_by) == ("superseded", new.id)
    assert (new.replaces, new.changed_by, new.agent_id) == (old.id, alice.user_id, agent.agent_id)
    assert new.original is not None
    assert new.original["message"] == "NOW!"
    assert asking.entries(old.id)[-1].outcome == "superseded"
    named = asking.call(agent, REMIND, report, message="NOW!", approval_id=old.id)
    refused = await asking.refused(named)
    assert (refused.reason, refused.facts["supersededBy"]) == ("approval_stale", new.id)
    await asking.decide(alice, new)
    done = await asking.run(db.read_now(approvals.call_of, agent, new.id))
    assert done.outcome == "done"
    entry = asking.entries(new.id)[-1]
    assert entry.input_redacted is not None
    assert entry.input_redacted["message"] == "when you can"


@pytest.mark.requirement("CMD-28", "CMD-12")
async def test_who_changed_it_counts_as_who_asked_for_it(asking: Asking) -> None:
    grants = {"expense.payment.execute": "all", "expense.report.read": "all"}
    asking.desk.world.give(asking.acme["olga"], "payer", grants=grants)
    report = await asking.desk.approved("alice", 2_000)
    old = await asking.ask(asking.call("fiona", SEND, report))
    frank = asking.desk.person("frank")
    asked = dict(old.arguments)

    mine = Replacement(digest=old.digest, input=asked)
    refused = await fate(approval_replacement.attempt(asking.desk.person("fiona"), old.id, mine))
    again = await approval_replacement.attempt(frank, old.id, mine)  # prepared anew, unchanged
    changed = await approval_replacement.attempt(
        frank, again.id, Replacement(digest=again.digest, input={**asked, "payeeAccount": ""})
    )

    assert refused == "not_an_approver"
    assert (again.changed_by, changed.changed_by) == (None, frank.user_id)
    assert await fate(asking.decide("frank", changed)) == "not_an_approver"
    assert await fate(asking.decide("olga", changed)) == "approved"


@pytest.mark.requirement("CMD-28", "CMD-5")
async def test_a_change_that_would_not_run_changes_nothing(asking: Asking) -> None:
    report = await asking.desk.submitted("alice", 2_000)
    old = await asking.ask(asking.call("alice", REMIND, report))
    alice = asking.desk.person("alice")

    bad = {**old.arguments, "message": "x" * 600}
    assert (
        await fate(
            approval_replacement.attempt(alice, old.id, Replacement(digest=old.digest, input=bad))
        )
        == "invalid_input"
    )
    forged = Replacement(digest="0" * 64, input=dict(old.arguments))
    assert await fate(approval_replacement.attempt(alice, old.id, forged)) == "decision_not_shown"
    assert asking.row(old.id).state == "open"
    assert asking.count() == 1


def _take(work: Work, asking: Asking, user_id: str, code: str) -> None:
    user = users.one(work.session, asking.acme.id, user_id)
    for _, role, org in roles.assignments_of(work.session, user):
        if role.code == code:
            roles.unassign(work, asking.desk.world.acme_admin, user, role, org)
