"""Signing in by keyboard, without script, and the detours that lose nothing."""

import re
from collections.abc import Iterator
from itertools import product

import pytest
from playwright.async_api import Page, expect

from e2e import workspace
from e2e.conftest import Axe, PageFor
from tests.server import RunningServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with workspace.empty(tmp_path_factory.mktemp("sign_in")) as running:
        yield running


@pytest.fixture
async def owned(server: RunningServer, page_for: PageFor) -> RunningServer:
    """The server, with its owner."""
    if "/welcome" not in server.log():
        page = await page_for(server.base_url)
        await workspace.set_up(page, server)
        await page.close()
    return server


@pytest.mark.requirement("UI-90", "UI-25")
async def test_signing_in_and_out_needs_no_pointer(owned: RunningServer, page_for: PageFor) -> None:
    page = await page_for(owned.base_url)
    await page.goto("/settings")
    await expect(page).to_have_url(f"{owned.base_url}/sign-in?next=%2Fsettings")
    await expect(page.locator("#field-login")).to_be_focused()

    await page.keyboard.type("alice")
    await page.keyboard.press("Tab")
    await expect(page.locator("#field-password")).to_be_focused()
    await page.keyboard.type("not the password")
    await page.keyboard.press("Enter")
    await expect(page.locator(".notice-danger")).to_be_focused()
    await expect(page.locator("#field-login")).to_have_value("alice")

    await page.keyboard.press("Tab")
    await page.keyboard.press("Tab")
    await expect(page.locator("#field-password")).to_be_focused()
    await page.keyboard.type(workspace.PASSWORD)
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(f"{owned.base_url}/settings")
    await expect(page.locator("h1")).to_have_text("Settings")

    await page.keyboard.press("Tab")
    await expect(page.locator(".skip")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("#main")).to_be_focused()
    await page.get_by_role("button", name="Sign out").first.focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("status").first).to_contain_text("You are signed out.")


@pytest.mark.requirement("UI-25", "SEC-38")
async def test_without_script_a_form_is_confirmed_and_sent_again(
    owned: RunningServer, page_for: PageFor
) -> None:
    page = await page_for(owned.base_url, javascript=False)
    await workspace.sign_in(page)
    await page.goto("/settings/password")
    await page.locator("#field-password").fill("another good password")
    await page.locator("#field-again").fill("another good password")
    workspace.make_stale(owned)
    await page.get_by_role("button", name="Change the password").click()

    await expect(page.locator("h1")).to_have_text("Confirm that it is you")
    await page.locator("#field-password").fill(workspace.PASSWORD)
    await page.get_by_role("button", name="Confirm").click()
    await expect(page.locator("h1")).to_have_text("Send what you filled in")
    await page.get_by_role("button", name="Continue").click()
    await expect(page.locator("h1")).to_have_text("Change the password")
    await expect(page.locator("#field-password-error")).to_contain_text("Fill this in.")


@pytest.mark.requirement("UI-25", "SEC-37")
async def test_what_was_typed_survives_the_end_of_a_session(
    owned: RunningServer, page_for: PageFor
) -> None:
    page = await page_for(owned.base_url)
    await workspace.sign_in(page)
    await page.goto("/settings")
    await page.locator("#field-display_name").fill("Alice 王")
    cookies = [each for each in await page.context.cookies() if "sid" not in each["name"]]
    await page.context.clear_cookies()
    await page.context.add_cookies([dict(each) for each in cookies])  # type: ignore[misc]
    await page.get_by_role("button", name="Save").click()

    await expect(page.locator("main")).to_contain_text("What you filled in is kept")
    await page.locator("#field-login").fill("alice")
    await page.locator("#field-password").fill(workspace.PASSWORD)
    await page.get_by_role("button", name="Sign in", exact=True).click()
    await page.get_by_role("button", name="Continue").click()
    await expect(page.locator("#field-display_name")).to_have_value("Alice 王")
    await expect(page.get_by_role("status").first).to_contain_text("Your settings were saved.")


@pytest.mark.requirement("UI-107", "UI-91", "UI-96")
async def test_the_detours_have_no_fault_of_access(
    owned: RunningServer, page_for: PageFor, axe: Axe
) -> None:
    found: list[str] = []
    for theme, lang, width in product(["light", "dark"], ["en", "zh-CN"], [1280, 320]):
        page = await page_for(owned.base_url, theme=theme, lang=lang, width=width)
        await page.goto("/sign-in")
        await page.locator("main form button.primary").first.click()
        await expect(page.locator(".notice-danger")).to_be_focused()
        found += await checked(page, axe, width)
        await workspace.sign_in(page)
        await page.wait_for_url(re.compile("/(welcome|conversations)"))
        workspace.make_stale(owned)
        await page.goto("/settings/password")
        found += await checked(page, axe, width)
        await page.locator("#field-password").fill("not it at all")
        await page.locator("main form button.primary").first.click()
        await expect(page.locator(".notice-danger")).to_be_focused()
        found += await checked(page, axe, width)
        await page.close()

    assert found == []


async def checked(page: Page, axe: Axe, width: int) -> list[str]:
    assert await page.evaluate("document.documentElement.scrollWidth") <= width
    return await axe(page)
