"""The cookies of sign-in: what they are called, and what binds a form to its browser (SEC-35)."""

import pytest

from app.identity import cookies, csrf
from app.kernel import settings
from app.kernel.settings import Settings
from tests.people import World
from tests.signing_in import PASSWORD, give_password, hidden, send


@pytest.mark.requirement("SEC-37")
async def test_a_browser_that_refuses_secure_cookies_gets_plain_ones_when_the_operator_says_so(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_password(world.acme["alice"])
    monkeypatch.setattr(settings, "current", lambda: Settings(plain_cookie=True))
    async with world.anonymous() as browser:
        answer = await send(browser, "/sign-in", tenant="acme", login="alice", password=PASSWORD)
        names = [line.partition("=")[0] for line in answer.headers.get_list("set-cookie")]

    assert "sid" in names
    assert not any("Secure" in line for line in answer.headers.get_list("set-cookie"))


@pytest.mark.requirement("SEC-35")
async def test_a_form_before_a_session_takes_the_token_of_its_own_browser(world: World) -> None:
    give_password(world.acme["alice"])
    async with world.anonymous() as victim, world.anonymous() as attacker:
        await victim.get("/sign-in")
        stolen = hidden(await attacker.get("/sign-in"), "_csrf")
        fields = {"tenant": "acme", "login": "alice", "password": PASSWORD}
        for token in (stolen, "", "x", csrf.of_session("x")):
            refused = await victim.post("/sign-in", data={**fields, "_csrf": token})
            assert (refused.status_code, "csrf_token" in refused.text) == (403, True)

        own = hidden(await victim.get("/sign-in"), "_csrf")
        accepted = await victim.post("/sign-in", data={**fields, "_csrf": own})

    assert accepted.status_code == 303


@pytest.mark.requirement("SEC-35", "SEC-T24")
async def test_another_site_cannot_sign_anybody_in(world: World) -> None:
    give_password(world.acme["alice"])
    async with world.anonymous() as browser:
        own = hidden(await browser.get("/sign-in"), "_csrf")
        fields = {"_csrf": own, "tenant": "acme", "login": "alice", "password": PASSWORD}
        for site in ("cross-site", "same-site", "none"):
            refused = await browser.post("/sign-in", data=fields, headers={"Sec-Fetch-Site": site})
            assert (refused.status_code, "cross_site" in refused.text) == (403, True)

    assert cookies.session_name() not in browser.cookies
