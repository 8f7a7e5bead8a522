"""Confirming who one is, without losing the page or the form one was at (SEC-38)."""

import re
from datetime import timedelta
from html import unescape

import pytest
from httpx2 import AsyncClient, Response

from app.console import held
from app.console.held import Held
from app.identity import cookies, sessions
from app.kernel import db
from tests.clock import Clock
from tests.people import World
from tests.signing_in import PASSWORD, entries, give_password, sign_in

HOUR = timedelta(hours=1)


def fields(page: Response) -> dict[str, str]:
    """The hidden fields of a page's forms."""
    found = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', page.text, re.DOTALL)
    return {name: unescape(value) for name, value in found if name != "back"}  # of the languages


@pytest.mark.requirement("SEC-38")
async def test_a_page_that_asks_again_comes_after_the_password(world: World) -> None:
    alice = world.acme["alice"]
    give_password(alice)
    async with world.client(alice, signed_in=timedelta(minutes=5, seconds=1)) as browser:
        asked = await browser.get("/settings/password")
        assert asked.headers["location"] == "/step-up?next=%2Fsettings%2Fpassword"
        page = await browser.get(asked.headers["location"])
        old = browser.cookies[cookies.session_name()]
        wrong = await browser.post("/step-up", data={**fields(page), "password": "not mine at all"})
        assert (wrong.status_code, "This is not your password." in wrong.text) == (422, True)

        right = await browser.post("/step-up", data={**fields(page), "password": PASSWORD})

        assert (right.status_code, right.headers["location"]) == (303, "/settings/password")
        assert browser.cookies[cookies.session_name()] != old
        assert db.read_now(sessions.find, old) is None
        assert (await browser.get("/settings/password")).status_code == 200
    outcomes = [entry.outcome for entry in entries(world.acme.id, "identity.session.step_up")]
    assert outcomes == ["refused", "done"]


@pytest.mark.requirement("SEC-38")
async def test_a_sign_in_of_five_minutes_ago_is_fresh(clock: Clock, world: World) -> None:
    async with world.client(world.acme["alice"]) as browser:
        clock.move(minutes=5)
        assert (await browser.get("/settings/password")).status_code == 200
        clock.move(seconds=1)
        assert (await browser.get("/settings/password")).status_code == 303


@pytest.mark.requirement("SEC-38", "UI-25")
async def test_a_form_is_kept_and_sent_again_by_a_click_but_never_its_secrets(
    world: World,
) -> None:
    alice = world.acme["alice"]
    give_password(alice)
    typed = {"label": 'A "quoted"\nlabel 名', "credential": "SECRET-1", "password": "SECRET-2"}
    async with world.client(alice, signed_in=HOUR) as browser:
        asked = await browser.post("/settings/passkeys", data=typed)
        assert (asked.status_code, "What you filled in is kept." in asked.text) == (401, True)
        assert "SECRET" not in asked.text

        kept = await browser.post("/step-up", data={**fields(asked), "password": PASSWORD})

        assert kept.status_code == 200
        assert 'action="/settings/passkeys"' in kept.text
        again = fields(kept)
        assert again.pop("_csrf") == browser.headers["X-CSRF-Token"]
        assert {name: value for name, value in again.items() if name == "label"} == {
            "label": typed["label"]
        }
        assert "credential" not in again
        assert "password" not in again
        sent = await browser.post("/settings/passkeys", data=again)
        assert (sent.status_code, "quoted" in sent.text) == (422, True)


@pytest.mark.requirement("SEC-37", "UI-25")
async def test_a_form_sent_after_the_session_ended_is_kept_too(world: World) -> None:
    alice = world.acme["alice"]
    give_password(alice)
    async with world.client(alice) as browser:
        session = {"display_name": "Alice Neu", "time_zone": "Asia/Tokyo", "theme": "dark"}
        token = browser.headers.pop("X-CSRF-Token")
        browser.cookies.clear()
        late = await browser.post("/settings", data={**session, "_csrf": token})
        assert late.status_code == 401
        assert "What you filled in is kept" in late.text

        page = fields(late)
        entered = await browser.post(
            "/sign-in",
            data={**page, "tenant": "acme", "login": "alice", "password": PASSWORD},
        )
        assert entered.status_code == 200
        again = fields(entered)
        assert (await browser.post("/settings", data=again)).status_code == 303

    changed = world.user(alice)
    assert (changed.display_name, changed.time_zone) == ("Alice Neu", "Asia/Tokyo")


@pytest.mark.requirement("SEC-T10", "SEC-37")
async def test_a_form_of_another_site_is_never_kept(world: World) -> None:
    async with world.anonymous() as browser:
        for site in ("cross-site", "same-site", "none"):
            refused = await browser.post(
                "/settings", data={"display_name": "Mallory"}, headers={"Sec-Fetch-Site": site}
            )
            assert refused.status_code == 401
            assert 'name="held"' not in refused.text
            assert "Mallory" not in refused.text


@pytest.mark.requirement("SEC-38")
async def test_guessing_in_somebodys_session_gets_slow_there_alone(
    clock: Clock, world: World
) -> None:
    alice = world.acme["alice"]
    give_password(alice)
    async with world.client(alice, signed_in=HOUR) as thief, world.client(alice) as own:
        statuses = [await guess(thief, "not it") for _ in range(6)]
        assert statuses == [422] * 5 + [429]
        clock.move(minutes=6)
        assert await guess(own, PASSWORD) == 303
        async with world.anonymous() as browser:
            assert (await sign_in(browser, "alice")).status_code == 303


async def guess(browser: AsyncClient, password: str) -> int:
    return (await browser.post("/step-up", data={"password": password})).status_code


@pytest.mark.requirement("SEC-38")
async def test_nobody_confirms_without_a_session(world: World) -> None:
    async with world.anonymous() as browser:
        asked = await browser.get("/step-up?next=/settings")
        assert asked.status_code == 303
        assert asked.headers["location"].startswith("/sign-in?next=%2Fstep-up")


async def test_a_fresh_person_goes_on_at_once(world: World) -> None:
    async with world.client(world.acme["alice"]) as browser:
        asked = await browser.get("/step-up?next=/settings/password")
        assert asked.headers["location"] == "/settings/password"


@pytest.mark.requirement("UI-25")
async def test_another_tab_may_confirm_for_a_form_that_waits(world: World) -> None:
    alice = world.acme["alice"]
    give_password(alice)
    async with world.client(alice, signed_in=HOUR) as browser:
        asked = await browser.post("/settings/passkeys", data={"label": "Kept"})
        waiting = fields(asked)
        early = await browser.post("/step-up/elsewhere", data=waiting)
        assert early.status_code == 422
        await browser.post("/step-up", data={"password": PASSWORD})

        on = await browser.post("/step-up/elsewhere", data=waiting)

        assert (on.status_code, fields(on)["label"]) == (200, "Kept")


def test_a_held_form_opens_where_it_was_kept_for_ten_minutes(clock: Clock, world: World) -> None:
    kept = Held("/settings?x=1", [("a", "1"), ("a", "2"), ("名", "值\n")])
    text = held.seal(kept, "session-1")

    assert held.opened(text, "session-1") == kept
    assert held.opened(text, "session-2") is None
    assert held.opened(text[:-4] + "AAAA", "session-1") is None
    for nonsense in ("", "x", "é", "A" * 100, "A" * 50_000):
        assert held.opened(nonsense, "session-1") is None
    clock.move(minutes=10, seconds=1)
    assert held.opened(text, "session-1") is None
    assert held.seal(Held("/", [("a", "x" * 60_000)]), "s") == "", "too large to be a field"
