"""People: found, invited, changed, disabled and explained, by whoever may and nobody else."""

import re
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, event
from sqlmodel import select

from app.identity import links, orgs, roles, sessions, users
from app.identity.models import BrowserSession, User, UserStatus
from app.kernel import db
from app.kernel.db import Work
from tests.people import World


def named(page: str) -> list[str]:
    """The names in the rows of the list, in order."""
    return re.findall(r'<th scope="row"><a href="/admin/users/\w+" dir="auto">([^<]+)</a>', page)


def fill(work: Work, world: World, many: int) -> None:
    sales = orgs.one(work.session, world.acme.id, world.acme.orgs["sales"].id)
    for number in range(many):
        users.create(work, None, sales, login=f"p{number:03}", display_name=f"Person {number:03}")


def next_address(page: str) -> str:
    found = re.search(r'rel="next" href="([^"]+)"', page)
    return found[1].replace("&amp;", "&") if found else ""


def previous_address(page: str) -> str:
    found = re.search(r'rel="prev" href="([^"]+)"', page)
    return found[1].replace("&amp;", "&") if found else ""


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("ALICE", ["Alice Wang 王爱丽"]),
        ("爱", ["Alice Wang 王爱丽"]),
        ("博", ["陈博 Bob Chen"]),
        ("\uff22\uff4f\uff42", ["陈博 Bob Chen"]),  # full width
        ("chen bob", ["陈博 Bob Chen"]),
        ("garc\u00eda", ["Inés García"]),
        ("garci\u0301a", ["Inés García"]),  # decomposed
        ("100%_x", []),
    ],
)
async def test_people_are_found_by_any_part_of_their_names(
    world: World, typed: str, found: list[str]
) -> None:
    page = await world.client(world.acme["ada"]).get("/admin/users", params={"q": typed})

    assert page.status_code == 200
    assert named(page.text) == found


async def test_filters_narrow_and_show_themselves(world: World) -> None:
    ada = world.client(world.acme["ada"])
    shanghai = world.acme.orgs["shanghai"].id

    below = await ada.get("/admin/users", params={"org": shanghai})
    disabled = await ada.get("/admin/users", params={"status": "disabled"})
    auditor = db.read_now(roles.by_code, world.acme.id, "auditor")
    assert auditor is not None
    holding = await ada.get("/admin/users", params={"role": auditor.id})

    assert named(below.text) == ["Alice Wang 王爱丽", "陈博 Bob Chen"]
    assert named(disabled.text) == ["Dora Disabled"]
    assert named(holding.text) == ["Axel Berg"]
    assert 'class="chip"' in holding.text


async def test_every_page_is_reached_once_forwards_and_backwards(world: World) -> None:
    db.transact_now(fill, world, 130)
    ada = world.client(world.acme["ada"])

    seen, address, pages = [], "/admin/users?sort=-name", []
    while address:
        page = (await ada.get(address)).text
        pages.append(named(page))
        seen += named(page)
        last, address = address, next_address(page)
    back = (await ada.get(previous_address((await ada.get(last)).text))).text

    assert len(seen) == 137 == len(set(seen))
    assert [len(page) for page in pages] == [50, 50, 37]
    assert named(back) == pages[1]


@pytest.mark.requirement("SEC-T34")
@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        "....",
        "W10",
        "bnVsbA",
        "WyJuIiwxLDJd",
        "WyJuIl0",
        "WyJ4IiwiYSIsImIiXQ",
        "%00",
        "A" * 1999,
    ],
)
async def test_a_cursor_that_makes_no_sense_is_the_first_page(world: World, cursor: str) -> None:
    ada = world.client(world.acme["ada"])

    page = await ada.get("/admin/users", params={"after": cursor})

    assert page.status_code == 200
    assert named(page.text)[0] == "Ada Lin"


@pytest.mark.requirement("SEC-T34")
@pytest.mark.parametrize(
    "query",
    [
        {"sort": "password"},
        {"sort": "name; DROP TABLE user"},
        {"status": "active' OR '1'='1"},
        {"org": "' OR 1=1 --"},
        {"role": "\x00"},
        {"after": "A" * 3000},
    ],
)
async def test_only_listed_sorts_and_filters_are_taken(world: World, query: dict[str, str]) -> None:
    page = await world.client(world.acme["ada"]).get("/admin/users", params=query)

    assert page.status_code == 422


async def test_a_list_is_four_statements_whatever_its_length(world: World) -> None:
    db.transact_now(fill, world, 60)
    ada = world.client(world.acme["ada"])
    await ada.get("/admin/users")
    counts = []
    for address in ("/admin/features", "/admin/users"):
        said: list[str] = []

        def note(_c: Any, _u: Any, statement: str, *_: Any, said: list[str] = said) -> None:
            said.append(statement)

        event.listen(Engine, "before_cursor_execute", note)
        await ada.get(address)
        event.remove(Engine, "before_cursor_execute", note)
        counts.append(len([one for one in said if one.lstrip().startswith("SELECT")]))

    base = counts[0] - 2  # the page of features asks twice for itself
    assert counts[1] - base <= 5  # may they at all, rows with their number, roles, two filters


