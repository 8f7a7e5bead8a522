"""The settings: language and look, sessions of other browsers, accounts of a provider."""

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from playwright.async_api import expect

from e2e import workspace
from e2e.conftest import Axe, PageFor, Watch
from tests.oidc_provider import CLIENT_ID, CLIENT_SECRET, Provider, serving
from tests.server import RunningServer


@pytest.fixture
def linkable(tmp_path: Path, quiet: Watch) -> Iterator[RunningServer]:
    """A server that knows a provider, which runs too."""
    provider = Provider()
    env = {
        "ASSENT_OIDC__CONTOSO__ISSUER": provider.issuer,
        "ASSENT_OIDC__CONTOSO__CLIENT_ID": CLIENT_ID,
        "ASSENT_OIDC__CONTOSO__CLIENT_SECRET": CLIENT_SECRET,
        "ASSENT_OIDC__CONTOSO__TENANT": "example-ltd",
        "ASSENT_OIDC__CONTOSO__LABEL": "Contoso",
    }
    quiet.hosts.add(f"localhost:{provider.port}")
    with serving(provider), workspace.empty(tmp_path / "data", **env) as server:
        yield server


@pytest.mark.requirement("UI-96", "UI-25")
@pytest.mark.parametrize("javascript", [True, False])
async def test_language_theme_and_zone_are_kept_with_the_person(
    server: RunningServer, page_for: PageFor, javascript: bool
) -> None:
    page = await page_for(server.base_url, javascript=javascript)
    await workspace.set_up(page, server)
    await page.goto("/settings")
    await page.locator("#field-locale").select_option("zh-CN")
    await page.locator("#field-time_zone").select_option("Europe/Berlin")
    await page.get_by_label("Dark").check()
    await page.get_by_role("button", name="Save").click()

    await expect(page.locator("h1")).to_have_text("设置")
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    other = await page_for(server.base_url, javascript=javascript)
    await workspace.sign_in(other)
    await expect(other.locator("html")).to_have_attribute("lang", "zh-CN")
    await expect(other.locator("html")).to_have_attribute("data-theme", "dark")


@pytest.mark.requirement("SEC-37")
async def test_another_browsers_session_is_ended_from_here(
    server: RunningServer, page_for: PageFor
) -> None:
    here, there = await page_for(server.base_url), await page_for(server.base_url)
    await workspace.set_up(here, server)
    await workspace.sign_in(there)
    await here.goto("/settings/sessions")
    await expect(here.locator("tbody tr")).to_have_count(2)
    await here.locator("tbody tr", has_not_text="This one").get_by_role("button").click()

    await expect(here.locator("tbody tr")).to_have_count(1)
    await there.goto("/settings")
    await expect(there.locator("h1")).to_have_text("Sign in")

    await here.get_by_role("button", name="Sign out everywhere").click()
    await expect(here.get_by_role("status").first).to_contain_text("signed out everywhere")


@pytest.mark.requirement("SEC-22", "SEC-23", "SEC-38", "UI-107")
async def test_an_account_elsewhere_is_linked_signs_in_confirms_and_is_unlinked(
    linkable: RunningServer, page_for: PageFor, axe: Axe
) -> None:
    page = await page_for(linkable.base_url)
    await workspace.set_up(page, linkable)
    await page.goto("/settings/security")
    await page.get_by_role("button", name="Link an account of Contoso").click()
    await expect(page.get_by_role("link", name="Continue with Contoso")).to_be_visible()
    assert await axe(page) == []
    await page.get_by_role("link", name="Continue with Contoso").click()
    await expect(page.get_by_role("row", name="Contoso")).to_be_visible()
    assert await axe(page) == []

    await page.get_by_role("button", name="Sign out").first.click()
    for theme, width in product(["light", "dark"], [1280, 320]):
        look = await page_for(linkable.base_url, theme=theme, width=width)
        await look.goto("/sign-in")
        assert await axe(look) == []
        await look.close()
    await page.get_by_role("link", name="Continue with Contoso").click()
    await page.wait_for_url(re.compile("/(welcome|conversations)"))

    workspace.make_stale(linkable)
    await page.goto("/settings/password")
    assert await axe(page) == []
    await page.get_by_role("link", name="Confirm with Contoso").click()
    await expect(page.locator("h1")).to_have_text("Change the password")

    await page.goto("/settings/security")
    await page.get_by_role("link", name="Unlink").click()
    dialog = page.get_by_role("dialog", name="Unlink this account?")
    await expect(dialog).to_be_visible()
    assert await axe(page) == []
    await dialog.get_by_role("button", name="Unlink").click()
    await expect(page.get_by_role("button", name="Link an account of Contoso")).to_be_visible()
