"""What is due for many goes on when one of them holds a value that nobody can read."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlmodel import Session, select
from structlog.testing import capture_logs

from app.audit import repeats
from app.audit.models import AuditRepeat
from app.aun import retention
from app.aun.models import Message
from app.aun.pki import renewal
from app.aun.pki_models import Certificate, IssuerAuthority
from app.commands import approval_closing
from app.commands.approval_models import Approval
from app.identity import delegations
from app.identity.models import Delegation, Tenant
from app.kernel import clock as kernel_clock
from app.kernel import db, due, ids
from app.kernel.db import Work
from app.runs import delivery, inputs, opening, recovery, schedules, waking
from app.runs.run_models import AgentSchedule, Run
from app.runs.states import WaitKind
from tests.clock import Clock
from tests.runs.agents import Office
from tests.runs.test_recovery import LONG_AGO

UNREADABLE: Any = 5  # where a document belongs


@dataclass(frozen=True)
class Twins:
    """Two rows that are due, of which the first cannot be read.

    Attributes:
        job: what works through all that is due.
        broken: the id of the first, as the log has it.
        fates: what became of the two.
        as_they_were: what it says while nothing did.
        other_done: of the other one, when it was done.
        given_up: of the broken one, when it was given an end; None: it has none but to be mended.
    """

    job: Callable[[], Awaitable[object]]
    broken: str
    fates: Callable[[], tuple[object, object]]
    as_they_were: tuple[object, object]
    other_done: object
    given_up: object = None


Arrange = Callable[[Office, Clock], Awaitable[Twins]]


def _on_a_thread(job: Callable[[], object]) -> Callable[[], Awaitable[object]]:
    return lambda: asyncio.to_thread(job)


def _of(table: type[Any], name: str, *keys: tuple[str, ...]) -> Callable[[], tuple[object, object]]:
    """One column of two rows."""

    def one(session: Session, key: tuple[str, ...]) -> object:
        return getattr(session.get_one(table, key), name)

    def fates() -> tuple[object, object]:
        first, second = (db.read_now(one, key) for key in keys)
        return first, second

    return fates


def _approval(office: Office, expires_at: datetime, **values: Any) -> tuple[str, str]:
    """The key of an open approval of alice's."""
    now, id = kernel_clock.now(), ids.ulid()
    alice = office.world.acme["alice"]
    row = Approval(
        tenant_id=office.tenant_id,
        id=id,
        ask_key=id,
        digest="d",
        command="expense.report.remind",
        version=1,
        risk="L1",
        idempotent=True,
        reversible=True,
        arguments={},
        target_versions={},
        preview={},
        preview_digest="d",
        previewed_at=now,
        user_id=alice.id,
        org_id=alice.org_id,
        channel="page",
        call_id=id,
        opened_at=now,
        expires_at=expires_at,
    )
    for name, value in values.items():
        setattr(row, name, value)
    db.transact_now(lambda work: work.session.add(row))
    return office.tenant_id, id


async def approvals_that_are_over(office: Office, clock: Clock) -> Twins:
    over = clock.now + timedelta(minutes=5)
    broken = _approval(office, over, origin=UNREADABLE)
    other = _approval(office, over + timedelta(seconds=1))
    clock.move(minutes=6)
    return Twins(
        _on_a_thread(approval_closing.sweep),
        broken[1],
        _of(Approval, "state", broken, other),
        ("open", "open"),
        "expired",
    )


async def delegations_that_are_over(office: Office, clock: Clock) -> Twins:
    keys = []
    for login in ("alice", "bob"):
        key = (office.tenant_id, office.world.acme.delegations[login].id)
        office.force(Delegation, key, expires_at=clock.now + timedelta(minutes=5))
        keys.append(key)
    _approval(office, clock.now + timedelta(days=1), delegation_id=keys[0][1], origin=UNREADABLE)
    clock.move(minutes=6)
    ended = _of(Delegation, "revoked_at", *keys)
    return Twins(
        _on_a_thread(delegations.sweep),
        keys[0][1],
        lambda: (ended()[0] is not None, ended()[1] is not None),
        (False, False),
        True,
    )