async def test_people_see_whom_their_permission_reaches(world: World) -> None:
    world.give(
        world.acme["bob"],
        "lead",
        world.acme.orgs["shanghai"],
        grants={"identity.user.read": "org_and_below"},
    )

    page = await world.client(world.acme["bob"]).get("/admin/users")
    own = await world.client(world.acme["alice"]).get("/admin/users")

    assert named(page.text) == ["Alice Wang 王爱丽", "陈博 Bob Chen"]
    assert named(own.text) == ["Alice Wang 王爱丽"]


async def test_an_invitation_shows_its_link_once(world: World) -> None:
    ada = world.client(world.acme["ada"])
    member = db.read_now(roles.by_code, world.acme.id, "member")
    assert member is not None

    made = await ada.post(
        "/admin/users",
        data={
            "display_name": "Nina 倪娜",
            "login": "NINA",
            "email": "nina@acme.example",
            "org_id": world.acme.orgs["beijing"].id,
            "role_id": member.id,
        },
    )

    assert made.status_code == 201
    found = re.search(r"/invite/([\w.-]+)<", made.text)
    assert found, "the link"
    opened = db.read_now(links.read, found[1])
    assert (opened.user.login, opened.user.status) == ("nina", UserStatus.INVITED)
    later = await ada.get(f"/admin/users/{opened.user.id}")
    assert found[1] not in later.text
    assert "成员" in (await ada.get("/admin/users", params={"q": "倪"}, headers=CHINESE)).text


CHINESE = {"Accept-Language": "zh-CN"}


async def test_what_is_wrong_is_said_at_the_field_and_nothing_typed_is_lost(world: World) -> None:
    ada = world.client(world.acme["ada"])
    typed = {
        "display_name": "An <b>odd</b> name",
        "login": "alice",
        "email": "no address",
        "org_id": world.acme.root.id,
    }

    first = await ada.post("/admin/users", data=typed)
    second = await ada.post("/admin/users", data=typed | {"email": "a@acme.example"})

    assert first.status_code == second.status_code == 422
    assert 'id="field-email-error"' in first.text
    assert 'id="field-login-error"' in second.text
    assert "Somebody else has this login." in second.text
    assert "An &lt;b&gt;odd&lt;/b&gt; name" in second.text
    assert f'<option value="{world.acme.root.id}" selected>' in second.text


async def test_a_character_that_cannot_be_stored_is_said_at_its_field(world: World) -> None:
    ada = world.client(world.acme["ada"])
    typed = {"display_name": "a\0b", "login": "fine", "org_id": world.acme.root.id}

    answer = await ada.post("/admin/users", data=typed)
    searched = await ada.get("/admin/users", params={"q": "a\0b"})
    explained = await ada.get(
        f"/admin/users/{world.acme['alice'].id}/explain", params={"permission": "a\0b"}
    )

    assert answer.status_code == 422
    assert 'id="field-display_name-error"' in answer.text
    assert (searched.status_code, explained.status_code) == (200, 422)


@pytest.mark.requirement("SEC-38")
@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("/admin/users", {"display_name": "x", "login": "x", "org_id": "{root}"}),
        ("/admin/users/{alice}", {"display_name": "x", "org_id": "{root}", "version": "1"}),
        ("/admin/users/{alice}/deactivation", {}),
        ("/admin/users/{alice}/link", {}),
        ("/admin/users/{alice}/roles", {"role_id": "{member}", "org_id": "{root}"}),
        ("/admin/roles", {"name": "x", "code": "xx"}),
        ("/admin/agents", {"name": "x", "code": "xx", "admin_user_id": "{ada}"}),
        ("/admin/agents/{stock}/deactivation", {}),
        ("/admin/clients", {"name": "x", "redirect_uris": "https://a.example/cb"}),
    ],
)
async def test_an_old_sign_in_changes_nothing(
    world: World, path: str, data: dict[str, str]
) -> None:
    member = db.read_now(roles.by_code, world.acme.id, "member")
    assert member is not None
    known = {
        "root": world.acme.root.id,
        "alice": world.acme["alice"].id,
        "ada": world.acme["ada"].id,
        "stock": world.acme.agents["stock"].id,
        "member": member.id,
    }
    stale = world.client(world.acme["ada"], signed_in=timedelta(minutes=6))
    filled = {name: value.format(**known) for name, value in data.items()}

    answer = await stale.post(path.format(**known), data=filled)

    assert answer.status_code in {303, 401}
    assert "/admin/" not in answer.headers.get("location", "").split("?")[0]
    assert world.user(world.acme["alice"]).status == UserStatus.ACTIVE
    assert db.read_now(users.by_login, world.acme.id, "x") is None
    assert db.read_now(roles.by_code, world.acme.id, "xx") is None


