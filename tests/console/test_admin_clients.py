"""Applications are registered, their secret is shown once, and blocking ends them."""

import re

import httpx2
import pytest
from sqlmodel import Session, select

from app.identity.models import ClientStatus, OAuthClient
from app.identity.oauth import clients
from app.kernel import db
from tests.people import World


def registered(session: Session, name: str) -> OAuthClient | None:
    return session.exec(select(OAuthClient).where(OAuthClient.name == name)).first()


async def register(browser: httpx2.AsyncClient, **changed: str) -> httpx2.Response:
    data = {"name": "Desk", "redirect_uris": "https://desk.example/cb", "kind": "public"}
    return await browser.post("/admin/clients", data=data | changed)


async def test_a_secret_is_shown_once_and_is_the_clients(world: World) -> None:
    ada = world.client(world.acme["ada"])

    made = await register(ada, kind="confidential")
    client = db.read_now(registered, "Desk")
    assert client is not None
    secret = re.search(r"<code data-copy-text>([\w-]{43})</code>", made.text)
    page = await ada.get(f"/admin/clients/{client.id}")
    renewed = await ada.post(f"/admin/clients/{client.id}/secret")

    assert made.status_code == renewed.status_code == 201
    assert secret, "the secret"
    assert clients.has_secret(client, secret[1])
    assert secret[1] not in page.text
    later = db.read_now(registered, "Desk")
    assert later is not None
    assert not clients.has_secret(later, secret[1])


@pytest.mark.parametrize(
    "uris",
    ["http://evil.example/cb", "javascript:alert(1)", "https://a.example/#x", "not an address"],
)
async def test_an_address_that_will_not_do_is_said_at_its_field(world: World, uris: str) -> None:
    answer = await register(world.client(world.acme["ada"]), redirect_uris=uris)

    assert answer.status_code == 422
    assert 'id="field-redirect_uris-error"' in answer.text
    assert uris in answer.text
    assert db.read_now(registered, "Desk") is None


async def test_a_public_application_has_no_secret(world: World) -> None:
    ada = world.client(world.acme["ada"])

    made = await register(ada)
    client = db.read_now(registered, "Desk")
    assert client is not None
    refused = await ada.post(f"/admin/clients/{client.id}/secret")

    assert made.status_code == 303
    assert refused.status_code == 409
    assert "Desk" in (await ada.get("/admin/clients", params={"q": "desk"})).text


@pytest.mark.requirement("SEC-13")
async def test_an_application_without_a_browser_is_let_in_by_a_typed_code(world: World) -> None:
    ada = world.client(world.acme["ada"])

    without = await register(ada, redirect_uris="")
    made = await register(ada, redirect_uris="", by_code="true")
    client = db.read_now(registered, "Desk")
    assert client is not None
    async with world.anonymous() as device:
        begun = await device.post("/oauth/device_authorization", data={"client_id": client.id})
    edited = await ada.get(f"/admin/clients/{client.id}/edit")
    changed = await ada.post(
        f"/admin/clients/{client.id}",
        data={"name": "Desk", "redirect_uris": "https://desk.example/cb"},
    )
    async with world.anonymous() as device:
        refused = await device.post("/oauth/device_authorization", data={"client_id": client.id})

    assert (without.status_code, made.status_code, changed.status_code) == (422, 303, 303)
    assert 'id="field-redirect_uris-error"' in without.text
    assert begun.status_code == 200
    assert begun.json()["user_code"]
    assert re.search(r'name="by_code"[^>]* checked', edited.text)
    assert refused.json()["error"] == "unauthorized_client"


async def test_a_blocked_application_is_usable_again_only_by_hand(world: World) -> None:
    ada = world.client(world.acme["ada"])
    await register(ada)
    client = db.read_now(registered, "Desk")
    assert client is not None
    path = f"/admin/clients/{client.id}"

    blocked = await ada.post(f"{path}/block")
    unusable = db.read_now(clients.usable, client.id)
    twice = await ada.post(f"{path}/block")
    unblocked = await ada.post(f"{path}/unblock")

    assert (blocked.status_code, twice.status_code, unblocked.status_code) == (303, 409, 303)
    assert unusable is None
    usable = db.read_now(clients.usable, client.id)
    assert usable is not None
    assert usable.status == ClientStatus.ACTIVE


@pytest.mark.requirement("UI-31")
async def test_without_applications_the_page_offers_the_first(world: World) -> None:
    page = await world.client(world.acme["ada"]).get("/admin/clients")
    auditor = await world.client(world.acme["axel"]).get("/admin/clients")

    assert "No application yet" in page.text
    assert auditor.status_code == 403
