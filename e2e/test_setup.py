"""The first start: from the printed link to a signed-in owner."""

from itertools import product

import pytest
from playwright.async_api import expect

from e2e import workspace
from e2e.conftest import Axe, PageFor
from tests.server import RunningServer


@pytest.mark.requirement("SEC-42", "UI-25", "UI-107")
@pytest.mark.parametrize("javascript", [True, False])
async def test_the_first_owner_comes_in_by_the_printed_link(
    server: RunningServer, page_for: PageFor, javascript: bool
) -> None:
    page = await page_for(server.base_url, javascript=javascript)
    await page.goto("/")
    await expect(page.locator("main")).to_contain_text("Nobody can sign in yet.")
    await page.goto(workspace.setup_path(server))
    await page.locator("#field-tenant_name").fill("Example Ltd")
    await page.locator("#field-login").fill("alice")
    await page.locator("#field-password").fill("short")
    await page.locator("#field-again").fill("short")
    await page.get_by_role("button", name="Create the workspace").click()

    await expect(page.locator("#field-tenant_name")).to_have_value("Example Ltd")
    await expect(page.locator("#field-display_name-error")).to_contain_text("Fill this in.")
    await page.locator("#field-display_name").fill("Alice Wang")
    await page.locator("#field-password").fill("short")
    await page.locator("#field-again").fill("short")
    await page.get_by_role("button", name="Create the workspace").click()
    await expect(page.locator("#field-password-error")).to_contain_text("at least 10")

    await workspace.set_up(page, server)
    await expect(page.locator("h1")).to_have_text("Welcome, Alice Wang")
    await page.goto(workspace.setup_path(server))
    await expect(page.locator("h1")).to_have_text("Not found")
    await page.context.clear_cookies()
    await page.goto("/sign-in")
    await expect(page.locator("main")).to_contain_text("Locked out?")
    await expect(page.locator("main")).not_to_contain_text("Nobody can sign in yet.")


@pytest.mark.requirement("UI-107", "UI-91", "UI-96")
async def test_the_setup_page_has_no_fault_of_access(
    server: RunningServer, page_for: PageFor, axe: Axe
) -> None:
    found: list[str] = []
    for theme, lang, width in product(["light", "dark"], ["en", "zh-CN"], [1280, 320]):
        page = await page_for(server.base_url, theme=theme, lang=lang, width=width)
        await page.goto(workspace.setup_path(server))
        found += await axe(page)
        await page.locator("main form button.primary").click()
        await expect(page.locator(".notice-danger")).to_be_focused()
        found += await axe(page)
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
        await page.close()

    assert found == []
