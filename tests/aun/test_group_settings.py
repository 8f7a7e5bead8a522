"""Settings of groups: who writes them, what they may be, and how clients agree about them."""

from typing import Any

import pytest

from tests.aun.group_calls import Calls, calls_in
from tests.people import World

pytestmark = pytest.mark.anyio


@pytest.fixture
def calls(world: World) -> Calls:
    return calls_in(world)


async def test_settings_have_defaults_and_keep_what_is_written(calls: Calls) -> None:
    group = await calls.group("tina", "otto")
    before = await calls("otto", "group.get_settings", group_id=group)
    assert {each["key"]: each["value"] for each in before["settings"]} == {
        "name": "Team",
        "description": "",
        "visibility": "private",
        "join.mode": "approval",
        "mention_mode": "disabled",
        "rules.content": "",
        "announcement.content": "",
        "join.question": "",
        "join.auto_approve_patterns": [],
        "join.max_pending": 100,
    }

    written = {
        "name": "Renamed",
        "rules.content": "Be kind",
        "rules.attachments": [{"url": "https://example.org/a"}],
        "join.mode": "open",
        "join.auto_approve_patterns": ["*-sales.example.org", r"^bo.*\.example\.org$"],
        "minutes.content": "Of the meeting",
        "mention_mode": "mention-only",
    }
    told = await calls("tina", "group.set_settings", group_id=group, settings=written)
    found = await calls(
        "otto", "group.get_settings", group_id=group, keys=[*written, "nothing.content"]
    )

    assert (told["group_id"], set(told["updated_keys"])) == (group, set(written))
    assert {each["key"]: each["value"] for each in found["settings"]} == written
    rules = next(each for each in found["settings"] if each["key"] == "rules.content")
    assert rules["updated_by"] == calls.parties.tina
    assert (await calls("otto", "group.get_info", group_id=group))["name"] == "Renamed"


async def test_old_clients_name_the_mention_mode_otherwise(calls: Calls) -> None:
    group = await calls.group("tina")
    for old, new in {"mention": "mention-only", "broadcast": "disabled"}.items():
        await calls("tina", "group.set_settings", group_id=group, settings={"dispatch_mode": old})
        for key in ("mention_mode", "dispatch_mode"):
            found = await calls("tina", "group.get_settings", group_id=group, keys=[key])
            assert [(each["key"], each["value"]) for each in found["settings"]] == [
                ("mention_mode", new)
            ]
    both = {"mention_mode": "mention-only", "dispatch_mode": "broadcast"}
    await calls("tina", "group.set_settings", group_id=group, settings=both)
    assert (await calls("tina", "group.get_info", group_id=group))["mention_mode"] == "mention-only"


async def test_what_will_not_do_is_refused_whole(calls: Calls) -> None:
    group = await calls.group("tina", "otto")
    bads: list[dict[str, Any]] = [
        {"unknown": 1},
        {"join.mode": "sometimes"},
        {"mention_mode": "always"},
        {"mention_mode": None},
        {"join.max_pending": 101},
        {"join.max_pending": True},
        {"join.auto_approve_patterns": "x"},
        {"join.auto_approve_patterns": ["(a+)+$"]},
        {"join.auto_approve_patterns": ["^(a|a)*$"]},
        {"join.auto_approve_patterns": ["x" * 201]},
        {"join.auto_approve_patterns": [7]},
        {"name": "  "},
        {"name": "Te\u200bam"},
        {"rules.content": 7},
        {"rules.attachments": {}},
        {"a.b.content": "x"},
        {"group.index": "x"},
        {},
    ]
    for bad in bads:
        given = {"announcement.content": "first", **bad} if bad else {}
        refused = await calls.refused("tina", "group.set_settings", group_id=group, settings=given)
        assert refused.code == -32602, bad
    found = await calls("tina", "group.get_settings", group_id=group, keys=["announcement.content"])
    assert found["settings"][0]["value"] == ""
    good = {"settings": {"rules.content": "x"}}
    assert (
        await calls.refused("otto", "group.set_settings", group_id=group, **good)
    ).code == -32004


async def test_two_writers_of_the_signed_index_do_not_overwrite_each_other(calls: Calls) -> None:
    group = await calls.group("tina")

    def index(etag: str) -> dict[str, object]:
        first = f'{{"type":"index_meta","etag":"{etag}","schema":"aun.group.index.v1"}}'
        return {"group.index": {"body": f"{first}\n"}, "rules.content": etag}

    first = await calls(
        "tina", "group.set_settings", group_id=group, settings=index("e1"), expected_index_etag=""
    )
    late = await calls.refused(
        "tina", "group.set_settings", group_id=group, settings=index("e2"), expected_index_etag=""
    )
    assert (late.code, "etag conflict" in late.text) == (-32009, True)
    second = await calls(
        "tina", "group.set_settings", group_id=group, settings=index("e3"), expected_index_etag="e1"
    )

    assert [told["_meta"]["group_indexes"][group]["etag"] for told in (first, second)] == [
        "e1",
        "e3",
    ]
    found = await calls("tina", "group.get_settings", group_id=group, keys=["rules.content"])
    assert found["settings"][0]["value"] == "e3"
    assert found["_meta"]["group_indexes"][group]["etag"] == "e3"