async def refusals_that_were_counted(office: Office, clock: Clock) -> Twins:
    def count(work: Work) -> None:
        for key, entry in (("a", {"nonsense": 1}), ("b", {"command": "x", "risk": "L0"})):
            work.session.add(
                AuditRepeat(
                    tenant_id=office.tenant_id,
                    key_sha256=key * 64,
                    began_at=clock.now,
                    seen=repeats.OWN + (1 if key == "a" else 0),
                    entry=entry,
                )
            )

    def fates() -> tuple[bool, bool]:
        query = select(AuditRepeat.key_sha256)
        open_ = db.read_now(lambda session: set(session.exec(query)))
        return "a" * 64 in open_, "b" * 64 in open_

    db.transact_now(count)
    clock.move(minutes=2)
    job = _on_a_thread(repeats.sweep)
    return Twins(job, "a" * 64, fates, (True, True), False)


async def certificates_that_end(office: Office, clock: Clock) -> Twins:
    clock.move(days=340)
    first, second, *_ = db.read_now(renewal._ending, 0)
    office.force(Certificate, first, der=b"broken")
    return Twins(
        _on_a_thread(renewal.renew_due),
        first[1],
        _of(Certificate, "state", first, second),
        ("active", "active"),
        "retired",
    )


async def gateways_whose_proof_ends(office: Office, clock: Clock) -> Twins:
    keys = [(company.id,) for company in (office.world.acme, office.world.globex)]
    clock.move(days=340)
    office.force(IssuerAuthority, keys[0], auth_certificate=b"broken")
    proof = _of(IssuerAuthority, "auth_certificate", *keys)
    before = proof()
    return Twins(
        _on_a_thread(renewal.renew_due),
        "",
        lambda: (proof()[0] == before[0], proof()[1] == before[1]),
        (True, True),
        False,
    )


async def messages_that_are_old(office: Office, clock: Clock) -> Twins:
    acme, globex = (office.world.acme, office.world.globex)
    office.say("alice")
    sent = db.read_now(lambda session: session.exec(select(Message)).one())
    office.force(Tenant, (acme.id,), settings={retention.SETTING: 1})
    office.force(Tenant, (globex.id,), settings=UNREADABLE)
    clock.move(days=3)

    def fates() -> tuple[bool, bool]:
        kept = db.read_now(lambda session: session.get(Message, (sent.tenant_id, sent.id)))
        return True, kept is not None

    return Twins(_on_a_thread(retention.trim), "", fates, (True, True), False)


async def runs_to_be_opened(office: Office, clock: Clock) -> Twins:
    office.publish("expenses", limits=UNREADABLE)
    office.say("alice", to="expenses")
    office.say("alice", to="stock")
    await office.hear()
    (first,), (second,) = office.inputs("expenses"), office.inputs("stock")

    def fates() -> tuple[object, object]:
        opened = {run.lane_id for run in office.runs()}
        (broken,) = office.inputs("expenses")
        return broken.reason, second.lane_id in opened

    return Twins(opening.open_due, first.lane_id or "", fates, (None, False), True, "not_taken")


async def messages_to_be_heard(office: Office, clock: Clock) -> Twins:
    said, _ = office.say("alice", to="expenses"), office.say("alice", to="stock")
    office.force(Message, (office.tenant_id, said.id), payload=UNREADABLE)
    agent_id = office.agent("expenses").id

    def fates() -> tuple[object, object]:
        broken, other = (
            next(((each.state, each.reason) for each in office.inputs(code)), None)
            for code in ("expenses", "stock")
        )
        return broken, other

    return Twins(
        delivery.hear_all,
        f"{agent_id}/{said.conversation_id}",
        fates,
        (None, None),
        ("queued", None),
        ("archived", "unreadable"),
    )


async def schedules_to_be_fired(office: Office, clock: Clock) -> Twins:
    keys = []
    for _ in range(2):
        made = db.transact_now(
            schedules.create, office.person(), office.agent().id, "Look.", "daily 10:00", "UTC"
        )
        keys.append((office.tenant_id, made.id))
        clock.move(seconds=1)
    office.say("alice")
    office.force(AgentSchedule, keys[0], rule="nonsense")
    clock.move(hours=1)

    def fates() -> tuple[object, object]:
        first, _ = _of(AgentSchedule, "paused_at", *keys)()
        return first is not None, len(office.runs())

    return Twins(schedules.fire_due, keys[0][1], fates, (False, 0), 1, True)


