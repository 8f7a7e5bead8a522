"""What members say of themselves."""

import pytest

from tests.aun.group_calls import Calls, calls_in
from tests.people import World

pytestmark = pytest.mark.anyio


@pytest.fixture
def calls(world: World) -> Calls:
    return calls_in(world)


async def test_what_a_member_says_of_itself_is_shown_and_changes_nothing(calls: Calls) -> None:
    group = await calls.group("tina", "otto")
    before = (await calls("tina", "group.get_info", group_id=group))["event_seq"]
    said = {"online_status": "online", "work_status": "busy"}
    told = await calls("otto", "group.report_status", group_id=group, **said)

    found = await calls("tina", "group.get_member_statuses", group_id=group)

    assert told["status"]["work_status"] == "busy"
    assert {each["aid"]: each["work_status"] for each in found["items"]} == {
        calls.parties.tina: "",
        calls.parties.otto: "busy",
    }
    assert (await calls("tina", "group.get_info", group_id=group))["event_seq"] == before
    refused = await calls.refused("owen", "group.report_status", group_id=group, **said)
    assert refused.code == -33001
    members = await calls("tina", "group.get_members", group_id=group)
    assert [each["online"] for each in members["items"]] == [False, False], "presence is no claim"
