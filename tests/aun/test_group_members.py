"""Who is in a group, what each may do there, and what those who are gone still see."""

from typing import Any

import pytest
from sqlmodel import Session, select

from app.aun import conversations
from app.aun.models import Participant
from app.kernel import db
from app.kernel.models import LoggedEvent
from tests.aun.group_calls import Calls, calls_in
from tests.people import World

pytestmark = pytest.mark.anyio


@pytest.fixture
def calls(world: World) -> Calls:
    return calls_in(world)


def participants(calls: Calls, group: str) -> dict[str, Participant]:
    return db.read_now(_participants, calls.parties.id, group)


def _participants(session: Session, tenant_id: str, group: str) -> dict[str, Participant]:
    conversation_id = conversations.id_of_group(session, tenant_id, group)
    query = select(Participant).where(Participant.conversation_id == conversation_id)
    return {row.aid: row for row in session.exec(query)}


def _logged(session: Session, kind: str) -> list[LoggedEvent]:
    return list(session.exec(select(LoggedEvent).where(LoggedEvent.kind == kind)))


async def test_members_are_listed_with_their_roles_under_both_names(calls: Calls) -> None:
    group = await calls.group("tina", "otto", "stock")
    added = await calls(
        "tina", "group.add_member", group_id=group, aid=calls.parties.alice, role="admin"
    )
    assert (added["member"]["role"], added["group"]["member_count"]) == ("admin", 4)

    found = await calls("otto", "group.get_members", group_id=group)

    assert found["members"] == found["items"]
    assert [(each["aid"], each["role"], each["online"]) for each in found["members"]] == [
        (calls.parties.tina, "owner", False),
        (calls.parties.alice, "admin", False),
        (calls.parties.otto, "member", False),
        (calls.parties.stock, "member", True),  # a hosted agent is there while it is enabled
    ]
    assert found["total"] == 4
    second = await calls("otto", "group.get_members", group_id=group, page=2, size=3)
    assert [each["aid"] for each in second["items"]] == [calls.parties.stock]
    admins = await calls("otto", "group.get_admins", group_id=group)
    assert [each["role"] for each in admins["admins"]] == ["owner", "admin"]
    online = await calls("otto", "group.get_online_members", group_id=group)
    assert [each["aid"] for each in online["members"]] == [calls.parties.stock]
    master = await calls("otto", "group.get_master", group_id=group)
    assert master["owner_aid"] == calls.parties.tina


async def test_nobody_is_added_twice_and_only_who_exists(calls: Calls) -> None:
    group = await calls.group("tina", "otto")
    assert (
        await calls.refused("tina", "group.add_member", group_id=group, aid=calls.parties.otto)
    ).code == -33004
    for unknown in (f"nobody.{calls.parties.issuer}", "bobby.other.example", group):
        refused = await calls.refused("tina", "group.add_member", group_id=group, aid=unknown)
        assert refused.code == -32008
    by_member = await calls.refused(
        "otto", "group.add_member", group_id=group, aid=calls.parties.owen
    )
    assert by_member.code == -32004


async def test_the_owner_makes_administrators_and_each_rules_those_below(calls: Calls) -> None:
    group = await calls.group("tina", "otto", "owen", "alice")
    otto, owen, alice = calls.parties.otto, calls.parties.owen, calls.parties.alice
    for aid in (otto, alice):
        told = await calls("tina", "group.set_role", group_id=group, aid=aid, role="admin")
        assert (told["old_role"], told["new_role"]) == ("member", "admin")

    for who, name, more in [
        ("otto", "group.set_role", {"aid": owen, "role": "admin"}),
        ("otto", "group.add_member", {"aid": calls.parties.stock, "role": "admin"}),
        ("otto", "group.kick", {"aid": alice}),
        ("otto", "group.ban", {"aid": alice}),
        ("otto", "group.block", {"aid": calls.parties.tina}),
        ("owen", "group.kick", {"aid": otto}),
        ("owen", "group.block", {"aid": otto}),
        ("owen", "group.get_banlist", {}),
        ("otto", "group.dissolve", {}),
        ("otto", "group.transfer_owner", {"new_owner": owen}),
    ]:
        assert (await calls.refused(who, name, group_id=group, **more)).code == -32004, name
    for name in ("group.kick", "group.leave"):
        more = {"aid": calls.parties.tina} if name == "group.kick" else {}
        who = "otto" if more else "tina"
        assert "owner cannot leave" in (await calls.refused(who, name, group_id=group, **more)).text
    bad = {"group_id": group, "aid": calls.parties.tina, "role": "member"}
    assert (await calls.refused("tina", "group.set_role", **bad)).code == -32602
    bad["aid"], bad["role"] = owen, "owner"
    assert (await calls.refused("tina", "group.set_role", **bad)).code == -32602

    assert (await calls("otto", "group.kick", group_id=group, aid=owen))["removed_aid"] == owen
    refused = await calls.refused("otto", "group.kick", group_id=group, aid=owen)
    assert refused.code == -33005