async def _two_runs(office: Office) -> tuple[Any, Any]:
    made = []
    for login in ("alice", "bob"):
        office.say(login)
        run = await office.begun()
        await inputs.admit_first(run)
        made.append(run)
    return made[0], made[1]


def _ends_of(office: Office, first: Any, second: Any) -> Callable[[], tuple[object, object]]:
    def fates() -> tuple[object, object]:
        rows = [office.run(each.claim.run_id) for each in (first, second)]
        broken, other = [(row.state, row.reason) for row in rows]
        return broken, other

    return fates


async def runs_to_be_woken(office: Office, clock: Clock) -> Twins:
    first, second = await _two_runs(office)
    over = clock.now + timedelta(minutes=1)
    asked = _approval(office, over, run_id=first.claim.run_id, origin=UNREADABLE)
    wait_id = office.suspend(first.claim, WaitKind.APPROVAL, ref=asked[1], due_at=over)
    office.suspend(second.claim, WaitKind.TIMER, due_at=over)
    clock.move(minutes=2)
    return Twins(
        waking.wake_due,
        wait_id,
        _ends_of(office, first, second),
        (("suspended", None), ("suspended", None)),
        ("queued", None),
        ("failed", "internal"),
    )


async def runs_to_be_recovered(office: Office, clock: Clock) -> Twins:
    first, second = await _two_runs(office)
    over = clock.now + timedelta(days=1)
    _approval(office, over, run_id=first.claim.run_id, origin=UNREADABLE)
    for run, takeovers in ((first, recovery.TAKEOVERS), (second, 0)):
        key = (office.tenant_id, run.claim.run_id)
        office.force(Run, key, lease_until=LONG_AGO, takeovers=takeovers)
    return Twins(
        lambda: recovery.recover_due(()),
        first.claim.run_id,
        _ends_of(office, first, second),
        (("running", None), ("running", None)),
        ("queued", None),
        ("interrupted", "crash_loop"),
    )


KINDS: list[Arrange] = [
    approvals_that_are_over,
    delegations_that_are_over,
    refusals_that_were_counted,
    certificates_that_end,
    gateways_whose_proof_ends,
    messages_that_are_old,
    runs_to_be_opened,
    messages_to_be_heard,
    schedules_to_be_fired,
    runs_to_be_woken,
    runs_to_be_recovered,
]


@pytest.mark.requirement("RUN-61")
@pytest.mark.parametrize("arrange", KINDS, ids=lambda each: each.__name__)
async def test_one_that_cannot_be_read_keeps_nobody_from_the_others(
    clock: Clock, office: Office, arrange: Arrange
) -> None:
    twins = await arrange(office, clock)
    assert twins.fates() == twins.as_they_were

    first = await _failures(twins)
    assert twins.fates() == (twins.as_they_were[0], twins.other_done)
    assert first == [twins.broken]

    assert len(await _failures(twins)) == 1, "it is tried again"
    assert await _failures(twins) == [], "and rests in between"
    clock.move(seconds=2)
    assert len(await _failures(twins)) == 1


@pytest.mark.requirement("RUN-61")
@pytest.mark.parametrize("arrange", KINDS, ids=lambda each: each.__name__)
async def test_what_no_try_can_do_has_an_honest_end_where_there_is_one(
    clock: Clock, office: Office, arrange: Arrange
) -> None:
    twins = await arrange(office, clock)

    for _ in range(due.TRIES):
        assert len(await _failures(twins)) == 1
        assert twins.fates()[0] == twins.as_they_were[0]
        clock.move(seconds=due.LONGEST_S)
    still = await _failures(twins)

    if twins.given_up is None:
        assert (still, twins.fates()[0]) == ([twins.broken], twins.as_they_were[0])
    else:
        assert (still, twins.fates()[0]) == ([], twins.given_up)
        assert await _failures(twins) == []


async def _failures(twins: Twins) -> list[str]:
    """Do what is due; the ids the log names of what could not be done."""
    with capture_logs() as logged:
        await twins.job()
    return [each["row_id"] for each in logged if each["event"] == "due_failed"]
