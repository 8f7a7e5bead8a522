"""Versions of commands in the console: read, changed in a draft, published, retired, restored."""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from app.commands import published, publishing
from app.commands.definition import Approvers, Risk, Rule, Rules, Text
from app.commands.publishing import Standing
from app.commands.stored import StoredDefinition
from app.kernel import db
from app.kernel.db import Work
from tests.commands.declaring import DECIDE, EXTRA, SEE, command, installed, writing
from tests.people import World

CODE = "desk.ticket.note"
PATH = f"/admin/commands/{CODE}"


@pytest.fixture(autouse=True)
def desk(world: World) -> Iterator[None]:
    own = Rule(expr="size(input.subject) > 1", message=Text(en="Say more.", zh="请多写一点。"))
    with installed(
        command(),
        writing(rules=Rules(asserts=(own,)), tags=("desk",)),
        only=world.acme.id,
    ):
        yield


def standing(world: World) -> Standing:
    return db.read_now(publishing.one, world.acme.id, CODE)


def in_force(world: World) -> StoredDefinition | None:
    def current(work: Work) -> StoredDefinition | None:
        found = published.current(work.connection, world.acme.id, CODE)
        return found.definition if found else None

    return db.transact_now(current)


def filled(page: str) -> dict[str, Any]:
    """What the form of a page would send as it stands."""
    form = page[page.index('class="form wide-form"') :]
    data: dict[str, Any] = {}
    for tag in re.findall(r"<input [^>]*>", form):
        given = dict(re.findall(r'([a-z-]+)="([^"]*)"', tag))
        if given.get("type") != "checkbox" or " checked" in tag:
            data[given["name"]] = given.get("value", "")
    data |= dict(re.findall(r'<textarea id="[^"]*" name="(\w+)"[^>]*>\n([^<]*)<', form))
    for name, options in re.findall(
        r'<select id="[^"]*" name="(\w+)"[^>]*>(.*?)</select>', form, re.DOTALL
    ):
        chosen = re.search(r'value="([^"]*)" selected', options) or re.search(
            r'value="([^"]*)"', options
        )
        data[name] = chosen[1] if chosen else ""
    data.pop("_csrf", None)
    return data


async def draft(world: World, **changes: str) -> Any:
    ada = world.client(world.acme["ada"])
    data = filled((await ada.get(f"{PATH}/draft")).text)
    return await ada.post(f"{PATH}/draft", data={**data, **changes})


@pytest.mark.requirement("UI-25")
async def test_a_draft_is_written_compared_published_and_in_force(world: World) -> None:
    ada = world.client(world.acme["ada"])
    untouched = await draft(world)
    assert untouched.status_code == 303, "what the pack says can be saved as it stands"

    saved = await draft(
        world,
        name_en="Keep a note",
        name_zh="保留记录",
        risk="L3",
        people_only="true",
        feature=EXTRA.code,
        approvers=DECIDE.code,
        approval_ttl_s="600",
        tags="money， personal",
        rule_1_stage="cross_field",
        rule_1_expr="input.subject != 'x'",
        rule_1_en="Not x.",
        rule_1_zh="不能是 x。",
        sod_1_code="desk.ticket.list",
        sod_1_mode="audit",
    )
    page = await ada.get(PATH)
    asked = await ada.get(f"{PATH}/publication")
    expected = re.findall(r'name="expected" value="(\w+)"', asked.text)
    done = await ada.post(f"{PATH}/publication", data={"expected": expected[0]})
    beside = await ada.get(f"{PATH}/versions/2?with=1")
    now = in_force(world)

    assert (saved.status_code, done.status_code) == (303, 303)
    assert "Nothing keeps it from being published" in page.text
    assert "Keep a note" in asked.text
    assert now is not None
    assert now.display_name.en == "Keep a note"
    assert (now.risk, now.people_only, now.feature) == (Risk.L3, True, EXTRA.code)
    assert now.approvers == Approvers(permission=DECIDE.code)
    assert now.tags == ("desk", "money", "personal")
    assert [rule.expr for rule in now.rules.asserts] == ["size(input.subject) > 1"]
    assert [rule.message.zh for rule in now.rules.cross_field] == ["不能是 x。"]
    assert [(rule.conflicts_with, rule.mode) for rule in now.sod] == [("desk.ticket.list", "audit")]
    assert "保留记录" in beside.text
    assert "What differs" in beside.text
    again = filled((await ada.get(f"{PATH}/draft")).text)
    assert again["rule_1_expr"].replace("&#39;", "'") == "input.subject != 'x'"


