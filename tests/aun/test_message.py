"""`message.*`: sending, taking back, and who is there."""

from typing import Any

import pytest
from sqlmodel import select

from app.audit.models import AuditEntry
from app.aun import identities, rpc
from app.aun.errors import BadParams, NoSuchParty, NotAParty
from app.aun.events import MessageRecalled, MessageStored
from app.aun.gateway import registry
from app.aun.methods.message import Ready, Send, Sent, send
from app.aun.models import IdentityKind, IdentityStatus, Message
from app.aun.outgoing import Live
from app.kernel import db, events
from tests.aun import parties as people
from tests.aun.parties import Parties
from tests.clock import Clock
from tests.people import World


@pytest.fixture
def parties(opened: str) -> Parties:
    return people.gather()


async def say(parties: Parties, sender: str, to: str, **more: Any) -> dict[str, Any]:
    params = {"to": to, "payload": {"type": "text", "text": "hello"}} | more
    return await rpc.invoke(parties.caller(sender), "message.send", params)


def connect(parties: Parties, name: str, device: str = "phone", *, is_queue: bool = False) -> Live:
    live = Live(
        id=f"{name}-{device}-default",
        tenant_id=parties.id,
        aid=f"{name}.{parties.issuer}",
        device_id=device,
        slot_key="default",
        is_queue=is_queue,
    )
    db.transact_now(registry.opened, live)
    return live


@pytest.mark.anyio
async def test_a_send_says_that_it_is_stored_and_whether_the_receiver_is_there(
    parties: Parties,
) -> None:
    away = await say(parties, "tina", parties.otto, message_id="m-1")
    connect(parties, "otto")
    there = await say(parties, "tina", parties.otto, message_id="m-2")
    connect(parties, "owen", is_queue=True)
    shared = await say(parties, "tina", parties.owen, message_id="m-3")
    hosted = await say(parties, "tina", parties.clerk, message_id="m-4")
    again = await say(parties, "tina", parties.otto, message_id="m-2", payload={"text": "other"})

    assert away == {
        "message_id": "m-1",
        "seq": 1,
        "timestamp": away["timestamp"],
        "status": "sent",
        "delivery_mode": "fanout",
        "storage": "persistent",
    }
    assert (there["status"], there["seq"]) == ("delivered", 2)
    assert (shared["status"], shared["delivery_mode"]) == ("delivered", "queue")
    assert (hosted["status"], hosted["delivery_mode"]) == ("delivered", "fanout")
    assert again == there | {"status": "duplicate"}


@pytest.mark.anyio
async def test_an_id_is_made_for_whoever_gives_none(parties: Parties) -> None:
    first = await say(parties, "tina", parties.otto)
    second = await say(parties, "tina", parties.otto)

    assert first["message_id"] != second["message_id"]
    assert {made["message_id"][:2] for made in (first, second)} == {"m-"}


@pytest.mark.anyio
async def test_the_sender_is_whoever_is_connected(parties: Parties) -> None:
    claimed = {"from": parties.otto, "from_aid": parties.otto, "sender_aid": parties.otto}
    await say(parties, "tina", parties.alice, **claimed)

    assert [row.sender_aid for row in _messages()] == [parties.tina]


@pytest.mark.anyio
async def test_what_cannot_be_sent_is_refused_and_leaves_no_trace(parties: Parties) -> None:
    globex = people.gather("globex", "globex.example")
    parties.add("team", IdentityKind.GROUP)
    parties.turn_off("bobby")
    parties.turn_off("owen", IdentityStatus.BLOCKED)

    for nobody in (
        "nobody.acme.example",
        globex.tina,
        parties.team,
        parties.bobby,
        parties.owen,
    ):
        with pytest.raises(NoSuchParty) as unknown:
            await say(parties, "tina", nobody, message_id="m-1")
        assert unknown.value.code == -32008
    for wrong in (
        {"payload": "text"},
        {"payload": {"text": "x" * (1 << 20)}},
        {"to": "no aid"},
        {"message_id": ""},
        {"message_id": 7},
        {"to_device_id": "tablet"},
        {"need_render": "yes"},
    ):
        params = {"to": parties.otto, "payload": {"text": "hello"}} | wrong
        with pytest.raises(BadParams):
            await rpc.invoke(parties.caller("tina"), "message.send", params)
    with pytest.raises(BadParams):
        await rpc.invoke(parties.caller("tina"), "message.send", {"to": parties.otto})

    assert _messages() == []
    await say(parties, "tina", parties.otto, message_id="m-1")
    assert len(_messages()) == 1


