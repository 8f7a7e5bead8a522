"""An effect outside happens once, or at least once with its key; the trail says what came of it."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from sqlmodel import col, select

from app.audit import trail
from app.audit.models import AuditEntry
from app.audit.trail import NewEntry
from app.commands import backoff, external, posting
from app.commands.call import Call
from app.commands.external import ExternalRequest, ExternalResult
from app.commands.outbox_models import EffectState, ExternalEffect
from app.kernel import clock as clocks
from app.kernel import db, events, ids, json, sealing
from app.kernel.db import Work
from tests.clock import Clock
from tests.commands.asking import Asking
from tests.commands.telling import Telling
from tests.packs.expenses.desk import Desk
from tests.people import World
from tests.webhook_receiver import Receiver, listening

NAME, TAXI = "bank.transfer", "sample.taxi.order"


@pytest.fixture
def telling(world: World, spenders: None, monkeypatch: pytest.MonkeyPatch) -> Telling:
    return Telling(Desk(world), monkeypatch)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with listening() as made:
        yield made


@pytest.fixture
def performing(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[ExternalRequest]]:
    """A performer of the test's own; `results` says what it answers, the last one again."""
    asked: list[ExternalRequest] = []

    async def perform(request: ExternalRequest) -> ExternalResult:
        asked.append(request)
        answer: ExternalResult | Exception = RESULTS.pop(0) if len(RESULTS) > 1 else RESULTS[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setitem(external.performers, NAME, perform)
    yield asked
    RESULTS[:] = [ExternalResult(outcome="done")]


RESULTS: list[ExternalResult | Exception] = [ExternalResult(outcome="done")]


def order(telling: Telling, *, is_idempotent: bool = False, risk: str = "L4") -> str:
    """What the transaction of a dispatched call leaves: its entry, the effect; the call's id."""
    return db.transact_now(_order, telling, is_idempotent, risk)


def _order(work: Work, telling: Telling, is_idempotent: bool, risk: str) -> str:
    call_id, now = ids.ulid(), clocks.now()
    acme, ada = telling.acme, telling.acme["ada"]
    trail.append(
        work,
        NewEntry(
            tenant_id=acme.id,
            call_id=call_id,
            command="bank.transfer.send",
            version=1,
            risk=risk,
            outcome="dispatched",
            channel="console",
            user_id=ada.id,
            approved_by=ada.id,
            approved_at=now,
            changes=[{"record": "x"}],
        ),
    )
    purpose = f"external_effect:{acme.id}:{call_id}"
    work.session.add(
        ExternalEffect(
            tenant_id=acme.id,
            call_id=call_id,
            code="bank.transfer.send",
            performer=NAME,
            is_idempotent=is_idempotent,
            user_id=ada.id,
            sealed=sealing.seal(json.dumps({"amountMinor": 100, "iban": "SECRET-1"}), purpose),
            due_at=now,
            created_at=now,
        )
    )
    return call_id


def effect(telling: Telling, call_id: str) -> ExternalEffect:
    found = db.read_now(external.one, telling.acme.id, call_id)
    assert found is not None
    return found


def outcomes(call_id: str) -> list[str]:
    query = select(AuditEntry).where(AuditEntry.call_id == call_id).order_by(col(AuditEntry.seq))
    return [each.outcome for each in db.read_now(lambda session: session.exec(query).all())]


@pytest.mark.requirement("CMD-27")
async def test_what_was_done_outside_is_a_second_entry_of_the_call(
    telling: Telling, performing: list[ExternalRequest]
) -> None:
    call_id = order(telling)
    await telling.tell()
    await telling.tell()

    (request,) = performing
    assert request.data == {"amountMinor": 100, "iban": "SECRET-1"}
    assert (request.call_id, request.attempt) == (call_id, 1)
    assert outcomes(call_id) == ["dispatched", "done"]
    done = effect(telling, call_id)
    assert done.state == EffectState.DONE
    assert b"SECRET-1" not in done.sealed
    query = select(AuditEntry).where(AuditEntry.outcome == "done", AuditEntry.call_id == call_id)
    entry = db.read_now(lambda session: session.exec(query).one())
    assert (entry.risk, entry.approved_by) == ("L4", telling.acme["ada"].id)
    assert entry.changes is None


@pytest.mark.requirement("CMD-27", "CMD-20")
async def test_a_command_with_an_effect_outside_is_dispatched_and_ends_later(
    samples: World, telling: Telling, monkeypatch: pytest.MonkeyPatch
) -> None:
    got: list[ExternalRequest] = []

    async def perform(request: ExternalRequest) -> ExternalResult:
        got.append(request)
        return ExternalResult(outcome="done", data={"car": "B-7"})

    monkeypatch.setitem(external.performers, TAXI, perform)
    asking = Asking(telling.desk)
    ride = {"to": "Hongqiao", "card": "6222 0212"}

    def call(**more: Any) -> Call:
        alice = telling.desk.person("alice")
        return Call(code=TAXI, input=ride, principal=alice, idempotency_key="ride-1", **more)

    row = await asking.ask(call())
    (outside,) = row.preview["outside"]
    assert (outside["kind"], outside["name"]) == ("external", TAXI)
    assert outside["data"] == {"to": "Hongqiao", "card": "secret"}
    await asking.decide("alice", row)
    done = await asking.run(call(approval_id=row.id))
    assert done.outcome == "dispatched"
    assert got == [], "nothing leaves before the commit, or inside it"
    waits = await asking.refused(call(approval_id=row.id))
    assert waits.reason == "in_flight"

    await telling.tell()
    (request,) = got
    assert request.data == ride
    assert outcomes(done.call_id) == ["dispatched", "done"]
    again = await asking.run(call(approval_id=row.id))
    assert again.outcome == "replayed"
    assert again.result["outside"] == {"outcome": "done", "reason": "", "car": "B-7"}
    await telling.tell()
    assert len(got) == 1


@pytest.mark.requirement("CMD-27")
async def test_what_may_have_happened_is_never_repeated(
    clock: Clock, telling: Telling, performing: list[ExternalRequest]
) -> None:
    RESULTS[:] = [TimeoutError()]
    raised = order(telling)
    await telling.tell()
    clock.move(hours=1)
    await telling.tell()
    assert len(performing) == 1
    assert outcomes(raised) == ["dispatched", "unknown"]

    died = order(telling)
    found = effect(telling, died)
    assert await db.transaction(external._start, found), "written down, and then the process died"
    await telling.tell()
    assert effect(telling, died).state == EffectState.STARTED, "its lease is not over"
    clock.move(minutes=3)
    await telling.tell()

    assert len(performing) == 1
    assert outcomes(died) == ["dispatched", "unknown"]
    listed = db.read_now(external.unknown, telling.acme.id)
    assert {each.call_id for each in listed} == {raised, died}
    page = await telling.desk.world.client(telling.acme["ada"]).get("/admin/webhooks")
    assert "The server stopped after it was sent." in page.text
    assert died in page.text


@pytest.mark.requirement("CMD-27")
async def test_what_can_be_told_apart_is_tried_again_with_its_key(
    clock: Clock, telling: Telling, performing: list[ExternalRequest]
) -> None:
    lost = ExternalResult(outcome="unknown", reason="timeout", may_retry=True)
    RESULTS[:] = [lost, RuntimeError("gone"), ExternalResult(outcome="done", data={"ref": "7"})]
    call_id = order(telling, is_idempotent=True)

    await telling.tell()
    assert outcomes(call_id) == ["dispatched"]
    for _ in range(2):
        clock.move(seconds=5)
        await telling.tell()

    assert {request.key for request in performing} == {call_id}
    assert [request.attempt for request in performing] == [1, 2, 3]
    assert outcomes(call_id) == ["dispatched", "done"]
    assert effect(telling, call_id).result == {"ref": "7"}


@pytest.mark.requirement("CMD-27")
async def test_ten_tries_are_enough(
    clock: Clock, telling: Telling, performing: list[ExternalRequest]
) -> None:
    RESULTS[:] = [ExternalResult(outcome="failed", reason="status_500", may_retry=True)]
    call_id = order(telling, is_idempotent=True)
    for _ in range(12):
        await telling.tell()
        clock.move(minutes=12)

    assert len(performing) == 10
    assert outcomes(call_id) == ["dispatched", "failed"]


@pytest.mark.requirement("CMD-27")
async def test_two_processes_perform_an_effect_once(
    telling: Telling, performing: list[ExternalRequest]
) -> None:
    call_id = order(telling)
    found = effect(telling, call_id)

    await external.perform(found, posting.post)
    await external.perform(found, posting.post)

    assert len(performing) == 1
    assert outcomes(call_id) == ["dispatched", "done"]


@pytest.mark.requirement("CMD-27")
@pytest.mark.parametrize(
    ("status", "outcome"),
    [(200, "done"), (400, "failed"), (500, "failed"), (504, "unknown")],
)
async def test_without_a_performer_it_is_posted_to_the_address_of_its_name(
    clock: Clock, telling: Telling, receiver: Receiver, status: int, outcome: str
) -> None:
    nowhere = order(telling)
    await telling.tell()
    receiver.answer = lambda _: status
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("app.commands.webhooks._check", lambda *_, **__: None)
        _, secret = telling.subscribe(receiver, [], api_call=NAME)
    call_id = order(telling)
    await telling.tell()

    (got,) = receiver.received
    assert got.is_signed_with(secret)
    assert got.id == got.headers["idempotency-key"] == got.event["callId"] == call_id
    assert got.event["data"]["amountMinor"] == 100
    assert outcomes(call_id) == ["dispatched", outcome]
    assert outcomes(nowhere) == ["dispatched", "failed"]
    assert effect(telling, nowhere).last_error == "no_address"
    clock.move(days=1)
    await telling.tell()
    assert len(receiver.received) == 1
    assert timedelta(seconds=external.LIMIT_S) < external.LEASE


@pytest.mark.requirement("CMD-27")
async def test_an_order_that_cannot_be_read_fails_and_holds_up_no_other(
    telling: Telling, performing: list[ExternalRequest]
) -> None:
    broken, other = order(telling, is_idempotent=True), order(telling)
    _change(telling, broken, sealed=b"broken")

    await telling.tell()

    assert [request.call_id for request in performing] == [other]
    assert (outcomes(broken), outcomes(other)) == (["dispatched", "failed"], ["dispatched", "done"])
    assert effect(telling, broken).last_error == "unreadable"


@pytest.mark.requirement("CMD-27")
async def test_an_effect_whose_end_nobody_can_be_told_is_not_performed_again(
    clock: Clock, telling: Telling, performing: list[ExternalRequest]
) -> None:
    def breaks(_work: Work, _settled: external.EffectSettled) -> None:
        raise RuntimeError("who listens is broken")

    call_id = order(telling, is_idempotent=True)
    stop = events.subscribe_inside(external.EffectSettled, breaks)
    try:
        await telling.tell()
        clock.move(minutes=10)
        await telling.tell()
    finally:
        stop()

    assert len(performing) == 1
    assert outcomes(call_id) == ["dispatched", "done"]


@pytest.mark.requirement("CMD-27")
async def test_what_is_lost_with_each_of_its_performers_is_unknown_after_ten(
    telling: Telling, performing: list[ExternalRequest]
) -> None:
    call_id = order(telling, is_idempotent=True)
    _change(telling, call_id, state=EffectState.STARTED, attempts=backoff.TRIES)

    await telling.tell()

    assert performing == []
    assert outcomes(call_id) == ["dispatched", "unknown"]


def _change(telling: Telling, call_id: str, **values: Any) -> None:
    def change(work: Work) -> None:
        row = work.session.get_one(ExternalEffect, (telling.acme.id, call_id))
        for name, value in values.items():
            setattr(row, name, value)
        work.session.add(row)

    db.transact_now(change)
