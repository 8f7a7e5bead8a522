"""How long groups keep what was said, and who came too late for an invitation."""

import pytest
from sqlmodel import Session, select

from app.aun.events import InviteChanged
from app.aun.group_models import Invite
from app.aun.groups import retention
from app.kernel import db, events
from tests.aun.group_calls import Calls, calls_in
from tests.clock import Clock
from tests.people import World

pytestmark = pytest.mark.anyio


async def test_a_group_of_outsiders_forgets_after_a_month_and_says_from_where(
    world: World, clock: Clock
) -> None:
    calls: Calls = calls_in(world)
    theirs, ours = await calls.group("tina", "otto"), await calls.group("tina", "alice")
    for group in (theirs, ours):
        for number in (1, 2):
            await calls.say("tina", group, f"old {number} in {group}")
    late = await calls("tina", "group.invite_member", group_id=theirs, aid=calls.parties.owen)
    clock.move(days=31)
    await calls.say("tina", theirs, "new")
    heard: list[InviteChanged] = []
    stop = events.subscribe(InviteChanged, heard.append)

    assert retention.sweep() == 2
    assert retention.sweep() == 0
    stop()

    assert await calls.texts("otto", theirs) == ["new"]
    page = await calls("otto", "group.v2.pull", group_id=theirs, after_seq=0)
    assert page["retention_floor_message_seq"] == page["cursor"]["retention_floor_seq"] == 2
    assert page["earliest_available_message_seq"] == page["messages"][0]["seq"] == 3
    history = await calls("otto", "group.history", group_id=theirs, before_seq=3)
    assert (history["messages"], history["retention_floor_seq"]) == ([], 2)
    tail = await calls("otto", "group.v2.pull", group_id=theirs, after_seq=0, window_mode="tail")
    assert tail["window_start_seq"] == 3
    assert len(await calls.texts("alice", ours)) == 2, "what is the tenant's own stays"
    assert [(each.invite_id, each.is_new) for each in heard] == [(late["invite_id"], False)]
    assert db.read_now(_statuses) == ["expired"]
    clock.move(days=31)
    assert retention.sweep() == 1
    empty = await calls("otto", "group.v2.pull", group_id=theirs, after_seq=0)
    assert (empty["messages"], empty["has_more"], empty["latest_message_seq"]) == ([], False, 3)
    assert empty["retention_floor_message_seq"] == 3


def _statuses(session: Session) -> list[str]:
    return list(session.exec(select(Invite.status)))
