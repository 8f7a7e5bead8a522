"""What reaches an agent's model: by what mentions say, never by what a text looks like."""

from typing import Any

import pytest

from app.aun import channel
from app.aun.models import IdentityKind
from tests.aun import outsiders
from tests.aun.group_calls import Calls, calls_in
from tests.aun.outsiders import Outsider
from tests.people import World

pytestmark = pytest.mark.anyio

OWN = "clerk.example.org"
MENTIONS: list[tuple[str, Any, bool]] = [
    ("none", None, False),
    ("an empty list", [], False),
    ("its own AID", [{"aid": OWN, "display": "Clerk", "offset": 0, "length": 6}], True),
    ("another AID", [{"aid": "olga.example.org"}], False),
    ("another and its own", [{"aid": "olga.example.org"}, {"aid": OWN}], True),
    ("everybody", [{"scope": "all"}], True),
    ("an AID called all", [{"aid": "all"}], False),
    ("the text @all", ["@all"], False),
    ("its AID as a text", [OWN], False),
    ("no list", {"aid": OWN}, False),
    ("a text", OWN, False),
    ("a number", 7, False),
    ("nothing in a list", [None, 7, [], {}], False),
    ("another scope", [{"scope": "some"}], False),
]


@pytest.mark.requirement("AUN-15")
def test_in_a_mention_only_group_an_agent_is_shown_what_names_it_or_everybody() -> None:
    for name, mentions, passes in MENTIONS:
        for text in ("Hello", f"@{OWN} @all @Clerk"):
            payload = {"type": "text", "text": text}
            if mentions is not None:
                payload["mentions"] = mentions
            assert channel.passes("mention-only", payload, OWN) is passes, name
            for label in ("disabled", None, ""):
                assert channel.passes(label, payload, OWN), "without the label all of it passes"
    assert not channel.passes("mention-only", None, OWN), "what cannot be read names nobody"
    assert channel.passes("disabled", None, OWN)


@pytest.fixture
def calls(world: World) -> Calls:
    return calls_in(world)


@pytest.mark.requirement("AUN-15", "AUN-16", "AUN-17")
async def test_what_is_held_back_from_a_model_is_in_the_conversation_all_the_same(
    world: World, calls: Calls
) -> None:
    """Plain and encrypted, before and after the label changes; no position moves, none is owed."""
    tina = Outsider(calls.parties.id, calls.parties.tina)
    tina.new_key()
    group, stock = await calls.group("tina", "stock", "alice"), calls.parties.stock
    mentions = {"own": [{"aid": stock}], "all": [{"scope": "all"}], "none": []}
    sent: dict[str, str] = {}
    for mode in ("disabled", "mention-only"):
        await calls("tina", "group.set_settings", group_id=group, settings={"mention_mode": mode})
        for who, said in mentions.items():
            for is_sealed in (False, True):
                name = f"{mode}-{who}-{'sealed' if is_sealed else 'plain'}"
                payload = {**outsiders.text(name), "mentions": said}
                if is_sealed:
                    rows = await calls(tina.caller(), "group.v2.bootstrap", group_id=group)
                    payload = tina.sealed_to_group(rows, payload, message_id=name)
                given = {"group_id": group, "message_id": name, "payload": payload}
                told = await calls(tina.caller(), "group.send", **given)
                sent[name] = told["mention_mode"]

    found = await calls("stock", "group.v2.pull", group_id=group, after_seq=0, limit=200)
    at_console = await calls("alice", "group.v2.pull", group_id=group, after_seq=0, limit=200)

    rows = {row["message_id"]: row for row in found["messages"]}
    assert set(rows) == set(sent) == {row["message_id"] for row in at_console["messages"]}
    passed = {
        name
        for name, row in rows.items()
        if channel.passes(row["mention_mode"], row["payload"], stock)
    }
    assert set(rows) - passed == {"mention-only-none-sealed", "mention-only-none-plain"}
    assert all(rows[name]["mention_mode"] == label for name, label in sent.items())
    assert (await calls("stock", "group.read_state"))["states"] == []
    assert (await calls("tina", "group.get_info", group_id=group))["message_seq"] == len(sent)
    assert calls.parties.made[stock].kind == IdentityKind.AGENT
