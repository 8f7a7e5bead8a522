"""What stands in the outbox is told: at once, in order, at least once, and to all but the dead."""

import asyncio
from collections.abc import Iterator, Sequence

import pytest

from app.commands import backoff, deliveries, dispatcher, outbox, webhooks
from app.commands.dispatcher import Dispatcher
from app.commands.outbox_models import OutboxEvent, Waiting
from app.commands.stages import domain_event
from app.kernel import db
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
