"""Coming into a group: asked for, invited, with a code; each way ends once."""

import pytest
from hypothesis import given
from hypothesis import strategies as some
from sqlmodel import Session, select

from app.aun.group_models import InviteCode
from app.aun.groups import patterns
from app.aun.models import IdentityKind
from app.kernel import db
from app.kernel.errors import TooMany
from tests.aun.group_calls import Calls, calls_in
from tests.clock import Clock
from tests.people import World

pytestmark = pytest.mark.anyio


@pytest.fixture
def calls(world: World) -> Calls:
    return calls_in(world)


async def settings(calls: Calls, group: str, **given: object) -> None:
    named = {key.replace("_", ".", 1): value for key, value in given.items()}
    await calls("tina", "group.set_settings", group_id=group, settings=named)


async def test_an_open_group_lets_anybody_in_and_others_do_not(calls: Calls) -> None:
    group = await calls.group("tina", visibility="public")
    told = await calls("otto", "group.request_join", group_id=group)
    assert (told["status"], told["member"]["role"], told["group"]["member_count"]) == (
        "joined",
        "member",
        2,
    )
    assert (await calls.refused("otto", "group.request_join", group_id=group)).code == -33004
    for mode in ("invite_only", "closed"):
        await settings(calls, group, join_mode=mode)
        assert (await calls.refused("owen", "group.request_join", group_id=group)).code == -33004
    await settings(calls, group, join_mode="open")
    await calls("tina", "group.suspend", group_id=group)
    assert (await calls.refused("owen", "group.request_join", group_id=group)).code == -33002


async def test_who_answers_the_question_waits_for_an_administrator(calls: Calls) -> None:
    group = await calls.group("tina", visibility="public", join_mode="approval")
    await settings(calls, group, join_question="Why?")
    asked = await calls("otto", "group.request_join", group_id=group)
    assert (asked["status"], asked["question"]) == ("question_required", "Why?")

    waits = await calls("otto", "group.request_join", group_id=group, message="Hi", answer="So")
    again = await calls("otto", "group.request_join", group_id=group, message="Hello", answer="So")
    assert waits["status"] == again["status"] == "pending"
    listed = await calls("tina", "group.list_join_requests", group_id=group)
    assert [(each["aid"], each["message"], each["answer"]) for each in listed["items"]] == [
        (calls.parties.otto, "Hello", "So")
    ]
    assert (await calls.refused("otto", "group.list_join_requests", group_id=group)).code == -33005

    aid = calls.parties.otto
    no = await calls(
        "tina", "group.review_join_request", group_id=group, aid=aid, approve=False, reason="Later"
    )
    assert (no["status"], no["request"]["rejection_reason"]) == ("rejected", "Later")
    gone = await calls.refused("tina", "group.review_join_request", group_id=group, aid=aid)
    assert gone.code == -33009
    await calls("otto", "group.request_join", group_id=group, answer="Please")
    yes = await calls("tina", "group.review_join_request", group_id=group, aid=aid)
    assert (yes["status"], yes["group"]["member_count"]) == ("approved", 2)
    listed = await calls("tina", "group.list_join_requests", group_id=group, status="approved")
    assert listed["total"] == 1


async def test_several_are_decided_at_once_and_one_that_fails_stops_nobody(calls: Calls) -> None:
    group = await calls.group("tina", visibility="public", join_mode="approval")
    for who in ("otto", "owen"):
        await calls(who, "group.request_join", group_id=group)
    otto, owen, alice = calls.parties.otto, calls.parties.owen, calls.parties.alice

    told = await calls(
        "tina",
        "group.batch_review_join_request",
        group_id=group,
        requests=[{"aid": otto}, {"aid": alice}, {"aid": owen, "approve": False}],
    )

    assert [(each["aid"], each["ok"]) for each in told["results"]] == [
        (otto, True),
        (alice, False),
        (owen, True),
    ]
    assert (told["success_count"], told["fail_count"]) == (2, 1)
    members = await calls("tina", "group.get_members", group_id=group)
    assert {each["aid"] for each in members["items"]} == {calls.parties.tina, otto}


async def test_expected_names_come_in_without_being_asked_after(calls: Calls) -> None:
    group = await calls.group("tina", visibility="public", join_mode="approval")
    await settings(calls, group, join_auto_approve_patterns=["ot*"], join_max_pending=1)

    assert (await calls("otto", "group.request_join", group_id=group))["status"] == "joined"
    assert (await calls("owen", "group.request_join", group_id=group))["status"] == "pending"
    refused = await calls.refused("alice", "group.request_join", group_id=group)
    assert "too many pending" in refused.text
    assert (await calls("owen", "group.request_join", group_id=group))["status"] == "pending"