async def test_a_new_member_sees_what_comes_and_one_who_went_sees_nothing_more(
    calls: Calls,
) -> None:
    group = await calls.group("tina", "otto")
    await calls.say("tina", group, "before")
    await calls("tina", "group.add_member", group_id=group, aid=calls.parties.alice)
    await calls.say("tina", group, "after")

    assert await calls.texts("alice", group) == ["after"]
    assert (await calls("alice", "group.history", group_id=group, before_seq=99))["messages"][0][
        "seq"
    ] == 2
    events = await calls("alice", "group.pull_events", group_id=group)
    assert [each["event_seq"] for each in events["events"]] == [3]
    assert events["cursor"]["join_seq"] == events["earliest_available_event_seq"] - 1 == 2
    there = participants(calls, group)[calls.parties.alice]
    assert there.left_at is None
    assert there.from_seq > participants(calls, group)[calls.parties.tina].from_seq

    left = await calls("alice", "group.leave", group_id=group)
    await calls.say("tina", group, "gone")
    assert left["left_aid"] == calls.parties.alice
    for name in ("group.v2.pull", "group.pull_events", "group.leave"):
        assert (await calls.refused("alice", name, group_id=group)).code == -33001
    assert participants(calls, group)[calls.parties.alice].left_at is not None
    assert (await calls("alice", "group.list_my"))["items"] == []
    mine = [row for row in db.read_now(_logged, "conversation.changed") if row.user_id]
    assert len(mine) == 2, "their list was told of both"

    await calls("tina", "group.add_member", group_id=group, aid=calls.parties.alice)
    await calls.say("tina", group, "back")
    assert await calls.texts("alice", group) == ["back"]
    assert participants(calls, group)[calls.parties.alice].left_at is None


async def test_a_banned_member_receives_and_does_not_send_and_leaving_does_not_lift_it(
    calls: Calls,
) -> None:
    group = await calls.group("tina", "otto", join_mode="open", visibility="public")
    otto = calls.parties.otto
    banned = await calls("tina", "group.ban", group_id=group, subject=otto, reason="spam")
    assert (banned["ban"]["subject"], banned["ban"]["reason"]) == (otto, "spam")
    await calls.say("tina", group, "hear this")

    payload = {"type": "text", "text": "x"}
    refused = await calls.refused("otto", "group.send", group_id=group, payload=payload)
    assert (refused.code, refused.data["retryable"]) == (-33004, False)
    assert "is banned" in refused.text
    assert await calls.texts("otto", group) == ["hear this"]
    listed = await calls("tina", "group.get_banlist", group_id=group)
    assert [each["subject"] for each in listed["items"]] == [otto]

    await calls("otto", "group.leave", group_id=group)
    assert "banned" in (await calls.refused("otto", "group.request_join", group_id=group)).text
    listed = await calls("tina", "group.get_banlist", group_id=group)
    assert [each["subject"] for each in listed["items"]] == [otto]
    await calls("tina", "group.unban", group_id=group, aid=otto)
    assert (await calls("otto", "group.request_join", group_id=group))["status"] == "joined"
    await calls.say("otto", group, "thank you")


