"""The pages of one-time links: an invitation and a reset (SEC-40)."""

import pytest
from httpx2 import AsyncClient

from app.identity import cookies, links, new_password, sessions, users
from app.identity.models import LinkPurpose, User, UserStatus
from app.kernel import db
from app.kernel.db import Work
from tests.people import World
from tests.signing_in import PASSWORD, entries, give_password, send, sign_in

BOTH = {"password": PASSWORD, "again": PASSWORD}


def link(user: User, purpose: LinkPurpose) -> str:
    def make(work: Work) -> str:
        return links.make(work, None, users.one(work.session, user.tenant_id, user.id), purpose)

    return db.transact_now(make)


def who(browser: AsyncClient) -> str | None:
    secret = browser.cookies.get(cookies.session_name())
    signed = db.read_now(sessions.find, secret) if secret else None
    return signed.user.login if signed else None


@pytest.mark.requirement("SEC-40", "UI-25")
async def test_who_is_invited_chooses_a_password_and_is_in(world: World) -> None:
    ines = world.acme["ines"]
    path = f"/invite/{link(ines, LinkPurpose.INVITE)}"
    async with world.anonymous() as browser:
        page = await browser.get(path)
        assert "Welcome, Inés García" in page.text
        assert 'value="acme"' in page.text, "what one has to know to sign in elsewhere"
        assert "UTC+00:00" in page.text, "the zone of the end"
        assert page.headers["cache-control"] == "no-store"
        accepted = await send(browser, path, **BOTH)

        assert (accepted.status_code, accepted.headers["location"]) == (303, "/welcome")
        assert who(browser) == "ines"
        assert (await browser.get(path)).status_code == 404
        assert (await browser.post(path, data=BOTH)).status_code in {403, 404}
    assert world.user(ines).status == UserStatus.ACTIVE
    async with world.anonymous() as other:
        assert (await sign_in(other, "ines")).status_code == 303


@pytest.mark.requirement("SEC-40", "SEC-9")
async def test_a_reset_ends_every_session_and_the_old_password(world: World) -> None:
    alice = world.acme["alice"]
    give_password(alice)
    epoch = world.user(alice).authz_epoch
    path = f"/reset/{link(alice, LinkPurpose.RESET)}"
    new = "an entirely different one"
    async with world.client(alice) as signed_in, world.anonymous() as browser:
        done = await send(browser, path, password=new, again=new)
        assert (done.status_code, done.headers["location"]) == (303, "/sign-in?tenant=acme")
        assert who(browser) is None
        assert (await signed_in.get("/settings")).status_code == 303

        assert (await sign_in(browser, "alice", PASSWORD)).status_code == 422
        assert (await sign_in(browser, "alice", new)).status_code == 303
    assert world.user(alice).authz_epoch == epoch + 1
    assert len(entries(world.acme.id, "identity.password.reset")) == 1


@pytest.mark.requirement("SEC-40")
@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"password": "short", "again": "short"}, "Use at least 10 characters."),
        ({"password": PASSWORD, "again": PASSWORD + "x"}, "The two passwords differ."),
        ({"password": "alice wang 王爱丽", "again": "alice wang 王爱丽"}, "Do not use your name"),
        ({"password": PASSWORD}, "Fill this in."),
    ],
)
async def test_a_password_that_does_not_do_uses_nothing_up(
    world: World, fields: dict[str, str], says: str
) -> None:
    path = f"/reset/{link(world.acme['alice'], LinkPurpose.RESET)}"
    async with world.anonymous() as browser:
        refused = await send(browser, path, **fields)
        assert (refused.status_code, says in refused.text) == (422, True)
        assert PASSWORD not in refused.text

        assert (await send(browser, path, **BOTH)).status_code == 303


@pytest.mark.requirement("SEC-40")
async def test_a_link_opens_only_what_it_was_made_for(world: World) -> None:
    reset = link(world.acme["alice"], LinkPurpose.RESET)
    invitation = link(world.acme["ines"], LinkPurpose.INVITE)
    async with world.anonymous() as browser:
        for path in (f"/invite/{reset}", f"/reset/{invitation}", "/reset/x", "/invite/x.y"):
            assert (await browser.get(path)).status_code == 404, path
    for act, secret in ((new_password.reset, invitation), (new_password.accept_invitation, reset)):
        with pytest.raises(Exception, match="link_invalid"):
            db.transact_now(act, secret, "x")
