"""What is said in a group, and read there."""

import asyncio
import json
from typing import Any

import pytest
from sqlmodel import Session, col, select

from app.aun import delivery, recalling
from app.aun.caller import Caller
from app.aun.e2ee import envelopes
from app.aun.errors import StaleEpoch
from app.aun.groups import pages, sending
from app.aun.models import Conversation, IdentityKind, Message
from app.kernel import db, event_log
from tests.aun import outsiders
from tests.aun.group_calls import Calls, calls_in
from tests.aun.outsiders import Outsider
from tests.clock import Clock
from tests.people import World

pytestmark = pytest.mark.anyio

RECALLED = "group.message_recalled"


@pytest.fixture
def calls(world: World) -> Calls:
    return calls_in(world)


@pytest.fixture
def tina(world: World, calls: Calls) -> Outsider:
    return _keyed(calls, "tina")


@pytest.fixture
def otto(world: World, calls: Calls) -> Outsider:
    return _keyed(calls, "otto")


def _keyed(calls: Calls, name: str) -> Outsider:
    made = Outsider(calls.parties.id, getattr(calls.parties, name))
    made.new_key()
    return made


async def put_key(calls: Calls, party: Outsider, device: str = "phone") -> None:
    given = {"peer_aid": party.aid, **party.prekey()}
    await calls(party.caller(device), "message.v2.put_peer_pk", **given)


async def sealed(
    calls: Calls, party: Outsider, group: str, words: str, **more: Any
) -> dict[str, Any]:
    rows = await calls(party.caller(), "group.v2.bootstrap", group_id=group)
    return party.sealed_to_group(rows, {**outsiders.text(words), **more}, message_id=words)


async def send_sealed(
    calls: Calls, party: Outsider, group: str, words: str, **more: Any
) -> dict[str, Any]:
    envelope = await sealed(calls, party, group, words, **more)
    return await calls(
        party.caller(), "group.send", group_id=group, message_id=words, payload=envelope
    )


def messages() -> list[Message]:
    return db.read_now(_messages)


def _messages(session: Session) -> list[Message]:
    return list(session.exec(select(Message).order_by(col(Message.seq))))


async def test_members_send_and_everybody_pulls_in_the_groups_order(calls: Calls) -> None:
    group = await calls.group("tina", "otto", "alice")

    first = await calls.say("tina", group, "one")
    second = await calls.say("alice", group, "two")
    third = await calls.say("otto", group, "three")

    assert [first["seq"], second["seq"], third["seq"]] == [1, 2, 3]
    assert first["group_id"] == first["group_aid"] == group
    assert (first["status"], first["mention_mode"]) == ("sent", "disabled")
    assert first["dispatch"] == {"mode": "broadcast"}
    assert first["message"]["seq"] == 1
    assert await calls.texts("otto", group) == ["one", "two", "three"]
    assert await calls.texts("alice", group, after_seq=1) == ["two", "three"]
    found = await calls("otto", "group.v2.pull", group_id=group, after_seq=0)
    row = found["messages"][0]
    assert (row["version"], row["payload"]) == ("v1", {"type": "text", "text": "one"})
    assert "legacy_v1" not in row
    assert row["from_aid"] == row["sender_aid"] == calls.parties.tina
    assert (row["sender_device_id"], row["seq"], row["message_id"]) == ("phone", 1, "one")
    assert row["group_id"] == row["group_aid"] == group
    assert row["t_server"] == first["timestamp"]
    [talk] = db.read_now(lambda session: session.exec(select(Conversation)).all())
    assert (talk.group_id, talk.kind) == (group, "group")
    assert talk.last_message_id == messages()[-1].id
    assert [row.html for row in messages()] == [
        f"<p>{words}</p>\n" for words in ("one", "two", "three")
    ], "rendered once"


async def test_a_repeat_gets_the_first_answer_and_stores_nothing(calls: Calls) -> None:
    group, other = await calls.group("tina", "otto"), await calls.group("tina")
    first = await calls.say("tina", group, "once")
    await calls(
        "tina", "group.set_settings", group_id=group, settings={"mention_mode": "mention-only"}
    )

    again = await calls.say("tina", group, "once", payload={"type": "text", "text": "changed"})

    assert again == first | {"status": "duplicate"}
    assert await calls.texts("otto", group) == ["once"]
    assert (await calls.say("otto", group, "once"))["seq"] == 2, "ids are unique with their sender"
    elsewhere = await calls.refused(
        "tina", "group.send", group_id=other, message_id="once", payload={"type": "text"}
    )
    assert elsewhere.code == -32602


