"""Passkeys in Chromium, with an authenticator of the browser's own making."""

import re
from typing import Any

import pytest
from playwright.async_api import CDPSession, Page, expect

from e2e import workspace
from e2e.conftest import Axe, PageFor
from tests.server import RunningServer

AUTHENTICATOR = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


async def with_authenticator(page: Page) -> tuple[CDPSession, str]:
    session = await page.context.new_cdp_session(page)
    await session.send("WebAuthn.enable")
    made: dict[str, Any] = await session.send(
        "WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR}
    )
    return session, str(made["authenticatorId"])


@pytest.mark.requirement("SEC-39", "SEC-38")
async def test_a_passkey_is_added_signs_in_confirms_and_is_removed(
    server: RunningServer, page_for: PageFor, axe: Axe
) -> None:
    page = await page_for(server.base_url)
    await with_authenticator(page)
    await workspace.set_up(page, server)
    await page.get_by_role("link", name="Add a passkey").click()
    await expect(page.get_by_label("Name")).to_have_value("Chrome on Linux")
    assert await axe(page) == []
    await page.get_by_label("Name").fill("Laptop 笔记本")
    await page.get_by_role("button", name="Add the passkey").click()
    await expect(page.get_by_role("row", name="Laptop 笔记本")).to_be_visible()
    assert await axe(page) == []

    await page.get_by_role("button", name="Sign out").first.click()
    await page.get_by_role("button", name="Sign in with a passkey").click()
    await page.wait_for_url(re.compile("/(welcome|conversations)"))
    await expect(page.locator("main")).to_contain_text("Done")

    workspace.make_stale(server)
    await page.goto("/settings/password")
    await page.get_by_role("button", name="Confirm with a passkey").click()
    await expect(page.locator("h1")).to_have_text("Change the password")

    await page.goto("/settings/security")
    await page.get_by_role("link", name="Change Laptop 笔记本").click()
    await expect(page.get_by_role("button", name="Rename")).to_be_visible()
    assert await axe(page) == []
    await page.get_by_label("Name").fill("Old laptop")
    await page.get_by_role("button", name="Rename").click()
    await page.get_by_role("link", name="Change Old laptop").click()
    await page.get_by_role("button", name="Remove the passkey").click()
    await expect(page.locator("main")).to_contain_text("No passkey yet")

    await page.get_by_role("button", name="Sign out").first.click()
    await page.get_by_role("button", name="Sign in with a passkey").click()
    await expect(page.locator(".notice-danger")).to_contain_text("could not be used here")


@pytest.mark.requirement("SEC-39")
async def test_who_turns_the_dialog_of_the_browser_away_is_told_and_loses_nothing(
    server: RunningServer, page_for: PageFor
) -> None:
    page = await page_for(server.base_url)
    session, authenticator = await with_authenticator(page)
    await workspace.set_up(page, server)
    await page.goto("/settings/passkeys/new")
    await session.send(
        "WebAuthn.setUserVerified",
        {"authenticatorId": authenticator, "isUserVerified": False},
    )
    await page.get_by_label("Name").fill("Laptop")
    await page.get_by_role("button", name="Add the passkey").click()

    await expect(page.locator("#alerts")).to_contain_text("No passkey was made.")
    await expect(page.get_by_label("Name")).to_have_value("Laptop")
    await expect(page.get_by_role("button", name="Add the passkey")).to_be_enabled()
