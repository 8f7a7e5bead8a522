"""Signing out: here, of one browser, everywhere; never by a link or another site (SEC-37)."""

import pytest

from app.identity import sessions
from app.kernel import db
from tests.people import World


@pytest.mark.requirement("SEC-37", "SEC-P30")
async def test_signing_out_leads_to_the_sign_in_page_whether_one_was_in_or_not(
    world: World,
) -> None:
    async with world.client(world.acme["alice"]) as browser:
        first = await browser.post("/sign-out")
        again = await browser.post("/sign-out")

    assert [(answer.status_code, answer.headers["location"]) for answer in (first, again)] == [
        (303, "/sign-in"),
        (303, "/sign-in"),
    ]


@pytest.mark.requirement("SEC-T10", "SEC-37")
async def test_another_site_signs_nobody_out(world: World) -> None:
    alice = world.acme["alice"]
    async with world.client(alice) as browser:
        refused = await browser.post("/sign-out", headers={"Sec-Fetch-Site": "cross-site"})
        assert refused.status_code == 403
        assert (await browser.get("/sign-out")).status_code == 405
        del browser.headers["X-CSRF-Token"]
        assert (await browser.post("/sign-out")).status_code == 403
        assert (await browser.get("/settings")).status_code == 200


@pytest.mark.requirement("SEC-37")
async def test_sessions_are_listed_and_ended_one_by_one_or_all_at_once(world: World) -> None:
    alice = world.acme["alice"]
    async with world.client(alice) as here, world.client(alice) as there:
        page = await here.get("/settings/sessions")
        assert page.text.count('<tr id="session-') == 2
        assert page.text.count("This one") == 1

        assert (await here.post("/settings/sessions/others/end")).status_code == 303
        assert (await there.get("/settings")).status_code == 303
        assert (await here.get("/settings")).status_code == 200
    async with world.client(alice) as third, world.client(alice) as fourth:
        everywhere = await third.post("/settings/sessions/all/end")
        assert everywhere.headers["location"] == "/sign-in"
        assert (await fourth.get("/settings")).status_code == 303
    assert list(db.read_now(sessions.of_user, alice.tenant_id, alice.id)) == []


@pytest.mark.requirement("SEC-37")
async def test_a_session_of_somebody_else_does_not_exist(world: World) -> None:
    alice = world.acme["alice"]
    async with world.client(alice):
        [theirs] = db.read_now(sessions.of_user, alice.tenant_id, alice.id)
        for user in (world.acme["olga"], world.globex["gina"]):
            async with world.client(user) as other:
                refused = await other.post(f"/settings/sessions/{theirs.id}/end")
                assert refused.status_code == 404
        [still] = db.read_now(sessions.of_user, alice.tenant_id, alice.id)

    assert still.id == theirs.id