async def test_many_senders_at_once_get_numbers_without_a_gap_and_each_message_once(
    calls: Calls,
) -> None:
    group = await calls.group("tina", "otto", "owen")
    sends = [
        calls.say(who, group, f"{who}-{number}")
        for number in range(10)
        for who in ("tina", "otto", "owen", "tina")  # tina repeats each of hers
    ]

    told = await asyncio.gather(*sends)

    assert sorted(each["seq"] for each in told if each["status"] == "sent") == list(range(1, 31))
    assert sum(each["status"] == "duplicate" for each in told) == 10
    found = await calls("owen", "group.v2.pull", group_id=group, after_seq=0, limit=200)
    assert [row["seq"] for row in found["messages"]] == list(range(1, 31))
    rows = sorted(messages(), key=lambda each: each.log_seq)
    assert [row.seq for row in rows] == list(range(1, 31)), "both orders agree"


async def test_a_page_ends_where_it_says_and_never_promises_more_than_there_is(
    calls: Calls,
) -> None:
    group = await calls.group("tina", "otto")
    for number in range(1, 6):
        await calls.say("tina", group, str(number))

    for after, limit, seqs, has_more in [
        (0, 2, [1, 2], True),
        (2, 2, [3, 4], True),
        (3, 2, [4, 5], False),
        (0, 5, [1, 2, 3, 4, 5], False),
        (5, 2, [], False),
        (99, 2, [], False),
        (0, 10_000, [1, 2, 3, 4, 5], False),
    ]:
        page = await calls("otto", "group.v2.pull", group_id=group, after_seq=after, limit=limit)
        assert [row["seq"] for row in page["messages"]] == seqs
        assert page["has_more"] is has_more
        assert page["latest_message_seq"] == page["cursor"]["latest_seq"] == 5
        assert page["cursor"]["join_seq"] == page["retention_floor_message_seq"] == 0
    old = await calls("otto", "group.pull", group_id=group, after_message_seq=4)
    assert [row["seq"] for row in old["messages"]] == [5]
    for bad in ({"limit": 0}, {"after_seq": -1}, {"after_seq": "1"}, {"window_mode": "head"}):
        refused = await calls.refused("otto", "group.v2.pull", group_id=group, **bad)
        assert refused.code == -32602


async def test_a_page_stays_below_what_a_frame_may_hold(calls: Calls) -> None:
    group = await calls.group("tina", "otto")
    for number in range(4):
        big = {"type": "text", "text": "x" * 700_000, "number": number}
        await calls.say("tina", group, f"big-{number}", payload=big)

    page = await calls("otto", "group.v2.pull", group_id=group, after_seq=0)
    tail = await calls("otto", "group.v2.pull", group_id=group, after_seq=0, window_mode="tail")
    back = await calls("otto", "group.history", group_id=group, before_seq=99)

    for found in (page, tail, back):
        assert len(found["messages"]) == 2
        assert len(json.dumps(found)) < pages.MOST_BYTES + 10_000
    assert page["has_more"]
    assert (tail["window_start_seq"], tail["head_seq"]) == (3, 4)
    assert back["has_older"]


async def test_the_tail_is_a_dense_window_and_history_goes_back_from_it(calls: Calls) -> None:
    group = await calls.group("tina", "otto")
    for number in range(1, 8):
        await calls.say("tina", group, str(number))

    for after, limit, start, seqs in [
        (0, 3, 5, [5, 6, 7]),
        (5, 50, 6, [6, 7]),
        (7, 3, 7, []),
        (9, 3, 7, []),
    ]:
        page = await calls(
            "otto",
            "group.v2.pull",
            group_id=group,
            after_seq=after,
            limit=limit,
            window_mode="tail",
        )
        assert page["window_mode"] == "tail"
        assert page["head_seq"] == page["covered_through_seq"] == 7
        assert page["window_start_seq"] == start
        assert [row["seq"] for row in page["messages"]] == seqs

    back = await calls("otto", "group.history", group_id=group, before_seq=5, limit=3)
    assert [row["seq"] for row in back["messages"]] == [2, 3, 4]
    assert back["window_start_seq"] == back["next_before_seq"] == 2
    assert back["has_older"] is True
    first = await calls("otto", "group.history", group_id=group, before_seq=2, limit=3)
    assert ([row["seq"] for row in first["messages"]], first["has_older"]) == ([1], False)
    empty = await calls("otto", "group.history", group_id=group, before_seq=1)
    assert (empty["messages"], empty["has_older"]) == ([], False)
    assert empty["window_start_seq"] is None
    assert empty["next_before_seq"] is None


