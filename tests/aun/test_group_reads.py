"""How far groups are read: one's own affair, forward only."""

import pytest

from app.aun import reading
from app.kernel import db
from tests.aun.group_calls import Calls, calls_in
from tests.people import World

pytestmark = pytest.mark.anyio


@pytest.fixture
def calls(world: World) -> Calls:
    return calls_in(world)


async def test_a_read_position_moves_forward_over_all_devices_and_is_ones_own(
    calls: Calls,
) -> None:
    group = await calls.group("tina", "otto")
    for name in ("one", "two"):
        await calls.say("tina", group, name)

    def at(name: str, topic: str = "all") -> dict[str, str]:
        return {"group_id": group, "topic_key": topic, "last_read_message_id": name}

    assert _unread(calls, "otto") == 1
    first = await calls("otto", "group.read", states=[at("two"), at("one", "other")])
    back = await calls("otto", "group.read", states=[at("one")])
    assert (first["updated"], first["ignored"]) == (2, 0)
    assert (back["updated"], back["states"][0]["changed"]) == (0, False)

    assert _unread(calls, "otto") == 0, "the console knows as well"
    tablet = calls.parties.caller("otto", "tablet")
    found = await calls(tablet, "group.read_state", group_id=group, topic_key="all")
    [state] = found["states"]
    assert (state["last_read_message_id"], state["last_read_order"]) == ("two", 2)
    assert (state["scope"], state["mapping_status"]) == ("group", "resolved")
    assert (await calls("tina", "group.read_state"))["states"] == []
    ack = await calls("otto", "group.v2.pull", group_id=group, after_seq=0)
    assert ack["cursor"]["current_seq"] == 0, "reading is no acknowledgement"
    for bad in ([at("unknown")], [at("two", "x" * 129)], [], [at("two"), {"group_id": group}]):
        assert (await calls.refused("otto", "group.read", states=bad)).code == -32602
    assert (await calls.refused("owen", "group.read", states=[at("two")])).code == -33001
    await calls("otto", "group.leave", group_id=group)
    assert (await calls("otto", "group.read_state"))["states"] == []


def _unread(calls: Calls, name: str) -> int:
    who = calls.parties.caller(name)
    return db.read_now(reading.unread, who.tenant_id, who.aid)
