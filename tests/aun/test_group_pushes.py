"""What connections hear of their groups, and what they do not."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from sqlmodel import Session, select

from app.aun.e2ee import envelopes
from app.aun.events import GroupChanged, MessageStored
from app.aun.group_models import Member
from app.aun.models import Message
from app.aun.outgoing import Composer, Live, Outgoing
from app.aun.pushes.group import LARGEST_INLINE, PUSHES
from app.kernel import clock, db
from app.kernel.db import Work
from tests.aun import outsiders
from tests.aun.group_calls import BASE, Calls, calls_in
from tests.aun.outsiders import Outsider
from tests.aun.serving import Party, Raw, party, served, text
from tests.people import World

pytestmark = pytest.mark.anyio

CREATED = "group.message_created"


@pytest.fixture
def port(world: World) -> Iterator[int]:
    """The whole application, listening."""
    with served(world.app) as port:
        yield port


def friends(world: World, port: int) -> list[Party]:
    return [party(port, world.acme.id, name) for name in ("tina", "otto", "owen")]


async def settled(socket: Raw) -> None:
    """Everything that was on its way to a socket has come: answers queue up behind events."""
    await socket.call("meta.ping")


async def test_members_hear_what_happens_and_one_who_is_removed_hears_that_last(
    world: World, port: int
) -> None:
    """One story for the whole of it, since a server is slow to start."""
    tina, otto, owen = friends(world, port)
    async with (
        tina.connected() as at_tina,
        otto.connected() as at_otto,
        otto.connected(device={"id": "tablet", "type": "sdk"}) as at_tablet,
        owen.connected() as at_owen,
    ):
        group = (await at_tina.call("group.create", name="Team"))["group"]["group_id"]
        on = {"group_id": group}

        # somebody comes
        await at_tina.call("group.add_member", aid=otto.aid, **on)
        for socket in (at_tina, at_otto, at_tablet):
            came = await socket.event("group.changed", action="member_added", **on)
            assert (came["event_seq"], came["member_aid"]) == (2, otto.aid)
            assert came["group_aid"] == group
            assert "client_signature" not in came

        # something is said: whole, to each device by its name, and not back to the connection
        told = await at_tina.call("group.send", message_id="m-1", payload=text("hello"), **on)
        for socket, device in ((at_otto, "device-1"), (at_tablet, "tablet")):
            heard = await socket.event(CREATED, message_id="m-1")
            assert heard["target_device_id"] == device
            assert heard["seq"] == heard["inline_message"]["seq"] == told["seq"]
            row = heard["inline_message"]
            assert (row["version"], row["payload"]) == ("v1", text("hello"))
            for name in ("group_id", "message_id", "sender_aid", "from_aid", "sender_device_id"):
                assert heard[name] == row[name]
            assert heard["mention_mode"] == "disabled"
        assert at_tina.events(CREATED) == []
        await at_otto.call("group.send", message_id="m-2", payload=text("hi"), **on)
        assert (await at_tablet.event(CREATED, message_id="m-2"))["sender_device_id"] == "device-1"

        # a repeat is no news, and much is a head alone
        await at_tina.call("group.send", message_id="m-1", payload=text("hello"), **on)
        much = text("x" * LARGEST_INLINE)
        await at_tina.call("group.send", message_id="m-3", payload=much, **on)
        head = await at_otto.event(CREATED, message_id="m-3")
        assert "inline_message" not in head
        assert "target_device_id" not in head
        assert len([each for each in at_otto.events(CREATED) if each["message_id"] == "m-1"]) == 1

        # taken back
        await at_tina.call("group.recall", message_ids=["m-3", "m-1"], **on)
        gone = await at_tablet.event("group.message_recalled", **on)
        assert (gone["message_ids"], gone["target_message_seqs"]) == (["m-1", "m-3"], [1, 3])
        assert (gone["seq"], gone["recalled_by"], gone["sender_aid"]) == (4, tina.aid, tina.aid)
        assert gone["recalled_at"] > 0

        # read, which is nobody else's affair
        state = {"topic_key": "all", "last_read_message_id": "m-2", **on}
        await at_otto.call("group.read", states=[state])
        read = await at_tablet.event("group.read_changed", topic_key="all")
        assert (read["owner_aid"], read["scope"], read["last_read_order"]) == (otto.aid, "group", 2)
        assert read["last_read_message_id"] == "m-2"

        # whoever blocks a group hears changes, no messages
        await at_otto.call("group.block", aid=otto.aid, **on)
        await at_tina.call("group.send", message_id="m-4", payload=text("unheard"), **on)
        await at_otto.call("group.send", message_id="m-4b", payload=text("said"), **on)
        await at_tina.event(CREATED, message_id="m-4b")  # so what was for otto has gone by
        await at_otto.call("group.unblock", aid=otto.aid, **on)
        await at_otto.event("group.changed", action="member_unblocked")
        assert not [each for each in at_otto.events(CREATED) if each["message_id"] == "m-4"]

        # invited twice, told once; ended once
        for socket in (at_tina, at_tina):
            await socket.call("group.invite_member", aid=owen.aid, **on)
        asked = await at_owen.event("group.invite_created", **on)
        assert (asked["invitee_aid"], asked["inviter_aids"]) == (owen.aid, [tina.aid])
        assert asked["status"] == "pending"
        await at_owen.call("group.reject_invite", invite_id=asked["invite_id"])
        ended = await at_owen.event("group.invite_finalized", **on)
        assert (ended["invite_id"], ended["status"]) == (asked["invite_id"], "rejected")
        assert len(at_owen.events("group.invite_created")) == 1
        assert at_owen.events("group.changed") == []

        # somebody goes
        await at_tina.call("group.kick", aid=otto.aid, **on)
        await at_tina.call("group.send", message_id="m-5", payload=text("alone"), **on)
        await at_tina.call("group.update", name="New", **on)
        await at_tina.event("group.changed", action="update")
        last = await at_otto.event("group.changed", action="member_removed")
        assert last["member_aid"] == otto.aid
        await settled(at_otto)
        assert not [each for each in at_otto.events(CREATED) if each["message_id"] == "m-5"]
        assert at_otto.events("group.changed")[-1] == last
        seqs = [each["event_seq"] for each in at_tina.events("group.changed")]
        assert seqs == list(range(1, len(seqs) + 1)), "in order, and without a gap"


def composed(event: Any, *lives: Live) -> list[Outgoing]:
    """What the composer of an event makes, with these connections open."""

    def here(aid: str) -> list[Live]:
        return [live for live in lives if live.aid == aid]

    def query(session: Session) -> list[Outgoing]:
        composer: Composer = PUSHES[type(event)]  # type: ignore[assignment]
        return list(composer(session, event, here))

    return db.read_now(query)


def live(calls: Calls, aid: str, device: str) -> Live:
    return Live(f"{aid}-{device}", calls.parties.id, aid, device, "default")


async def stored(calls: Calls, group: str) -> MessageStored:
    row = db.read_now(_newest, group)
    return MessageStored(
        tenant_id=calls.parties.id,
        id=row.id,
        conversation_id=row.conversation_id,
        sender_aid=row.sender_aid,
        group_id=group,
    )


def _newest(session: Session, group: str) -> Message:
    query = select(Message).where(Message.group_id == group)
    return max(session.exec(query), key=lambda row: row.seq or 0)


async def test_an_encrypted_message_goes_to_each_device_with_the_proof_of_its_row(
    world: World,
) -> None:
    calls = calls_in(world)
    tina, otto = (
        Outsider(calls.parties.id, getattr(calls.parties, name)) for name in ("tina", "otto")
    )
    for each in (tina, otto):
        each.new_key()
    group = await calls.group("tina", "otto", "owen", "alice")
    for device in ("phone", "tablet"):
        key = {"peer_aid": otto.aid, **otto.prekey()}
        await calls(otto.caller(device), "message.v2.put_peer_pk", **key)
    rows = await calls(tina.caller(), "group.v2.bootstrap", group_id=group)
    rows["devices"] = [each for each in rows["devices"] if each["aid"] != calls.parties.owen]
    envelope = tina.sealed_to_group(rows, outsiders.text("secret"), message_id="m-1")
    await calls(tina.caller(), "group.send", group_id=group, message_id="m-1", payload=envelope)

    told = composed(
        await stored(calls, group),
        live(calls, otto.aid, "phone"),
        live(calls, otto.aid, "tablet"),
        live(calls, otto.aid, "new device"),
        live(calls, calls.parties.owen, "phone"),
        live(calls, tina.aid, "phone"),
    )

    assert [(each.name, [to.device_id for to in each.to]) for each in told] == [
        ("group.v2.message_created", ["phone"]),
        ("group.v2.message_created", ["tablet"]),
    ], "nothing goes where nothing can be read"
    for push in told:
        device = push.params["target_device_id"]
        row = push.params["inline_message"]
        assert row["version"] == "v2"
        assert "payload" not in row
        alone = json.loads(row["envelope_json"])
        assert "recipients" not in alone
        assert (alone["recipient"]["aid"], alone["recipient"]["device_id"]) == (otto.aid, device)
        assert alone == envelopes.projection(envelope, otto.aid, device)
        assert otto.opened(alone, tina.spki, device) == outsiders.text("secret")


async def test_a_thousand_members_cost_one_set_of_bytes(world: World) -> None:
    calls = calls_in(world)
    group = await calls.group("tina")
    names = [f"m{number:04}.{BASE}" for number in range(1_000)]
    db.transact_now(_crowd, calls.parties.id, group, names)
    crowd = [live(calls, aid, "phone") for aid in names]

    await calls("tina", "group.update", group_id=group, name="Crowd")
    changed = GroupChanged(tenant_id=calls.parties.id, group_id=group, event_seq=2)
    [told] = composed(changed, *crowd)
    assert len(told.to) == 1_000

    for words in ("small", "x" * LARGEST_INLINE):
        await calls.say("tina", group, words, message_id=words[:9])
        [told] = composed(await stored(calls, group), *crowd)
        assert len(told.to) == 1_000
        assert ("inline_message" in told.params) is (words == "small")


async def test_a_newcomer_hears_nothing_of_what_came_before_they_joined(world: World) -> None:
    calls = calls_in(world)
    group = await calls.group("tina")
    old, new = f"old.{BASE}", f"new.{BASE}"
    db.transact_now(_crowd, calls.parties.id, group, [old])
    await calls.say("tina", group, "before")
    before = await stored(calls, group)
    db.transact_now(_crowd, calls.parties.id, group, [new], 1)

    [told] = composed(before, live(calls, old, "phone"), live(calls, new, "phone"))
    assert [each.aid for each in told.to] == [old]

    await calls.say("tina", group, "after", message_id="m-2")
    after = await stored(calls, group)
    [told] = composed(after, live(calls, old, "phone"), live(calls, new, "phone"))
    assert {each.aid for each in told.to} == {old, new}


def _crowd(work: Work, tenant_id: str, group: str, names: list[str], join_seq: int = 0) -> None:
    now = clock.now()
    for aid in names:
        work.session.add(
            Member(tenant_id=tenant_id, group_id=group, aid=aid, joined_at=now, join_seq=join_seq)
        )