async def test_an_acknowledgement_moves_one_slot_forward_inside_what_it_may_see(
    calls: Calls,
) -> None:
    group = await calls.group("tina")
    await calls.say("tina", group, "one")
    await calls.say("tina", group, "two")
    await calls("tina", "group.add_member", group_id=group, aid=calls.parties.otto)
    await calls.say("tina", group, "three")

    for up_to, reached in [(0, 2), (3, 3), (1, 3), (99, 3)]:
        told = await calls("otto", "group.v2.ack", group_id=group, up_to_seq=up_to)
        assert told["ack_seq"] == told["effective_ack_seq"] == told["cursor"] == reached
    tablet = calls.parties.caller("otto", "tablet")
    other = await calls(tablet, "group.v2.pull", group_id=group, after_seq=0)
    assert other["cursor"]["current_seq"] == 0
    named = {"device_id": "phone", "slot_id": "default/x"}
    mine = await calls(tablet, "group.v2.pull", group_id=group, after_seq=0, **named)
    assert mine["cursor"]["current_seq"] == 3, "of one's own AID any device can be named"
    along = await calls(tablet, "group.v2.pull", group_id=group, after_seq=0, ack_up_to_seq=3)
    assert along["cursor"]["current_seq"] == 3
    old = await calls("otto", "group.ack_messages", group_id=group, msg_seq=3)
    assert old["cursor"] == 3


async def test_each_message_keeps_the_label_of_its_moment(calls: Calls) -> None:
    group = await calls.group("tina", "otto")
    await calls.say("tina", group, "before")
    for mode in ("mention-only", "disabled"):
        await calls("tina", "group.set_settings", group_id=group, settings={"mention_mode": mode})
        assert (await calls.say("tina", group, mode))["mention_mode"] == mode

    found = await calls("otto", "group.v2.pull", group_id=group, after_seq=0)

    assert [row["mention_mode"] for row in found["messages"]] == [
        "disabled",
        "mention-only",
        "disabled",
    ]
    assert len(found["messages"]) == 3, "the server labels, and filters nothing"


async def test_an_encrypted_message_is_shown_to_the_devices_it_is_encrypted_to(
    calls: Calls, tina: Outsider, otto: Outsider
) -> None:
    group = await calls.group("tina", "otto", "alice")
    await put_key(calls, otto)
    await send_sealed(calls, tina, group, "secret")
    await calls.say("otto", group, "plain")

    at_otto = await calls(otto.caller(), "group.v2.pull", group_id=group, after_seq=0)
    assert [row["version"] for row in at_otto["messages"]] == ["v2", "v1"]
    envelope = json.loads(at_otto["messages"][0]["envelope_json"])
    assert otto.opened(envelope, tina.spki) == outsiders.text("secret")
    assert "payload" not in at_otto["messages"][0]
    tablet = await calls(otto.caller("tablet"), "group.v2.pull", group_id=group, after_seq=0)
    own = await calls(tina.caller(), "group.v2.pull", group_id=group, after_seq=0)
    for blind in (tablet, own):
        assert [row["seq"] for row in blind["messages"]] == [2], "nothing undecryptable"
        assert blind["has_more"] is False
    tail = await calls(
        tina.caller(), "group.v2.pull", group_id=group, after_seq=0, window_mode="tail", limit=2
    )
    assert (tail["window_start_seq"], [row["seq"] for row in tail["messages"]]) == (1, [2])
    assert await calls.texts("alice", group) == ["secret", "plain"], "the server reads for her"
    [row, _] = messages()
    assert row.envelope is not None
    assert (row.payload, row.unreadable) == (outsiders.text("secret"), None)
    assert row.html == "<p>secret</p>\n"


async def test_what_nobody_here_reads_is_stored_unread(
    calls: Calls, tina: Outsider, otto: Outsider
) -> None:
    group = await calls.group("tina", "otto")
    await put_key(calls, otto)
    await send_sealed(calls, tina, group, "secret")
    [row] = messages()
    assert row.payload is None
    assert row.unreadable is None
    assert row.html is None
    assert "secret" not in (row.envelope or "").replace('"message_id":"secret"', "")

    await calls("tina", "group.add_member", group_id=group, aid=calls.parties.alice)
    rows = await calls(tina.caller(), "group.v2.bootstrap", group_id=group)
    rows["devices"] = [each for each in rows["devices"] if each["aid"] != calls.parties.alice]
    without = tina.sealed_to_group(rows, outsiders.text("without"), message_id="without")
    await calls(tina.caller(), "group.send", group_id=group, message_id="without", payload=without)
    found = await calls("alice", "group.v2.pull", group_id=group, after_seq=0)
    assert [(row["version"], row["message_id"]) for row in found["messages"]] == [("v2", "without")]
    assert messages()[-1].unreadable == "not_a_recipient"


