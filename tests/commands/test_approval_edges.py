"""The corners of approvals: who is overtaken, what is gone, what was never there."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from app.commands import (
    approval_digest,
    approval_execution,
    approval_reading,
    approval_replacement,
    approval_rights,
    approvals,
    deciding,
    pipeline,
    registry,
)
from app.commands.approval_models import Approval
from app.commands.approval_replacement import Replacement
from app.kernel import clock, db
from app.kernel.db import Work
from app.kernel.errors import Busy
from tests.commands.asking import DISCARD, REMIND, SEND, Asking, fate
from tests.packs.expenses.desk import Desk
from tests.people import World


@pytest.fixture
def asking(world: World, spenders: None) -> Asking:
    """Everybody who asks and decides, on a database of each kind in turn."""
    return Asking(Desk(world))


def overtaking(original: Callable[..., Any], state: str) -> Callable[..., Any]:
    """`original`, after which somebody else was faster with the approval at hand."""

    def overtaken(*args: Any) -> Any:
        found = original(*args)
        work = next(each for each in args if isinstance(each, Work))
        work.connection.exec_driver_sql(f"UPDATE approval SET state = '{state}'")  # noqa: S608
        return found

    return overtaken


@pytest.mark.requirement("CMD-20")
def test_secrets_are_masked_wherever_they_stand() -> None:
    value = {"a": [{"pin": "1"}, {"pin": None}, {}], "b": "2", "c": 3}

    masked = approval_digest.masked(value, ("a/*/pin", "b", "d/e"), b"key")

    assert masked["a"][0]["pin"]["length"] == 1
    assert masked["a"][1:] == [{"pin": None}, {}]
    assert masked["b"]["redacted"] is True
    assert masked["c"] == 3
    assert value["b"] == "2"
    assert not approval_digest.same({"n": 2**60}, {"n": 2**60})
    assert approval_digest.same({"n": 1e2}, {"n": 100})


@pytest.mark.requirement("CMD-13", "CMD-14")
async def test_who_is_overtaken_between_look_and_act_loses(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = await asking.desk.submitted("alice", 2_000)
    row = await asking.ask(asking.call("alice", REMIND, report))
    with monkeypatch.context() as patch:
        patch.setattr(deciding, "_check_consent", overtaking(deciding._check_consent, "cancelled"))
        assert await fate(asking.decide("alice", row)) == "approval_closed"
    await asking.decide("alice", row)
    named = asking.call("alice", REMIND, report, approval_id=row.id)
    for state, reason in (("consumed", "approval_consumed"), ("open", "approval_expired")):
        with monkeypatch.context() as patch:
            patch.setattr(approvals, "_digests", overtaking(approvals._digests, state))
            assert (await asking.refused(named)).reason == reason
    with monkeypatch.context() as patch:
        patch.setattr(
            approval_replacement, "_asked", overtaking(approval_replacement._asked, "consumed")
        )
        asking.set(row.id, state="open")
        again = Replacement(digest=row.digest, input=dict(row.arguments))
        replaced = approval_replacement.attempt(asking.desk.person("alice"), row.id, again)
        assert await fate(replaced) == "approval_closed"


@pytest.mark.requirement("CMD-14")
async def test_what_the_database_had_no_place_for_is_tried_again(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = await asking.desk.submitted("alice", 2_000)
    row = await asking.ask(asking.call("alice", REMIND, report))
    await asking.decide("alice", row)
    asking.set(row.id, decided_at=clock.now() - timedelta(minutes=1))

    async def busy(_call: Any) -> Any:
        raise Busy

    async def broken(_call: Any) -> Any:
        raise RuntimeError("broken")

    for fault in (busy, broken):
        with monkeypatch.context() as patch:
            patch.setattr(pipeline, "execute", fault)
            assert await asyncio.to_thread(approval_execution.carry_out_due) == 1
        assert asking.row(row.id).state == "approved"
        asking.set(row.id, carried_at=clock.now() - timedelta(minutes=1))

    assert await asyncio.to_thread(approval_execution.carry_out_due) == 1
    assert asking.row(row.id).state == "consumed"
    assert await asyncio.to_thread(approval_execution.carry_out_due) == 0


@pytest.mark.requirement("CMD-28")
async def test_only_what_is_open_and_theirs_is_replaced(asking: Asking) -> None:
    report = await asking.desk.submitted("alice", 2_000)
    row = await asking.ask(asking.call("alice", REMIND, report))
    same = Replacement(digest=row.digest, input=dict(row.arguments))
    other = await asking.ask(asking.call("alice", REMIND, report, message="x"))
    as_other = Replacement(digest=row.digest, input=dict(other.arguments))
    alice, bob = asking.desk.person("alice"), asking.desk.person("bob")

    assert await fate(approval_replacement.attempt(bob, row.id, same)) == "not_found"
    joined = await approval_replacement.attempt(alice, row.id, as_other)
    assert joined.id == other.id  # which asks just that already
    assert asking.row(row.id).superseded_by == other.id
    assert await fate(approval_replacement.attempt(alice, row.id, same)) == "approval_closed"
    nothing = Replacement(digest=other.digest, input={"operationType": "UPDATE"})
    assert await fate(approval_replacement.attempt(alice, other.id, nothing)) != "open"
    assert asking.row(other.id).state == "open"


@pytest.mark.requirement("CMD-12", "UI-81")
async def test_what_is_gone_can_neither_be_decided_nor_run(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = await asking.desk.draft("alice", 2_000)
    first = await asking.ask(asking.call("alice", DISCARD, draft))
    second = await asking.ask(asking.call(asking.agent("alice"), DISCARD, draft))
    await asking.decide("alice", second)
    await asking.run(asking.call(asking.agent("alice"), DISCARD, draft, approval_id=second.id))
    paid = await asking.ask(asking.call("fiona", SEND, await asking.desk.approved("alice", 2_000)))
    alice, frank = asking.desk.person("alice"), asking.desk.person("frank")

    assert await fate(asking.decide(alice, first)) == "approval_stale"
    shown = db.read_now(approval_reading.one_for, alice, first.id)
    assert [(each.label, each.by) for each, _ in shown.changed] == [(first.target_label, None)]

    monkeypatch.setattr(registry._found, "record_types", {})  # its pack is no longer there
    assert db.read_now(approval_rights.may_decide, frank, paid) is False
    assert db.read_now(approval_reading.count, frank, approval_reading.Wanted()) == 0
    assert db.read_now(approval_reading.one_for, alice, first.id).changed == []


@pytest.mark.requirement("CMD-12", "SEC-2")
async def test_without_a_record_an_approver_reaches_the_requesters_organisation(
    asking: Asking,
) -> None:
    row = await asking.ask(asking.call("fiona", SEND, await asking.desk.approved("alice", 2_000)))
    asking.set(row.id, target_type=None, target_id=None, target_versions={})
    bare = asking.row(row.id)
    wanted = approval_reading.Wanted()

    for login, decides in (("frank", True), ("fiona", False), ("bob", False)):
        person = asking.desk.person(login)
        assert db.read_now(approval_rights.may_decide, person, bare) is decides, login
        assert db.read_now(approval_reading.count, person, wanted) == int(decides), login
    gus = asking.desk.world.person(asking.desk.globex_gus)
    assert db.read_now(approval_rights.may_see, gus, bare) is False
    assert db.read_now(approval_rights.may_decide, gus, bare) is False
    assert db.read_now(approval_rights.may_decide, asking.agent("alice"), bare) is False


async def test_an_approved_row_without_its_person_is_a_fault(asking: Asking) -> None:
    report = await asking.desk.submitted("alice", 2_000)
    row = await asking.ask(asking.call("alice", REMIND, report))
    asking.set(row.id, state="approved")

    refused = await asking.refused(asking.call("alice", REMIND, report, approval_id=row.id))

    assert (refused.status, refused.reason) == (500, "approval_check_failed")
    assert isinstance(asking.row(row.id), Approval)
