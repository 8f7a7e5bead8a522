"""The ways in of one's own account: the password, passkeys, accounts elsewhere (SEC-38)."""

from datetime import timedelta

import pytest

from app.identity import sessions
from app.kernel import db
from tests.people import World
from tests.signing_in import PASSWORD, entries, give_password, sign_in

NEW = "an entirely different one"


@pytest.mark.requirement("SEC-40", "SEC-38")
async def test_a_new_password_ends_the_other_sessions_and_the_old_password(world: World) -> None:
    alice = world.acme["alice"]
    give_password(alice)
    async with world.client(alice) as here, world.client(alice) as there:
        changed = await here.post("/settings/password", data={"password": NEW, "again": NEW})
        assert (changed.status_code, changed.headers["location"]) == (303, "/settings/security")
        assert (await there.get("/settings")).status_code == 303
        assert (await here.get("/settings")).status_code == 200
    async with world.anonymous() as browser:
        assert (await sign_in(browser, "alice", PASSWORD)).status_code == 422
        assert (await sign_in(browser, "alice", NEW)).status_code == 303
    [entry] = entries(world.acme.id, "identity.password.change")
    assert entry.user_id == alice.id


STALE = [
    ("GET", "/settings/password"),
    ("POST", "/settings/password"),
    ("GET", "/settings/passkeys/new"),
    ("POST", "/settings/passkeys"),
    ("POST", "/settings/passkeys/options"),
    ("POST", "/settings/passkeys/x"),
    ("POST", "/settings/passkeys/x/removal"),
    ("POST", "/settings/logins/x/link"),
    ("POST", "/settings/logins/x/removal"),
]


@pytest.mark.requirement("SEC-38")
async def test_whatever_opens_the_account_asks_again_after_five_minutes(world: World) -> None:
    alice = world.acme["alice"]
    give_password(alice)
    form = {"password": NEW, "again": NEW, "label": "x"}
    async with world.client(alice, signed_in=timedelta(minutes=6)) as stale:
        for method, path in STALE:
            answer = await stale.request(method, path, data=form if method == "POST" else None)
            assert answer.status_code == (303 if method == "GET" else 401), path
            assert NEW not in answer.text
    async with world.anonymous() as browser:
        assert (await sign_in(browser, "alice")).status_code == 303


@pytest.mark.requirement("UI-31")
async def test_the_page_says_what_would_be_here(world: World) -> None:
    async with world.client(world.acme["alice"]) as browser:
        page = await browser.get("/settings/security")

    assert "No passkey yet" in page.text
    assert "No password is set." in page.text
    assert "Accounts elsewhere" not in page.text, "no provider is configured"
    assert db.read_now(sessions.of_user, world.acme.id, world.acme["alice"].id)