async def test_an_envelope_for_another_group_or_for_somebody_who_left_leaves_no_trace(
    calls: Calls, tina: Outsider, otto: Outsider
) -> None:
    group, other = await calls.group("tina", "otto"), await calls.group("tina", "otto")
    await put_key(calls, otto)
    foreign = await sealed(calls, tina, other, "m-1")
    send = {"group_id": group, "message_id": "m-1"}
    assert (await calls.refused(tina.caller(), "group.send", payload=foreign, **send)).code == (
        -32602
    )
    stale = await sealed(calls, tina, group, "m-1")
    await calls("otto", "group.leave", group_id=group)
    assert (await calls.refused(tina.caller(), "group.send", payload=stale, **send)).code == -33011
    await calls("tina", "group.add_member", group_id=group, aid=otto.aid)
    otto.new_key()
    await put_key(calls, otto)
    assert (await calls.refused(tina.caller(), "group.send", payload=stale, **send)).code == -33011

    fresh = await sealed(calls, tina, group, "m-1")
    told = await calls(tina.caller(), "group.v2.send", envelope=fresh, **send)

    assert (told["status"], told["seq"]) == ("sent", 1)


async def test_a_hosted_member_encrypts_where_somebody_outside_reads(
    calls: Calls, tina: Outsider
) -> None:
    among_us = await calls.group("alice", "stock")
    with_her = await calls.group("alice", "tina", "stock")
    await put_key(calls, tina)
    for group in (among_us, with_her):
        for encrypt in (None, False, True):
            name = f"{group}-{encrypt}"
            said = {"payload": outsiders.text(name), "message_id": name, "encrypt": encrypt}
            await calls("alice", "group.send", group_id=group, **said)

    kept = {row.message_id: row.envelope is not None for row in messages()}
    assert [kept[f"{among_us}-{encrypt}"] for encrypt in (None, False, True)] == [False] * 3
    assert [kept[f"{with_her}-{encrypt}"] for encrypt in (None, False, True)] == [True, False, True]
    pulled = await calls(tina.caller(), "group.v2.pull", group_id=with_her, after_seq=0)
    first = pulled["messages"][0]
    assert (first["version"], first["sender_device_id"]) == ("v2", "hosted")
    assert envelopes.has_wrap(json.loads(first["envelope_json"]), tina.aid, "phone")
    at_stock = await calls("stock", "group.v2.pull", group_id=with_her, after_seq=0)
    assert [row["encrypted"] for row in at_stock["messages"]] == [True, False, True]
    assert at_stock["messages"][0]["payload"]["text"] == f"{with_her}-None"


async def test_a_recalled_message_is_gone_where_it_was_and_said_to_be_gone_at_the_end(
    calls: Calls, tina: Outsider, otto: Outsider
) -> None:
    group = await calls.group("tina", "otto", "alice")
    await put_key(calls, otto)
    await send_sealed(calls, tina, group, "secret")
    await calls.say(tina.caller(), group, "plain")
    await calls.say("otto", group, "not yours")

    told = await calls(
        tina.caller(),
        "group.recall",
        group_id=group,
        message_ids=["plain", "secret", "not yours", "unknown", "plain"],
        reason="oops",
    )

    assert told["success"] is True
    assert told["accepted"] == told["recalled"] == ["plain", "secret"]
    assert told["errors"] == [
        {"message_id": "not yours", "error": "not_sender"},
        {"message_id": "unknown", "error": "not_found"},
    ]
    found = await calls(otto.caller(), "group.v2.pull", group_id=group, after_seq=0)
    rows = {row["seq"]: row for row in found["messages"]}
    assert sorted(rows) == [1, 2, 3, 4]
    for seq in (1, 2, 4):
        assert rows[seq]["version"] == "v1"
        assert rows[seq]["type"] == rows[seq]["payload"]["type"] == RECALLED
        assert rows[seq]["payload"]["message_ids"] == ["secret", "plain"]
        assert rows[seq]["payload"]["target_message_seqs"] == [1, 2]
        assert rows[seq]["payload"]["recalled_by"] == tina.aid
        assert rows[seq]["payload"]["recalled_at"] > 0
        assert "envelope_json" not in rows[seq]
    assert rows[1]["message_id"] == "secret"
    assert rows[4]["message_id"] not in {"secret", "plain"}
    kept = {row.seq: row for row in messages()}
    assert kept[1].envelope is None
    assert kept[1].html is None
    again = await calls(tina.caller(), "group.recall", group_id=group, message_ids=["plain"])
    assert again["errors"] == [{"message_id": "plain", "error": "already_recalled"}]
    notice = await calls(
        tina.caller(), "group.recall", group_id=group, message_ids=[rows[4]["message_id"]]
    )
    assert notice["errors"][0]["error"] == "already_recalled"


