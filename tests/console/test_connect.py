"""A person finds out how to connect a client, links one of theirs, and lets it go."""

import re
from datetime import timedelta

import pytest

from app.aun import linking
from app.aun.caller import Caller
from app.aun.models import IdentityKind
from app.kernel import db
from tests.aun import contact_rows
from tests.people import World

OTTO = "otto.assent.localhost"


@pytest.fixture
def otto(world: World) -> Caller:
    """A registered outside AID that is connected."""
    aid = db.transact_now(contact_rows.contact, world.acme.id, "otto")
    return Caller(world.acme.id, aid, IdentityKind.OUTSIDE, "phone")


async def test_the_page_leads_through_linking_and_ends_it(world: World, otto: Caller) -> None:
    alice = world.acme["alice"]
    async with world.client(alice) as browser:
        made = await browser.post("/connect/code")
        code = re.findall(r"\b[A-HJKMNP-Z2-9]{10}\b", made.text)[0]
        assert made.status_code == 201
        assert code not in (await browser.get("/connect")).text
        say(otto, code)
        assert OTTO in (await browser.get("/connect")).text
        assert OTTO in (await browser.get("/connect/confirmation")).text
        linked = await browser.post("/connect/confirmation", data={"aid": OTTO})
        assert linked.status_code == 303
        assert f"/connect/links/{OTTO}/removal" in (await browser.get("/connect")).text
        assert (await browser.get(f"/connect/links/{OTTO}/removal")).status_code == 200
        ended = await browser.post(f"/connect/links/{OTTO}/removal")
        assert ended.status_code == 303
        assert (await browser.get(f"/connect/links/{OTTO}/removal")).status_code == 404


async def test_confirming_needs_a_fresh_sign_in(world: World, otto: Caller) -> None:
    async with world.client(world.acme["alice"], signed_in=timedelta(hours=1)) as browser:
        assert (await browser.get("/connect")).status_code == 200
        asked = await browser.get("/connect/confirmation")
        told = await browser.post("/connect/confirmation", data={"aid": OTTO})

    assert asked.headers["location"].startswith("/step-up")
    assert told.status_code == 401


def say(caller: Caller, text: str) -> None:
    db.transact_now(linking.listen, caller, {"type": "text", "text": text}, is_signed=True)
