"""Receivers get what they asked for, signed, at addresses that may be called, and nothing else."""

import asyncio
import threading
from collections.abc import Iterator

import pytest
from sqlmodel import select

from app.audit.models import AuditEntry
from app.commands import pipeline, signatures, webhooks
from app.commands.outbox_models import ReceiverState, Waiting
from app.commands.stages.webhook import wants
from app.kernel import db
from app.kernel.errors import Invalid
from tests.clock import Clock
from tests.commands.telling import Telling, something
from tests.packs.expenses.desk import Desk
from tests.people import World
from tests.webhook_receiver import Received, Receiver, listening


@pytest.fixture
def telling(world: World, spenders: None, monkeypatch: pytest.MonkeyPatch) -> Telling:
    return Telling(Desk(world), monkeypatch)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with listening() as made:
        yield made


@pytest.mark.requirement("CMD-24", "SEC-55")
async def test_a_receiver_gets_what_it_asked_for_once_and_signed(
    telling: Telling, receiver: Receiver
) -> None:
    made, secret = telling.subscribe(receiver, ["expense.report.created"])
    report = await telling.desk.draft("alice", 2_000)
    await telling.desk.run("alice", "expense.report.update", report, title="Other")
    await telling.tell()
    await telling.tell()

    (got,) = receiver.received
    told = telling.events()[0]
    assert got.path == "/hook"
    assert got.id == told.id
    assert got.is_signed_with(secret)
    assert not got.is_signed_with(signatures.new_secret())
    assert got.type == "expense.report.created"
    assert got.event["data"]["record"]["id"] == report
    assert got.event["data"]["record"]["state"] == "draft"
    assert got.event["data"]["callId"] == told.call_id
    assert got.headers["content-type"] == "application/json"
    assert not {"cookie", "authorization", "traceparent"} & set(got.headers)
    (sent,) = telling.deliveries()
    assert (sent.state, sent.response_status, sent.attempts) == (Waiting.DONE, 204, 1)
    assert secret.encode() not in made.sealed


@pytest.mark.requirement("CMD-24")
async def test_the_bank_hears_of_a_payment_once_after_two_people_agreed(
    telling: Telling, receiver: Receiver
) -> None:
    _, secret = telling.subscribe(receiver, ["expense.payment.sent"])
    report = await telling.desk.approved("alice", 125_000)
    asked = await telling.desk.refused("fiona", "expense.payment.send", report)
    await telling.tell()
    assert receiver.received == [], "asking is not doing"

    approval_id = await telling.desk.approve(asked, "frank")
    call = telling.desk.call("fiona", "expense.payment.send", report, approval_id=approval_id)
    done = await pipeline.execute(call)
    await telling.tell()

    (got,) = receiver.received
    assert got.is_signed_with(secret)
    assert got.event["data"]["amountMinor"] == 125_000
    assert got.event["data"]["reportId"] == report
    assert got.event["data"]["paymentId"] == done.result["paymentId"]
    assert got.event["data"]["callId"] == done.call_id


def test_patterns_mean_types_and_nothing_by_chance() -> None:
    assert wants(["expense.report.paid"], "expense.report.paid")
    assert wants(["expense.*"], "expense.report.paid")
    assert wants(["*"], "expense.report.paid")
    assert not wants(["expense.report"], "expense.report.paid")
    assert not wants(["expense.*"], "expenses.report.paid")
    assert not wants([], "expense.report.paid")


@pytest.mark.requirement("SEC-82")
async def test_while_a_secret_is_changed_both_are_valid_for_a_day(
    clock: Clock, telling: Telling, receiver: Receiver
) -> None:
    made, old = telling.subscribe(receiver)

    def rotate() -> str:
        return db.transact_now(
            lambda work: webhooks.rotate(
                work, telling.ada, webhooks.one(work.session, made.tenant_id, made.id)
            )
        )

    new = rotate()
    await telling.desk.draft("alice")
    await telling.tell()
    clock.move(days=1, seconds=1)
    await telling.desk.draft("alice")
    await telling.tell()

    during, after = receiver.received
    assert during.is_signed_with(old)
    assert during.is_signed_with(new)
    assert after.is_signed_with(new)
    assert not after.is_signed_with(old)


