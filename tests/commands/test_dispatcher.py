"""What stands in the outbox is told: at once, in order, at least once, and to all but the dead."""

import asyncio
from collections.abc import Iterator, Sequence

import pytest
from sqlmodel import Session
from structlog.testing import capture_logs

from app.commands import backoff, deliveries, dispatcher, outbox, snapshots, webhooks
from app.commands.dispatcher import Dispatcher
from app.commands.outbox_models import OutboxEvent, Waiting, WebhookSubscription
from app.commands.stages import domain_event, governance_snapshot
from app.kernel import db, due
from app.kernel.db import Work
from tests.clock import Clock
from tests.commands.telling import Telling
from tests.packs.expenses.desk import Desk
from tests.people import World
from tests.webhook_receiver import Received, Receiver, listening

CREATED, UPDATED = "expense.report.created", "expense.report.updated"


@pytest.fixture
def telling(world: World, spenders: None, monkeypatch: pytest.MonkeyPatch) -> Telling:
    return Telling(Desk(world), monkeypatch)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with listening() as made:
        yield made


@pytest.mark.requirement("CMD-F26", "CMD-24")
async def test_a_receiver_down_for_an_hour_gets_everything_in_order_afterwards(
    clock: Clock, telling: Telling, receiver: Receiver
) -> None:
    telling.subscribe(receiver)
    receiver.down()
    report = await telling.desk.draft("alice")
    other = await telling.desk.draft("bob")
    tries = 0
    for minute in range(60):
        if minute % 20 == 0:
            await telling.desk.run("alice", "expense.report.update", report, title=f"At {minute}")
        await telling.tell()
        tries = sum(each.attempts for each in telling.deliveries())
        clock.move(minutes=1)

    assert 10 < tries < 60, "less and less often, by one that asks for all"
    assert {each.state for each in telling.deliveries()} == {Waiting.PENDING}

    receiver.up()
    clock.move(minutes=11)
    await telling.tell()

    about = {report: list[int](), other: list[int]()}
    for got in receiver.received:
        record = got.event["data"]["record"]
        about[record["id"]].append(record["version"])
    assert about == {report: [1, 2, 3, 4], other: [1]}
    assert len({got.id for got in receiver.received}) == 5
    assert {each.state for each in telling.deliveries()} == {Waiting.DONE}


@pytest.mark.requirement("CMD-24")
async def test_ten_tries_that_are_answered_with_a_no_are_enough(
    clock: Clock, telling: Telling, receiver: Receiver
) -> None:
    receiver.answer = lambda request: 500 if request.type == CREATED else 204
    telling.subscribe(receiver)
    report = await telling.desk.draft("alice")
    await telling.desk.run("alice", "expense.report.update", report, title="Other")
    waits = []
    for _ in range(backoff.TRIES):
        await telling.tell()
        await telling.tell()
        waits.append((telling.deliveries()[0].due_at - clock.now).total_seconds())
        clock.set(telling.deliveries()[0].due_at)

    tried = [got for got in receiver.received if got.type == CREATED]
    assert len(tried) == 10
    assert len({(got.id, got.body) for got in tried}) == 1
    assert all(
        0.8 * 2**number <= wait <= 1.2 * 2**number for number, wait in enumerate(waits[:9])
    ), waits
    first, second = telling.deliveries()
    assert (first.state, second.state) == (Waiting.DEAD, Waiting.DONE)
    assert receiver.types[-1] == UPDATED, "what follows waited for it, and not for ever"


@pytest.mark.requirement("CMD-24")
async def test_one_record_waits_for_itself_alone(
    clock: Clock, telling: Telling, receiver: Receiver
) -> None:
    report = await telling.desk.draft("alice")
    receiver.answer = lambda request: (
        500 if request.event["data"]["record"]["id"] == report else 204
    )
    telling.subscribe(receiver)
    await telling.desk.run("alice", "expense.report.update", report, title="Two")
    await telling.desk.run("alice", "expense.report.update", report, title="Three")
    other = await telling.desk.draft("bob")
    await telling.tell()

    seen = [got.event["data"]["record"]["id"] for got in receiver.received]
    assert sorted(seen) == sorted([report, other])

    receiver.answer = lambda _: 204
    clock.move(seconds=2)
    await telling.tell()
    versions = [
        got.event["data"]["record"]["version"]
        for got in receiver.received
        if got.event["data"]["record"]["id"] == report
    ]
    assert versions == [1, 1, 2, 3]