async def test_what_keeps_a_draft_from_being_published_stands_at_its_field(world: World) -> None:
    ada = world.client(world.acme["ada"])
    await draft(
        world,
        hint_zh="Only English",
        rule_1_expr="input.subject ==",
        rule_1_en="No.",
        rule_1_zh="不行。",
        permission=SEE.code,
    )

    page, form = await ada.get(PATH), await ada.get(f"{PATH}/draft")
    refused = await ada.post(f"{PATH}/publication", data={"expected": ""})

    for field in ("hint_zh", "rule_1_expr", "permission"):
        assert f'id="field-{field}-error"' in form.text, field
    assert "does not compile" in page.text
    assert refused.status_code == 409
    assert "does not compile" in refused.text
    assert [row.version for row in standing(world).versions] == [1]


async def test_what_is_typed_wrongly_or_less_strict_than_the_pack_comes_back(world: World) -> None:
    wrong = {
        "risk": {"risk": "L0"},
        "approval_ttl_s": {"approval_ttl_s": "9"},
        "name_zh": {"name_zh": " "},
        "rule_1_expr": {"rule_1_en": "A message without its rule"},
        "sod_1_code": {"sod_1_code": "Not A Code"},
        "idempotent": {"idempotent": "true"},
    }
    for field, typed in wrong.items():
        answer = await draft(world, **typed)

        assert answer.status_code == 422, field
        if field != "idempotent":  # the form does not offer it
            assert f'id="field-{field}-error"' in answer.text
        assert standing(world).draft is None


async def test_two_who_edit_at_once_lose_nothing(world: World) -> None:
    ada = world.client(world.acme["ada"])
    first = filled((await ada.get(f"{PATH}/draft")).text)
    await draft(world, tags="theirs")

    second = await ada.post(f"{PATH}/draft", data={**first, "tags": "mine"})
    stale = await ada.post(f"{PATH}/publication", data={"expected": "0" * 64})

    assert second.status_code == 422
    assert "somebody changed it meanwhile" in second.text
    assert 'value="mine"' in second.text
    assert stale.status_code == 409
    assert [row.version for row in standing(world).versions] == [1]


async def test_a_draft_is_discarded(world: World) -> None:
    ada = world.client(world.acme["ada"])
    await draft(world, tags="x")
    asked = await ada.get(f"{PATH}/draft/removal")
    done = await ada.post(f"{PATH}/draft/removal")
    nothing = await ada.post(f"{PATH}/publication", data={})

    assert (asked.status_code, done.status_code, nothing.status_code) == (200, 303, 409)
    assert standing(world).draft is None


async def test_a_command_is_retired_and_restored(world: World) -> None:
    ada = world.client(world.acme["ada"])
    asked = await ada.get(f"{PATH}/retirement")
    retired = await ada.post(f"{PATH}/retirement")
    gone = in_force(world)
    page = await ada.get(PATH)
    again = await ada.post(f"{PATH}/retirement")
    offered = await ada.get(f"{PATH}/restoration")
    restored = await ada.post(f"{PATH}/restoration")

    assert [each.status_code for each in (asked, retired, again, offered, restored)] == [
        *(200, 303, 409, 200, 303)
    ]
    assert gone is None
    assert "Retired" in page.text
    assert "Ada Lin" in page.text
    assert in_force(world) is not None


async def test_the_list_says_what_is_in_force_and_what_was_changed_here(world: World) -> None:
    ada = world.client(world.acme["ada"])
    everything = await ada.get("/admin/commands")
    found = await ada.get("/admin/commands?q=TICKET.note")
    none = await ada.get("/admin/commands?q=nothing-of-this&state=draft")
    retired = await ada.get("/admin/commands?state=retired")

    assert "desk.ticket.list" in everything.text
    assert "desk.ticket.note" in found.text
    assert "desk.ticket.list" not in found.text
    assert "No command matches" in none.text
    assert "desk.ticket.note" not in retired.text
    assert "expense.report.create" in retired.text, "its pack is away in this test"


@pytest.mark.requirement("SEC-38")
async def test_who_may_read_and_who_has_proved_themselves_to_change(world: World) -> None:
    axel, alice = world.client(world.acme["axel"]), world.client(world.acme["alice"])
    tired = world.client(world.acme["ada"], signed_in=timedelta(minutes=6))

    read = await axel.get(PATH)
    assert read.status_code == 200
    assert "/retirement" not in read.text, "an auditor reads"
    assert (await axel.get(f"{PATH}/versions/1")).status_code == 200
    assert (await alice.get(PATH)).status_code == 403
    assert (await alice.get("/admin/commands")).status_code == 403
    for then in ("/draft", "/draft/removal", "/publication", "/retirement", "/restoration"):
        assert (await axel.post(f"{PATH}{then}")).status_code == 403, then
        asked = await tired.get(f"{PATH}{then}")
        assert (asked.status_code, "step-up" in asked.headers.get("location", "")) == (303, True)
        assert (await tired.post(f"{PATH}{then}")).status_code == 401, then
    assert in_force(world) is not None
    assert (await axel.get("/admin/commands/desk.ticket.never")).status_code == 404
    assert (await axel.get(f"{PATH}/versions/9")).status_code == 404