def test_a_pattern_is_a_glob_and_costs_little_whatever_it_is() -> None:
    for pattern, aid, fits in [
        ("*", "anybody.example.org", True),
        ("alice.*", "alice.example.org", True),
        ("alice.*", "alice2.example.org", False),
        ("*-sales.example.org", "bob-sales.example.org", True),
        ("*-sales.example.org", "bob-sales.example.org.evil.org", False),
        ("bo?.example.org", "bob.example.org", True),
        (r"^bo.*\.example\.org$", "bobby.example.org", True),
        (r"^bo.*\.example\.org$", "bobby.exampleXorg", False),
        ("a*b*c", "aXXbYYc", True),
        ("a*b*c", "aXXcYYb", False),
    ]:
        assert patterns.any_matches([pattern], aid) is fits, (pattern, aid)
    for bad in ("(a+)+$", "^(a|b)$", "[a-z]+", "a{1,9}", "A*", "", "^$", "a|b"):
        with pytest.raises(ValueError, match="pattern"):
            patterns.understood(bad)
    assert not patterns.any_matches(["*a" * 100], "a" * 99 + "b")


@given(some.text("ab*?", max_size=12), some.text("ab", max_size=12))
def test_globs_match_what_a_plain_search_of_all_ways_matches(glob: str, text: str) -> None:
    def plain(left: str, right: str) -> bool:
        if not left:
            return not right
        if left[0] == "*":
            return plain(left[1:], right) or bool(right and plain(left, right[1:]))
        return bool(right) and left[0] in {"?", right[0]} and plain(left[1:], right[1:])

    if glob:
        assert patterns.any_matches([glob], text) is plain(glob, text)


async def test_a_code_lets_in_as_often_as_it_says_and_is_stored_sealed(calls: Calls) -> None:
    group = await calls.group("tina")
    made = await calls("tina", "group.create_invite_code", group_id=group, max_uses=2)
    code = made["invite_code"]["code"]
    assert len(code) >= 13
    assert (made["invite_code"]["status"], made["invite_code"]["used_count"]) == ("active", 0)
    [row] = db.read_now(_codes)
    assert code not in f"{row.digest} {row.code_sealed}"

    used = await calls("otto", "group.use_invite_code", code=f" {code.upper()} ")
    assert (used["status"], used["invite_code"]["used_count"]) == ("joined", 1)
    assert (await calls.refused("otto", "group.use_invite_code", code=code)).code == -33004
    await calls("owen", "group.use_invite_code", code=code)
    assert (await calls.refused("alice", "group.use_invite_code", code=code)).code == -33006
    listed = await calls("tina", "group.list_invite_codes", group_id=group)
    assert [(each["code"], each["status"], each["used_count"]) for each in listed["items"]] == [
        (code, "used", 2)
    ]
    assert (await calls.refused("otto", "group.list_invite_codes", group_id=group)).code == -32004


async def test_a_code_ends_by_time_or_by_hand_and_a_short_one_is_none(
    calls: Calls, clock: Clock
) -> None:
    group = await calls.group("tina")
    ask = {"group_id": group, "expires_in_seconds": 60}
    timed = await calls("tina", "group.create_invite_code", code="By-Time-1234", **ask)
    await calls("tina", "group.create_invite_code", code="by-hand-1234", group_id=group)
    assert timed["invite_code"]["code"] == "by-time-1234"
    taken = await calls.refused(
        "tina", "group.create_invite_code", code="BY-HAND-1234", group_id=group
    )
    assert taken.code == -33002
    for short in ("short", "ten\nlines12"):
        refused = await calls.refused(
            "tina", "group.create_invite_code", code=short, group_id=group
        )
        assert refused.code == -32602

    clock.move(minutes=2)
    told = await calls("tina", "group.revoke_invite_code", group_id=group, code="by-hand-1234")
    assert told["invite_code"]["status"] == "revoked"
    refusals = [
        await calls.refused("otto", "group.use_invite_code", code=code)
        for code in ("by-time-1234", "by-hand-1234", "never-was-1234")
    ]
    assert {(each.code, each.text) for each in refusals} == {
        (-33006, "invite code is invalid or expired")
    }