async def test_two_who_edit_at_once_lose_nothing(world: World) -> None:
    ada, olga = world.client(world.acme["ada"]), world.client(world.acme["olga"])
    path = f"/admin/users/{world.acme['alice'].id}"
    fields = {"org_id": world.acme["alice"].org_id, "version": "1", "email": ""}

    first = await ada.post(path, data=fields | {"display_name": "Alice A."})
    second = await olga.post(path, data=fields | {"display_name": "Alice O."})

    assert first.status_code == 303
    assert second.status_code == 422
    assert "Alice A." in second.text, "what the other saved"
    assert 'value="Alice O."' in second.text, "what was typed"
    assert 'name="version" value="2"' in second.text
    again = await olga.post(path, data=fields | {"display_name": "Alice O.", "version": "2"})
    assert again.status_code == 303
    assert world.user(world.acme["alice"]).display_name == "Alice O."


@pytest.mark.requirement("SEC-31")
async def test_disabling_says_what_stops_and_stops_it(world: World) -> None:
    alice, ada = world.client(world.acme["alice"]), world.client(world.acme["ada"])
    path = f"/admin/users/{world.acme['alice'].id}"
    assert (await alice.get(path)).status_code == 200

    asked = await ada.get(f"{path}/deactivation")
    done = await ada.post(f"{path}/deactivation")

    assert "One open session ends." in asked.text
    assert "Stock" in asked.text
    assert done.status_code == 303
    assert (await alice.get(path)).status_code in {303, 401}
    assert "Disabled" in (await ada.get(path)).text
    assert db.read_now(live_sessions, world.acme["alice"]) == 0


def live_sessions(session: Any, user: User) -> int:
    query = select(BrowserSession).where(
        BrowserSession.tenant_id == user.tenant_id, BrowserSession.user_id == user.id
    )
    return len([row for row in session.exec(query).all() if row.revoked_at is None])


@pytest.mark.requirement("SEC-33")
async def test_enabling_brings_nothing_back_that_ended(world: World) -> None:
    alice, ada = world.client(world.acme["alice"]), world.client(world.acme["ada"])
    path = f"/admin/users/{world.acme['alice'].id}"
    await alice.get(path)
    await ada.post(f"{path}/deactivation")

    done = await ada.post(f"{path}/activation")
    again = await ada.post(f"{path}/activation")

    assert done.status_code == 303
    assert again.status_code == 409
    assert world.user(world.acme["alice"]).status == UserStatus.ACTIVE
    assert (await alice.get(path)).status_code in {303, 401}, "the old session stays ended"


@pytest.mark.requirement("SEC-10")
async def test_the_last_owner_stays_and_the_page_says_why(world: World) -> None:
    path = f"/admin/users/{world.acme['olga'].id}"

    answer = await world.client(world.acme["ada"]).post(f"{path}/deactivation")

    assert answer.status_code == 409
    assert "This is the last active owner." in answer.text
    assert world.user(world.acme["olga"]).status == UserStatus.ACTIVE


async def test_a_link_to_an_account_that_may_more_is_not_handed_out(world: World) -> None:
    ada = world.client(world.acme["ada"])

    refused = await ada.post(f"/admin/users/{world.acme['olga'].id}/link")
    made = await ada.post(f"/admin/users/{world.acme['alice'].id}/link")

    assert refused.status_code == 409
    assert "/reset/" not in refused.text
    assert made.status_code == 201
    assert "/reset/" in made.text


async def test_all_sessions_of_a_person_end_at_once(world: World) -> None:
    ada = world.client(world.acme["ada"])
    browsers = [world.client(world.acme["alice"]) for _ in range(2)]
    path = f"/admin/users/{world.acme['alice'].id}"

    await ada.post(f"{path}/sign-out")

    assert [(await browser.get(path)).status_code for browser in browsers] == [303, 303]
    assert db.read_now(sessions.of_user, world.acme.id, world.acme["alice"].id) == []
    assert (await ada.get(path)).status_code == 200


async def test_whoever_may_not_is_told_so(world: World) -> None:
    alice = world.client(world.acme["alice"])

    answer = await alice.post(f"/admin/users/{world.acme['bob'].id}/deactivation")

    assert answer.status_code == 403
    assert world.user(world.acme["bob"]).status == UserStatus.ACTIVE
    assert "/admin/users" not in (await alice.get("/settings")).text, "no entry either"