@pytest.mark.requirement("CMD-24")
@pytest.mark.parametrize(
    ("status", "state", "receiver_state"),
    [
        (200, Waiting.DONE, ReceiverState.ACTIVE),
        (404, Waiting.DEAD, ReceiverState.ACTIVE),
        (410, Waiting.DEAD, ReceiverState.GONE),
        (302, Waiting.PENDING, ReceiverState.ACTIVE),
        (429, Waiting.PENDING, ReceiverState.ACTIVE),
        (500, Waiting.PENDING, ReceiverState.ACTIVE),
        (503, Waiting.PENDING, ReceiverState.ACTIVE),
    ],
)
async def test_each_answer_means_what_it_says(
    clock: Clock,
    telling: Telling,
    receiver: Receiver,
    status: int,
    state: Waiting,
    receiver_state: ReceiverState,
) -> None:
    receiver.answer = lambda _: status
    made, _ = telling.subscribe(receiver)

    await telling.desk.draft("alice")
    await telling.tell()

    (sent,) = telling.deliveries()
    assert (sent.state, sent.response_status) == (state, status)
    assert telling.subscription(made.id).state == receiver_state
    assert len(receiver.received) == 1, "no redirect is followed, nothing is repeated at once"


@pytest.mark.requirement("SEC-55", "SEC-56", "SEC-57", "SEC-T16")
async def test_an_address_inside_is_neither_accepted_nor_called(
    telling: Telling, receiver: Receiver
) -> None:
    inside = [
        receiver.url,
        "http://hooks.example/x",
        "https://hooks.example:8443/x",
        "https://user:password@hooks.example/",
        "ftp://hooks.example/x",
        "file:///etc/passwd",
        "hooks.example",
        "https://",
        "https://hooks.example/#part",
        "javascript:alert(1)",
    ]
    for url in inside:
        with pytest.raises(Invalid):
            db.transact_now(webhooks.create, telling.ada, url=url, event_types=["expense.*"])

    # https is accepted, since what a name means is asked at each delivery: and then refused
    for host in ("127.0.0.1", "[::1]", "169.254.169.254", "2130706433"):
        db.transact_now(
            webhooks.create, telling.ada, url=f"https://{host}/x", event_types=["expense.*"]
        )
    await telling.desk.draft("alice")
    await telling.tell()

    sent = telling.deliveries()
    assert [each.state for each in sent] == [Waiting.DEAD] * 4
    assert {each.last_error for each in sent} == {"address"}
    assert receiver.received == []


@pytest.mark.requirement("CMD-24")
async def test_what_was_given_up_is_sent_again_with_the_same_id(
    telling: Telling, receiver: Receiver
) -> None:
    receiver.answer = lambda _: 404
    made, _ = telling.subscribe(receiver)
    await telling.desk.draft("alice")
    await telling.tell()

    receiver.answer = lambda _: 200
    number = db.transact_now(
        lambda work: webhooks.redeliver(
            work, telling.ada, webhooks.one(work.session, made.tenant_id, made.id)
        )
    )
    await telling.tell()

    first, second = receiver.received
    assert number == 1
    assert (first.id, first.body) == (second.id, second.body)
    assert [each.state for each in telling.deliveries()] == [Waiting.DONE]


@pytest.mark.requirement("CMD-24")
async def test_what_is_told_to_a_paused_receiver_waits_in_order(
    telling: Telling, receiver: Receiver
) -> None:
    made, _ = telling.subscribe(receiver)

    def move(step: object) -> None:
        db.transact_now(
            lambda work: step(  # type: ignore[operator]
                work, telling.ada, webhooks.one(work.session, made.tenant_id, made.id)
            )
        )

    move(webhooks.pause)
    report = await telling.desk.draft("alice")
    await telling.desk.run("alice", "expense.report.update", report, title="Other")
    await telling.tell()
    assert receiver.received == []

    move(webhooks.resume)
    await telling.tell()
    assert receiver.types == ["expense.report.created", "expense.report.updated"]


