"""Thoughts: for one other party to see, or for a group; limited, and never a message."""

from typing import Any

import pytest
from sqlmodel import select

from app.aun import rpc, thoughts
from app.aun.errors import AunError, BadParams, NoSuchParty, NotAParty
from app.aun.models import InboxCounter, Message, ThoughtHead
from app.kernel import db
from app.kernel.models import LoggedEvent
from tests.aun import parties as people
from tests.aun.parties import Parties

RUN = {"type": "run", "id": "r-1"}


@pytest.fixture
def parties(opened: str) -> Parties:
    return people.gather()


async def think(parties: Parties, name: str, to: str, **more: Any) -> dict[str, Any]:
    params = {"to": to, "context": RUN, "payload": {"type": "thought", "text": "hm"}, **more}
    return await rpc.invoke(parties.caller(name), "message.thought.put", params)


async def look(parties: Parties, name: str, sender: str, **more: Any) -> dict[str, Any]:
    params = {"sender_aid": sender, "context": RUN, **more}
    return await rpc.invoke(parties.caller(name), "message.thought.get", params)


@pytest.mark.anyio
async def test_the_two_parties_read_it_in_order_and_nobody_else(parties: Parties) -> None:
    first = await think(parties, "tina", parties.otto, thought_id="mt-1")
    second = await think(parties, "tina", parties.otto, thought_id="mt-2", payload={"text": "ah"})
    again = await think(parties, "tina", parties.otto, thought_id="mt-1", payload={"text": "no"})

    peer = await look(parties, "otto", parties.tina)
    author = await look(parties, "tina", parties.tina, peer_aid=parties.otto)
    stranger = await look(parties, "owen", parties.tina)

    assert first == {
        "sender_aid": parties.tina,
        "peer_aid": parties.otto,
        "to": parties.otto,
        "context": RUN,
        "thought_id": "mt-1",
        "stored_count": 1,
        "updated_at": first["updated_at"],
    }
    assert (second["stored_count"], again["stored_count"]) == (2, 2)
    assert peer["found"] is True
    assert peer["thoughts"] == author["thoughts"]
    assert [each["payload"]["text"] for each in peer["thoughts"]] == ["hm", "ah"]
    assert peer["thoughts"][0] == {
        "thought_id": "mt-1",
        "message_id": "mt-1",
        "context": RUN,
        "from": parties.tina,
        "to": parties.otto,
        "payload": {"type": "thought", "text": "hm"},
        "created_at": peer["thoughts"][0]["created_at"],
    }
    assert (stranger["found"], stranger["thoughts"]) == (False, [])
    for third in ({"peer_aid": parties.otto}, {"to": parties.otto}):
        with pytest.raises(NotAParty) as refused:
            await look(parties, "owen", parties.tina, **third)
        assert refused.value.code == -32004
    with pytest.raises(BadParams):
        await look(parties, "tina", parties.tina)


@pytest.mark.anyio
@pytest.mark.requirement("AUN-8")
async def test_a_thought_is_no_message(parties: Parties) -> None:
    await think(parties, "clerk", parties.alice)

    assert _all(Message) == _all(InboxCounter) == []
    assert [row.kind for row in _all(LoggedEvent) if row.kind.startswith("message.")] == []
    assert (await rpc.invoke(parties.caller("alice"), "message.peers", {}))["peers"] == []


@pytest.mark.anyio
async def test_old_items_and_old_headings_make_room(
    parties: Parties, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (thoughts.HEADS, thoughts.ITEMS, thoughts.LONGEST) == (100, 200, 64 << 10)
    monkeypatch.setattr(thoughts, "ITEMS", 3)
    monkeypatch.setattr(thoughts, "HEADS", 2)

    for number in range(5):
        kept = await think(parties, "tina", parties.otto, thought_id=f"mt-{number}")
    items = await look(parties, "otto", parties.tina)
    for run in ("r-2", "r-3"):
        await think(parties, "tina", parties.otto, context={"type": "run", "id": run})
    await think(parties, "tina", parties.owen)
    await think(parties, "tina", parties.otto, context={"type": "run", "id": "r-2"})

    assert kept["stored_count"] == 3
    assert [each["thought_id"] for each in items["thoughts"]] == ["mt-2", "mt-3", "mt-4"]
    assert (await look(parties, "otto", parties.tina))["found"] is False
    heads = sorted((row.peer, row.context_id) for row in _all(ThoughtHead))
    assert heads == [(parties.otto, "r-2"), (parties.otto, "r-3"), (parties.owen, "r-1")]


@pytest.mark.anyio
async def test_an_answer_holds_the_newest_that_fit_a_frame(parties: Parties) -> None:
    for number in range(30):
        await think(
            parties,
            "tina",
            parties.otto,
            thought_id=f"mt-{number}",
            payload={"text": "x" * 65_000},
        )

    told = await look(parties, "otto", parties.tina)

    assert len(told["thoughts"]) == 24
    assert told["thoughts"][-1]["thought_id"] == "mt-29"


@pytest.mark.anyio
async def test_what_cannot_be_kept_is_refused(parties: Parties) -> None:
    parties.turn_off("clerk")
    for wrong in (
        {"payload": {"text": "x" * 65_536}},
        {"payload": "text"},
        {"context": {"type": "run"}},
        {"context": None},
    ):
        with pytest.raises(BadParams):
            await think(parties, "tina", parties.otto, **wrong)
    with pytest.raises(NoSuchParty):
        await think(parties, "tina", "nobody.acme.example")
    with pytest.raises(NotAParty):
        await think(parties, "clerk", parties.alice)

    assert _all(ThoughtHead) == []


@pytest.mark.anyio
async def test_members_of_a_group_read_what_is_thought_for_it(parties: Parties) -> None:
    made = await rpc.invoke(
        parties.caller("tina"), "group.create", {"name": "Team", "members": [parties.otto]}
    )
    group = made["group"]["group_id"]
    put = {"group_id": group, "context": RUN, "payload": {"text": "hm"}, "thought_id": "gt-1"}
    get = {"group_id": group, "context": RUN, "sender_aid": parties.tina}

    kept = await rpc.invoke(parties.caller("tina"), "group.thought.put", put)
    told = await rpc.invoke(parties.caller("otto"), "group.thought.get", get)
    direct = await look(parties, "otto", parties.tina)

    assert (kept["group_id"], kept["stored_count"]) == (group, 1)
    assert [each["thought_id"] for each in told["thoughts"]] == ["gt-1"]
    assert told["group_id"] == group
    assert direct["found"] is False
    for method, params in (("group.thought.put", put), ("group.thought.get", get)):
        with pytest.raises(AunError) as refused:
            await rpc.invoke(parties.caller("owen"), method, params)
        assert refused.value.code == -33001


def _all(model: type[Any]) -> list[Any]:
    return db.read_now(lambda session: list(session.exec(select(model))))
