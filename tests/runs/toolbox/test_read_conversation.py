"""`read_conversation`: what this agent may see, archived messages included, as data."""

from dataclasses import replace

import pytest

from app.runs.outcome import Done, Refused
from tests.runs.sessions import Desks

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("RUN-94")
async def test_messages_come_in_order_with_who_wrote_them_and_older_ones_on_request(
    desks: Desks,
) -> None:
    desks.enable()
    desks.say("alice", "expenses", "First")
    run = await desks.takes_up()
    desks.say("alice", "expenses", "", type="tool_call", call_id="1", name="pay", arguments={})
    await desks.call(run, "send_message", text="Second")
    desks.say("alice", "expenses", "Third")

    newest = await desks.call(run, "read_conversation", limit=3)
    assert isinstance(newest, Done)
    shown = newest.result["messages"]
    older = await desks.call(run, "read_conversation", before=shown[0]["seq"])

    assert [each.get("text") for each in shown] == [None, "Second", "Third"]
    assert [each.get("is_own") for each in shown] == [None, True, None]
    assert (shown[0]["type"], shown[0]["sender"]) == ("tool_call", desks.aid("alice"))
    assert shown[2]["sender_name"] == desks.world.acme["alice"].display_name
    assert newest.result["more"] is True
    assert isinstance(older, Done)
    assert [each["text"] for each in older.result["messages"]] == ["First"]
    assert older.result["more"] is False


@pytest.mark.requirement("RUN-15", "RUN-94")
async def test_what_the_groups_filter_archived_is_there_to_be_read(desks: Desks) -> None:
    desks.enable()
    group = desks.group("bob", agents=("expenses",), mention_mode="mention-only")
    desks.say_in(group, "bob", "Not for the agent")
    desks.say_in(group, "alice", "You?", mentions=[{"aid": desks.aid("expenses")}])
    run = await desks.takes_up()

    done = await desks.call(run, "read_conversation")

    assert isinstance(done, Done)
    assert [each["text"] for each in done.result["messages"]] == ["Not for the agent", "You?"]


@pytest.mark.requirement("RUN-37")
async def test_whoever_is_out_of_the_group_reads_nothing(desks: Desks) -> None:
    desks.enable()
    group = desks.group("bob", agents=("expenses",))
    desks.say_in(group, "alice", "You?", mentions=[{"aid": desks.aid("expenses")}])
    run = await desks.takes_up()
    desks.put_out(group, "expenses")

    out = await desks.call(run, "read_conversation")
    run.facts = replace(run.facts, conversation_id=None)
    nowhere = await desks.call(run, "read_conversation")

    for each in (out, nowhere):
        assert isinstance(each, Refused)
        assert each.reason == "not_found"