async def test_a_message_can_be_recalled_for_two_minutes_in_an_active_group(
    calls: Calls, clock: Clock
) -> None:
    group = await calls.group("tina", "otto")
    await calls.say("tina", group, "old")
    clock.move(seconds=121)
    await calls.say("tina", group, "new")
    await calls("tina", "group.suspend", group_id=group)

    told = await calls("tina", "group.recall", group_id=group, message_ids=["old", "new"])

    assert told["recalled"] == []
    assert [each["error"] for each in told["errors"]] == ["expired", "group_inactive"]
    assert recalling.ALLOWED.total_seconds() == 120
    assert await calls.texts("otto", group) == ["old", "new"]
    many = {"group_id": group, "message_ids": [f"m-{number}" for number in range(101)]}
    assert (await calls.refused("tina", "group.recall", **many)).code == -32602


async def test_a_party_that_is_off_says_nothing(calls: Calls) -> None:
    group = await calls.group("alice", "stock")
    calls.parties.turn_off("stock")

    refused = await calls.refused(
        "stock", "group.send", group_id=group, payload=outsiders.text("x")
    )

    assert (refused.code, refused.data["retryable"]) == (-32004, False)
    assert db.read_now(event_log.newest, calls.parties.id).seq > 0
    assert [row for row in messages() if row.group_id == group] == []


async def test_what_a_send_must_have_is_said_in_words_of_the_protocol(calls: Calls) -> None:
    group = await calls.group("tina")
    caller: Caller = calls.parties.caller("tina")
    for bad in (
        {},
        {"payload": "text"},
        {"payload": {"text": "x" * (1 << 20)}},
        {"payload": {}, "message_id": ""},
        {"payload": {}, "message_id": "x" * 129},
        {"payload": {}, "need_render": "yes"},
    ):
        assert (await calls.refused(caller, "group.send", group_id=group, **bad)).code == -32602
    unnamed = await calls(caller, "group.send", group_id=group, content={"type": "text"})
    assert unnamed["message_id"].startswith("gm-")
    assert delivery.STORED == "message.stored"


async def test_changes_and_messages_at_once_leave_no_gap_and_lose_nothing(calls: Calls) -> None:
    group = await calls.group("tina", "otto")
    for number in range(8):
        calls.parties.add(f"new{number}", IdentityKind.OUTSIDE)
    comings = [
        calls(
            "tina", "group.add_member", group_id=group, aid=getattr(calls.parties, f"new{number}")
        )
        for number in range(8)
    ]
    sends = [calls.say("otto", group, f"m{number}") for number in range(8)]
    rejoined = [
        asyncio.gather(
            calls("tina", "group.set_settings", group_id=group, settings={"rules.content": "x"}),
            calls("otto", "group.report_status", group_id=group, online_status="a", work_status=""),
        )
    ]

    await asyncio.gather(*comings, *sends, *rejoined)

    shown = await calls("tina", "group.get_info", group_id=group)
    assert (shown["member_count"], shown["message_seq"], shown["event_seq"]) == (10, 8, 11)
    events = await calls("tina", "group.pull_events", group_id=group)
    assert [each["event_seq"] for each in events["events"]] == list(range(1, 12))
    members = await calls("tina", "group.get_members", group_id=group)
    assert members["total"] == 10
    pulled = await calls("otto", "group.v2.pull", group_id=group, after_seq=0)
    assert [row["seq"] for row in pulled["messages"]] == list(range(1, 9))


async def test_what_was_found_to_need_no_sealing_is_not_sent_when_an_outsider_came(
    calls: Calls,
) -> None:
    group = await calls.group("alice", "stock")
    caller = calls.parties.caller("alice")
    made = await sending.ready(caller, group, "m-1", outsiders.text("among us"), None)
    await calls("alice", "group.add_member", group_id=group, aid=calls.parties.tina)

    with pytest.raises(StaleEpoch):
        await db.transaction(sending.store, caller, group, "m-1", made)

    assert messages() == []
    assert (await calls("alice", "group.get_info", group_id=group))["message_seq"] == 0