@pytest.mark.requirement("CMD-24")
async def test_two_processes_tell_everything_once(
    clock: Clock, telling: Telling, receiver: Receiver
) -> None:
    telling.subscribe(receiver)
    for _ in range(6):
        await telling.desk.draft("alice")

    await asyncio.gather(Dispatcher().drain(), Dispatcher().drain(), Dispatcher().drain())
    await telling.tell()

    assert len(receiver.received) == len({got.id for got in receiver.received}) == 6
    assert {each.attempts for each in telling.deliveries()} == {1}


@pytest.mark.requirement("CMD-24")
async def test_who_dies_while_sending_only_delays_it(
    clock: Clock, telling: Telling, receiver: Receiver
) -> None:
    made, _ = telling.subscribe(receiver)
    await telling.desk.draft("alice")
    receiver.down()
    await telling.tell()
    receiver.up()
    clock.move(seconds=2)
    claimed = await db.transaction(deliveries.claim, made.tenant_id, made.id)
    assert len(claimed) == 1, "somebody has it, and is never heard of again"

    await telling.tell()
    assert receiver.received == []
    clock.move(seconds=61)
    await telling.tell()
    answer = deliveries.Answer(500, 1)
    await db.transaction(deliveries.settle, claimed[0], answer)  # it was only slow

    (sent,) = telling.deliveries()
    assert (sent.state, sent.response_status) == (Waiting.DONE, 204)
    assert len(receiver.received) == 1


@pytest.mark.requirement("CMD-24")
async def test_a_commit_is_told_at_once(telling: Telling, receiver: Receiver) -> None:
    loop, seen = asyncio.get_running_loop(), asyncio.Event()

    def note(_: Received) -> int:
        loop.call_soon_threadsafe(seen.set)
        return 204

    receiver.answer = note
    telling.subscribe(receiver)
    running = Dispatcher()
    running.start()
    try:
        await telling.desk.draft("alice")
        await asyncio.wait_for(seen.wait(), 60)
    finally:
        await running.stop()

    assert receiver.types == [CREATED]
    assert outbox._wakers == set(), "nobody is woken any more"