@pytest.mark.anyio
async def test_an_id_used_again_for_somebody_else_is_the_first_message_and_reaches_nobody_new(
    parties: Parties,
) -> None:
    first = await say(parties, "tina", parties.otto, message_id="m-1")
    again = await say(parties, "tina", parties.owen, message_id="m-1", payload={"text": "other"})
    briefly = await say(parties, "tina", parties.owen, message_id="m-1", ttl=60)
    others = await say(parties, "owen", parties.otto, message_id="m-1")

    assert again == first | {"status": "duplicate"}
    assert briefly == first | {"status": "duplicate"}
    assert others["status"] == "sent", "an id is its sender's own"
    assert [row.receiver_aid for row in _messages()] == [parties.otto, parties.otto]


@pytest.mark.anyio
async def test_the_news_of_a_message_says_whether_anybody_here_takes_part(parties: Parties) -> None:
    told: list[MessageStored] = []
    end = events.subscribe(MessageStored, told.append)
    try:
        await say(parties, "tina", parties.otto)
        await say(parties, "tina", parties.clerk)
        await say(parties, "clerk", parties.tina, encrypt=False)
    finally:
        end()

    assert [event.is_ours for event in told] == [False, True, True]


@pytest.mark.anyio
async def test_whoever_is_switched_off_sends_nothing_and_an_agents_mail_waits_for_it(
    parties: Parties,
) -> None:
    parties.turn_off("bobby")
    parties.turn_off("clerk")

    for off in ("bobby", "clerk"):
        with pytest.raises(NotAParty):
            await say(parties, off, parties.tina, encrypt=False)
    kept = await say(parties, "tina", parties.clerk)

    assert kept["status"] == "delivered"
    assert [row.receiver_aid for row in _messages()] == [parties.clerk]


@pytest.mark.anyio
async def test_a_message_for_one_device_needs_one_that_is_known(parties: Parties) -> None:
    connect(parties, "otto", "tablet")

    sent = await say(parties, "tina", parties.otto, to_device_id="tablet")
    with pytest.raises(BadParams, match="unknown target device: phone"):
        await say(parties, "tina", parties.otto, device_id="phone")

    assert sent["status"] == "delivered"
    assert [row.to_device for row in _messages()] == ["tablet"]


@pytest.mark.anyio
async def test_between_hosted_parties_everything_stays_readable_here(parties: Parties) -> None:
    await say(parties, "alice", parties.clerk)
    await say(parties, "clerk", parties.alice, encrypt=True)

    assert [(row.envelope, row.payload) for row in _messages()] == [
        (None, {"type": "text", "text": "hello"})
    ] * 2


def test_the_unit_of_a_send_can_run_inside_another(parties: Parties) -> None:
    asked = Send(to=parties.clerk, payload={"text": "hello"}, message_id="m-1")
    ready = Ready(asked, words=asked.payload)
    sent = db.transact_now(send, parties.caller("alice"), ready)

    assert isinstance(sent, Sent)
    assert (sent.seq, sent.status) == (1, "delivered")