async def test_a_test_event_reaches_its_receiver_alone(
    telling: Telling, receiver: Receiver
) -> None:
    with listening() as other:
        telling.subscribe(other)
        made, secret = telling.subscribe(receiver)
        db.transact_now(
            lambda work: webhooks.test(
                work, telling.ada, webhooks.one(work.session, made.tenant_id, made.id)
            )
        )
        await telling.tell()

        assert receiver.types == [webhooks.TEST_EVENT]
        assert receiver.received[0].is_signed_with(secret)
        assert other.received == []


async def test_whatever_is_done_to_a_receiver_is_on_record_without_its_secret(
    telling: Telling, receiver: Receiver
) -> None:
    made, secret = telling.subscribe(receiver)
    new = db.transact_now(
        lambda work: webhooks.rotate(
            work, telling.ada, webhooks.one(work.session, made.tenant_id, made.id)
        )
    )
    db.transact_now(
        lambda work: webhooks.remove(
            work, telling.ada, webhooks.one(work.session, made.tenant_id, made.id)
        )
    )

    query = select(AuditEntry).where(AuditEntry.target_id == made.id).order_by("seq")
    entries = db.read_now(lambda session: session.exec(query).all())
    assert [each.command for each in entries] == [
        "command.webhook.create",
        "command.webhook.rotate_secret",
        "command.webhook.remove",
    ]
    assert all(each.user_id == telling.ada.user_id for each in entries)
    text = "".join(each.model_dump_json() for each in entries)
    assert secret not in text
    assert new not in text


async def test_one_receiver_that_hangs_holds_up_nobody_else(
    telling: Telling, receiver: Receiver
) -> None:
    release = threading.Event()
    loop, seen = asyncio.get_running_loop(), asyncio.Event()

    def tell_seen(_: Received) -> int:
        loop.call_soon_threadsafe(seen.set)
        return 204

    with listening(lambda _: 204 if release.wait(9) else 500) as slow:
        telling.subscribe(slow)
        receiver.answer = tell_seen
        telling.subscribe(receiver)
        await telling.desk.draft("alice")
        task = asyncio.create_task(telling.tell())

        await asyncio.wait_for(seen.wait(), 8)
        assert slow.received == [], "it has not answered yet"

        release.set()
        await task
        assert len(slow.received) == len(receiver.received) == 1


def test_the_headers_are_those_of_the_published_example() -> None:
    """The vector that Standard Webhooks gives out."""
    secret = "whsec_plJ3nmyCDGBKInavdOK15jsl"
    body = b'{"event_type":"ping","data":{"success":true}}'

    signed = signatures.sign(secret, "msg_loFOjxBNrRLzqYUf", 1731705121, body)

    assert signed == "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0="


@pytest.mark.requirement("CMD-24")
async def test_an_api_call_goes_to_the_address_of_its_name_or_waits_for_one(
    telling: Telling, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered = webhooks.Offered(["expense.report.created"], ["bank.transfer"])
    monkeypatch.setattr(webhooks, "offered", lambda *_: offered)
    event_id = db.transact_now(something, telling.ada)["event_id"]
    (lost,) = db.read_now(webhooks.undeliverable, telling.acme.id)
    assert lost.last_error == "no_address"

    telling.subscribe(receiver, [], api_call="bank.transfer")
    with pytest.raises(Invalid):
        telling.subscribe(receiver, [], api_call="bank.transfer")
    ada = telling.desk.world.client(telling.acme["ada"])
    page = await ada.get("/admin/webhooks")
    again = await ada.post(f"/admin/webhooks/outbox/{event_id}/retry")
    await telling.desk.draft("alice")
    await telling.tell()

    assert "Nobody set an address for it." in page.text
    assert again.status_code == 303
    assert receiver.types == ["bank.transfer"], "and it is told of no event"
    assert db.read_now(webhooks.undeliverable, telling.acme.id) == []