async def test_ten_wrong_codes_an_hour_are_enough(calls: Calls, clock: Clock) -> None:
    calls.parties.add("guesser", IdentityKind.OUTSIDE)  # tries are counted for a whole process
    group = await calls.group("tina")
    made = await calls("tina", "group.create_invite_code", group_id=group, max_uses=9)
    code = made["invite_code"]["code"]
    for number in range(10):
        guess = {"code": f"guess-number-{number}"}
        assert (await calls.refused("guesser", "group.use_invite_code", **guess)).code == -33006

    with pytest.raises(TooMany):
        await calls("guesser", "group.use_invite_code", code=code)
    assert (await calls("owen", "group.use_invite_code", code=code))["status"] == "joined"
    clock.move(minutes=61)
    assert (await calls("guesser", "group.use_invite_code", code=code))["status"] == "joined"


async def test_several_inviters_share_one_invitation_and_it_ends_once(calls: Calls) -> None:
    group = await calls.group("tina", "otto", visibility="public", join_mode="invite_only")
    owen = calls.parties.owen
    first = await calls("tina", "group.invite_member", group_id=group, invitee_aid=owen)
    again = await calls("tina", "group.invite_member", group_id=group, aid=owen)
    second = await calls("otto", "group.invite_member", group_id=group, aid=owen)
    assert first["invite_id"] == again["invite_id"] == second["invite_id"]
    assert second["inviter_aids"] == [calls.parties.tina, calls.parties.otto]
    listed = await calls("owen", "group.list_my_invites", page=1, size=200)
    assert [(each["invite_id"], each["group_name"]) for each in listed["items"]] == [
        (first["invite_id"], "Team")
    ]
    assert (listed["total"], listed["has_more"]) == (1, False)
    invite = {"invite_id": first["invite_id"]}
    for who in ("tina", "alice"):
        for name in ("group.accept_invite", "group.reject_invite"):
            assert (await calls.refused(who, name, **invite)).code == -33009
    assert (await calls.refused("owen", "group.revoke_invite", **invite)).code == -33009

    one_less = await calls("otto", "group.revoke_invite", **invite)
    assert (one_less["status"], one_less["inviter_aids"]) == ("pending", [calls.parties.tina])
    assert (await calls.refused("otto", "group.revoke_invite", **invite)).code == -33009
    accepted = await calls("owen", "group.accept_invite", **invite)

    assert (accepted["status"], accepted["member"]["aid"]) == ("accepted", owen)
    for who, name in [
        ("owen", "group.accept_invite"),
        ("owen", "group.reject_invite"),
        ("tina", "group.revoke_invite"),
    ]:
        refused = await calls.refused(who, name, **invite)
        assert "not pending" in refused.text
    assert (await calls.refused("tina", "group.invite_member", group_id=group, aid=owen)).code == (
        -33004
    )
    members = await calls("owen", "group.get_members", group_id=group)
    assert members["total"] == 3


async def test_an_invitation_runs_out_is_turned_down_or_is_taken_back(
    calls: Calls, clock: Clock
) -> None:
    group = await calls.group("tina", "alice")
    owen, otto = calls.parties.owen, calls.parties.otto
    late = await calls("tina", "group.invite_member", group_id=group, aid=owen)
    clock.move(days=8)
    refused = await calls.refused("owen", "group.accept_invite", invite_id=late["invite_id"])
    assert "expired" in refused.text
    assert (await calls("owen", "group.list_my_invites"))["items"] == []

    new = await calls("tina", "group.invite_member", group_id=group, aid=owen)
    assert new["invite_id"] != late["invite_id"]
    no = await calls("owen", "group.reject_invite", invite_id=new["invite_id"])
    assert no["status"] == "rejected"
    back = await calls("tina", "group.invite_member", group_id=group, aid=otto)
    gone = await calls("tina", "group.revoke_invite", invite_id=back["invite_id"])
    assert gone["status"] == "revoked"
    for who, invite in (("owen", new), ("otto", back)):
        refused = await calls.refused(who, "group.accept_invite", invite_id=invite["invite_id"])
        assert "not pending" in refused.text
    by_member = await calls.refused("alice", "group.invite_member", group_id=group, aid=otto)
    assert by_member.code == -32004, "in a private group administrators invite"
    assert (await calls("tina", "group.get_members", group_id=group))["total"] == 2


async def test_coming_in_by_one_way_ends_the_others(calls: Calls) -> None:
    group = await calls.group("tina", visibility="public", join_mode="approval")
    await calls("otto", "group.request_join", group_id=group)
    invited = await calls("tina", "group.invite_member", group_id=group, aid=calls.parties.otto)
    await calls("tina", "group.add_member", group_id=group, aid=calls.parties.otto)

    assert (await calls("tina", "group.list_join_requests", group_id=group))["items"] == []
    refused = await calls.refused("otto", "group.accept_invite", invite_id=invited["invite_id"])
    assert "not pending: accepted" in refused.text


def _codes(session: Session) -> list[InviteCode]:
    return list(session.exec(select(InviteCode)))