@pytest.mark.anyio
async def test_a_recalled_message_says_nothing_any_more(clock: Clock, opened: str) -> None:
    parties = people.gather()
    told: list[MessageRecalled] = []
    end = events.subscribe(MessageRecalled, told.append)
    for number in range(3):
        await say(parties, "tina", parties.alice, message_id=f"m-{number}")
    await say(parties, "alice", parties.tina, message_id="m-alice", encrypt=False)
    clock.move(seconds=120)

    recalled = await rpc.invoke(
        parties.caller("tina"), "message.recall", {"message_ids": ["m-0", "m-alice", "m-9", "m-0"]}
    )
    repeated = await rpc.invoke(parties.caller("tina"), "message.recall", {"message_ids": ["m-0"]})
    clock.move(seconds=1)
    late = await rpc.invoke(parties.caller("tina"), "message.recall", {"message_ids": ["m-1"]})
    end()

    assert recalled == {
        "success": False,
        "accepted": 1,
        "recalled": 1,
        "errors": [
            {"message_id": "m-alice", "error": "not_sender"},
            {"message_id": "m-9", "error": "not_found"},
        ],
    }
    assert repeated["errors"] == [{"message_id": "m-0", "error": "already_recalled"}]
    assert late["errors"] == [{"message_id": "m-1", "error": "expired"}]
    stone = next(row for row in _messages() if row.message_id == "m-0")
    assert stone.payload == {
        "type": "message.recalled",
        "message_ids": ["m-0"],
        "recalled_at": int(clock.now.timestamp() * 1000) - 1_000,
    }
    assert (stone.type, stone.envelope, stone.version) == ("message.recalled", None, 2)
    assert [event.ids for event in told] == [(stone.id,)]


@pytest.mark.anyio
async def test_a_recall_alone_reports_no_errors(parties: Parties) -> None:
    await say(parties, "tina", parties.alice, message_id="m-1")

    done = await rpc.invoke(parties.caller("tina"), "message.recall", {"message_ids": ["m-1"]})

    assert done == {"success": True, "accepted": 1, "recalled": 1, "errors": None}
    for wrong in ([], [f"m-{number}" for number in range(101)]):
        with pytest.raises(BadParams):
            await rpc.invoke(parties.caller("tina"), "message.recall", {"message_ids": wrong})


@pytest.mark.anyio
async def test_the_trail_keeps_of_a_persons_recall_its_id_alone(world: World) -> None:
    alice, bob = world.acme["alice"], world.acme["bob"]
    caller = db.read_now(identities.caller_of_user, world.person(alice))
    to = db.read_now(identities.caller_of_user, world.person(bob)).aid
    params = {"to": to, "payload": {"text": "a secret"}, "message_id": "m-1"}
    await rpc.invoke(caller, "message.send", params)

    await rpc.invoke(caller, "message.recall", {"message_ids": ["m-1"]})

    [entry] = [
        row
        for row in db.read_now(lambda session: list(session.exec(select(AuditEntry))))
        if row.command == "aun.message.recall"
    ]
    [stone] = _messages()
    assert (entry.target_type, entry.target_id) == ("message", stone.id)
    assert stone.html is None
    assert "a secret" not in str(entry.model_dump()) + str(stone.model_dump())


@pytest.mark.anyio
async def test_what_hosted_parties_read_is_rendered_once(parties: Parties) -> None:
    words = {"payload": {"type": "text", "text": "**now**"}}
    await say(parties, "tina", parties.alice, **words)
    await say(parties, "tina", parties.otto, **words)

    shown, unseen = _messages()
    assert "<strong>now</strong>" in (shown.html or "")
    assert unseen.html is None


@pytest.mark.anyio
async def test_presence_tells_of_connections_and_enabled_agents(parties: Parties) -> None:
    globex = people.gather("globex", "globex.example")
    connect(parties, "otto")
    connect(globex, "otto")
    asked = [parties.otto, parties.owen, parties.clerk, parties.alice, globex.otto]

    told = await rpc.invoke(parties.caller("tina"), "message.query_online", {"aids": asked})

    assert told == {
        "online": {
            parties.otto: True,
            parties.owen: False,
            parties.clerk: True,
            parties.alice: False,
            globex.otto: False,
        }
    }
    with pytest.raises(BadParams):
        await rpc.invoke(
            parties.caller("tina"), "message.query_online", {"aids": [parties.otto] * 101}
        )


def _messages() -> list[Message]:
    query = select(Message).order_by(Message.log_seq)  # type: ignore[arg-type]
    return db.read_now(lambda session: list(session.exec(query)))