async def test_one_bad_event_stops_no_other(
    clock: Clock, telling: Telling, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = await telling.desk.draft("alice")
    await telling.desk.draft("bob")
    told = domain_event.run_all

    def fails_for_alice(work: db.Work, events: Sequence[OutboxEvent]) -> None:
        told(work, events)
        if report in {each.record_id for each in events}:
            raise RuntimeError("a bug")

    monkeypatch.setattr(domain_event, "run_all", fails_for_alice)
    await telling.tell()
    states = {each.record_id: each.state for each in telling.events()}
    assert sorted(states.values()) == [Waiting.DONE, Waiting.PENDING]
    assert states[report] == Waiting.PENDING

    monkeypatch.setattr(domain_event, "run_all", told)
    clock.move(seconds=2)
    await telling.tell()
    assert {each.state for each in telling.events()} == {Waiting.DONE}


async def test_what_was_told_is_forgotten_and_counted_before(
    clock: Clock, telling: Telling, receiver: Receiver
) -> None:
    receiver.answer = lambda request: 404 if request.type == UPDATED else 204
    telling.subscribe(receiver)
    report = await telling.desk.draft("alice")
    await telling.desk.run("alice", "expense.report.update", report, title="Other")
    await telling.tell()
    dispatcher.measure()
    assert dispatcher.given_up.labels(kind="webhook")._value.get() == 1
    assert dispatcher.waiting.labels(kind="outbox")._value.get() == 0

    clock.move(days=8)
    dispatcher.tidy()
    assert telling.events() == []
    assert [each.state for each in telling.deliveries()] == [Waiting.DEAD]

    clock.move(days=30)
    dispatcher.tidy()
    assert telling.deliveries() == []
    assert len(db.read_now(webhooks.listed, telling.acme.id)) == 1, "the receiver itself stays"


@pytest.mark.requirement("CMD-24")
async def test_a_receiver_that_is_away_for_a_day_is_given_up_and_seen(
    clock: Clock, telling: Telling, receiver: Receiver
) -> None:
    made, _ = telling.subscribe(receiver)
    receiver.down()
    await telling.desk.draft("alice")
    for _ in range(26):
        await telling.tell()
        clock.move(hours=1)

    (sent,) = telling.deliveries()
    assert (sent.state, sent.last_error) == (Waiting.DEAD, "connection")
    page = await telling.desk.world.client(telling.acme["ada"]).get(f"/admin/webhooks/{made.id}")
    assert "No connection came about." in page.text

    receiver.up()
    db.transact_now(
        lambda work: webhooks.redeliver(
            work, telling.ada, webhooks.one(work.session, made.tenant_id, made.id)
        )
    )
    await telling.tell()
    assert receiver.types == [CREATED]


@pytest.mark.requirement("CMD-24", "CMD-F26")
async def test_a_receiver_whose_secret_cannot_be_read_holds_up_no_other_and_rests(
    clock: Clock, telling: Telling, receiver: Receiver
) -> None:
    broken, _ = telling.subscribe(receiver)
    other, _ = telling.subscribe(receiver)
    db.transact_now(_seal, broken, b"broken")
    await telling.desk.draft("alice")

    with capture_logs() as logged:
        for _ in range(5):
            await telling.tell()

    assert len(receiver.received) == 1
    assert {each.subscription_id: each.state for each in telling.deliveries()} == {
        broken.id: Waiting.PENDING,
        other.id: Waiting.DONE,
    }
    failed = [each for each in logged if each["event"] == "due_failed"]
    assert [(each["kind"], each["row_id"]) for each in failed] == [
        ("webhook_receiver", broken.id)
    ] * 2, "once more at the next look, then it rests"

    for _ in range(due.TRIES + 1):
        clock.move(hours=4)
        await telling.tell()
    (given_up,) = [each for each in telling.deliveries() if each.subscription_id == broken.id]
    assert (given_up.state, given_up.last_error) == (Waiting.DEAD, "not_prepared")


@pytest.mark.requirement("CMD-24")
async def test_an_answer_that_cannot_be_written_down_holds_up_no_other(
    clock: Clock, telling: Telling, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    telling.subscribe(receiver)
    for login in ("alice", "bob"):
        await telling.desk.draft(login)
    settle, broken = deliveries.settle, list[str]()

    def settle_others(work: Work, message: deliveries.Message, answer: deliveries.Answer) -> None:
        broken[:] = broken or [message.delivery.id]
        if message.delivery.id == broken[0]:
            raise ValueError("a row that nobody can read")
        settle(work, message, answer)

    monkeypatch.setattr(deliveries, "settle", settle_others)
    for _ in range(due.TRIES + 1):
        await telling.tell()
        clock.move(minutes=10)

    states = {each.id: (each.state, each.last_error) for each in telling.deliveries()}
    assert states.pop(broken[0]) == (Waiting.DEAD, "not_settled")
    assert list(states.values()) == [(Waiting.DONE, "")]


@pytest.mark.requirement("CMD-24")
async def test_a_snapshot_that_cannot_be_taken_holds_up_no_tenant_and_is_left_out_at_last(
    clock: Clock, telling: Telling, monkeypatch: pytest.MonkeyPatch
) -> None:
    take, broken = governance_snapshot.run, list[str]()

    def take_others(work: Work, entry: snapshots.Written, head: int) -> None:
        broken[:] = broken or [entry.call_id]
        if entry.call_id == broken[0]:
            raise ValueError("a definition that nobody can read")
        take(work, entry, head)

    monkeypatch.setattr(governance_snapshot, "run", take_others)
    await telling.desk.draft("alice")
    await telling.desk.draft("bob")

    with capture_logs() as logged:
        for _ in range(due.TRIES + 1):
            await telling.tell()
            clock.move(minutes=10)

    failed = [each for each in logged if each["event"] == "due_failed"]
    assert [each["kind"] for each in failed] == ["governance_snapshot"] * due.TRIES
    assert [each["call_id"] for each in logged if each["event"] == "snapshot_left_out"] == broken
    assert db.read_now(snapshots.behind) == []


@pytest.mark.requirement("CMD-24")
async def test_events_that_cannot_be_told_together_are_told_one_by_one(
    clock: Clock, telling: Telling, monkeypatch: pytest.MonkeyPatch
) -> None:
    for login in ("alice", "bob"):
        await telling.desk.draft(login)
    first, second = telling.events()
    heads = dispatcher._heads

    def readable(session: Session, only: tuple[str, ...] | None) -> list[OutboxEvent]:
        found = heads(session, only)
        if first.id in {each.id for each in found}:
            raise ValueError("a row that nobody can read")
        return found

    monkeypatch.setattr(dispatcher, "_heads", readable)
    for _ in range(due.TRIES + 1):
        await telling.tell()
        clock.move(minutes=10)

    assert {each.id: (each.state, each.last_error) for each in telling.events()} == {
        first.id: (Waiting.DEAD, "unreadable"),
        second.id: (Waiting.DONE, ""),
    }


def _seal(work: Work, receiver: WebhookSubscription, sealed: bytes) -> None:
    row = work.session.get_one(WebhookSubscription, (receiver.tenant_id, receiver.id))
    row.sealed = sealed
    work.session.add(row)