async def test_whoever_blocks_a_group_sends_and_receives_nothing_until_they_unblock(
    calls: Calls,
) -> None:
    group = await calls.group("tina", "otto")
    otto = calls.parties.otto
    await calls("otto", "group.block", group_id=group, aid=otto)
    await calls.say("tina", group, "unheard")

    for name, more in (("group.v2.pull", {}), ("group.history", {"before_seq": 9})):
        refused = await calls.refused("otto", name, group_id=group, **more)
        assert (refused.code, refused.data["retryable"]) == (-33004, False)
    await calls.say("otto", group, "I can still talk")
    listed = await calls("tina", "group.get_blocklist", group_id=group)
    assert [each["subject"] for each in listed["items"]] == [otto]

    await calls("otto", "group.unblock", group_id=group, aid=otto)
    assert await calls.texts("otto", group) == ["unheard", "I can still talk"]


async def test_every_change_is_numbered_without_a_gap_and_kept(calls: Calls) -> None:
    group = await calls.group("tina", "otto", "owen")
    otto, owen = calls.parties.otto, calls.parties.owen
    aid = {"aid": otto}
    steps: list[tuple[str, dict[str, Any], str]] = [
        ("group.set_role", {**aid, "role": "admin"}, "role_changed"),
        ("group.set_role", {**aid, "role": "member"}, "role_changed"),
        ("group.ban", aid, "member_banned"),
        ("group.ban", aid, ""),
        ("group.unban", aid, "member_unbanned"),
        ("group.block", aid, "member_blocked"),
        ("group.unblock", aid, "member_unblocked"),
        ("group.suspend", {}, "suspended"),
        ("group.resume", {}, "resumed"),
        ("group.update", {"name": "New"}, "update"),
        ("group.set_settings", {"settings": {"rules.content": "Be kind"}}, "rules_updated"),
        (
            "group.set_settings",
            {"settings": {"announcement.content": "Hello"}},
            "announcement_updated",
        ),
        ("group.set_settings", {"settings": {"mention_mode": "disabled"}}, "settings_updated"),
        ("group.kick", {"aid": owen}, "member_removed"),
        ("group.create_invite_code", {}, "invite_code_created"),
        ("group.dissolve", {}, "dissolved"),
    ]
    for name, params, _ in steps:
        await calls("tina", name, group_id=group, **params)

    first = await calls("tina", "group.pull_events", group_id=group, limit=8)
    rest = await calls("tina", "group.pull_events", group_id=group, after_event_seq=8)

    events = first["events"] + rest["events"]
    assert [first["has_more"], rest["has_more"]] == [True, False]
    assert [each["event_seq"] for each in events] == list(range(1, len(events) + 1))
    assert rest["latest_event_seq"] == len(events)
    expected = ["created", "member_added", "member_added", *[step[2] for step in steps if step[2]]]
    assert [each["action"] for each in events] == expected
    assert {each["event_type"] for each in events} == {"group.changed"}
    assert {each["actor_aid"] for each in events} == {calls.parties.tina}
    assert events[1]["member_aid"] == otto
    logged = db.read_now(_logged, "group.changed")
    assert [row.data["event_seq"] for row in logged] == list(range(1, len(events) + 1))
    assert len({row.topic for row in logged}) == 1

    acked = await calls("tina", "group.ack_events", group_id=group, event_seq=10)
    back = await calls("tina", "group.ack_events", group_id=group, event_seq=3)
    beyond = await calls("tina", "group.ack_events", group_id=group, event_seq=10_000)
    assert [each["ack_seq"] for each in (acked, back, beyond)] == [10, 10, len(events)]


async def test_people_and_agents_of_this_server_own_groups_like_everybody(calls: Calls) -> None:
    for owner in ("alice", "stock"):
        group = await calls.group(owner, "tina")
        await calls(owner, "group.set_role", group_id=group, aid=calls.parties.tina, role="admin")
        await calls("tina", "group.add_member", group_id=group, aid=calls.parties.otto)
        await calls.say(owner, group, f"from {owner}")
        assert await calls.texts("otto", group) == [f"from {owner}"]
        there = participants(calls, group)
        assert {aid for aid, row in there.items() if row.left_at is None} == {
            getattr(calls.parties, owner),
            calls.parties.tina,
            calls.parties.otto,
        }
