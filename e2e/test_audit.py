"""An auditor asks the trail: a filter, a view, an entry, a file; on a phone and in the dark too."""

import re
from itertools import product
from pathlib import Path

import pytest
from playwright.async_api import expect

from e2e import workspace
from e2e.conftest import Axe, PageFor
from tests.server import RunningServer


@pytest.mark.requirement("CMD-21", "UI-20", "UI-25", "SEC-79")
@pytest.mark.parametrize("javascript", [True, False])
async def test_a_question_becomes_a_filter_a_view_an_entry_and_a_file(
    server: RunningServer, page_for: PageFor, axe: Axe, javascript: bool
) -> None:
    page = await page_for(server.base_url, javascript=javascript)
    await workspace.set_up(page, server)
    await page.get_by_role("link", name="Audit", exact=True).first.click()
    await expect(page.locator("h1")).to_have_text("Audit")
    every = await page.locator("tr[id^=entry-]").count()

    await page.get_by_label("Command or its beginning").fill("identity.tenant")
    await page.get_by_role("button", name="Show", exact=True).click()
    await expect(page.get_by_role("list", name="Filters in use")).to_contain_text(
        "Command: identity.tenant"
    )
    found = page.locator("tr[id^=entry-]")
    assert 0 < await found.count() < every
    hits = await found.count()
    if javascript:
        assert await axe(page) == []

    await page.get_by_text("Save this view").click()
    await page.locator("#view-name").fill("How it began")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_role("status").first).to_contain_text("The view was saved.")
    view = page.get_by_role("navigation", name="Views").get_by_role("link", name="How it began")
    await expect(view).to_have_attribute("aria-current", "page")

    async with page.expect_download() as started:
        await page.get_by_role("link", name=f"Export CSV ({hits})").click()
    file = Path(await (await started.value).path())
    lines = file.read_text("utf-8-sig").splitlines()  # noqa: ASYNC240 - small
    assert len([line for line in lines if "identity.tenant" in line]) == hits

    await found.first.get_by_role("link").first.click()
    await expect(page.locator("#chain")).to_contain_text("follows from the one before it")
    if javascript:
        assert await axe(page) == []
    await page.get_by_role("link", name="After").click()
    await expect(page.locator("h1")).to_contain_text("Entry")

    await page.goto("/audit")
    await page.get_by_role("button", name="Verify the chain").click()
    await expect(page.locator("main")).to_contain_text("each is as it was written")
    await page.goto("/audit?command=audit.export")
    await expect(page.locator("tr[id^=entry-]")).to_have_count(1)

    await page.goto("/audit/views")
    await page.get_by_role("link", name="Edit How it began").click()
    await page.get_by_role("button", name="Delete this view").click()
    await expect(page.locator("main")).to_contain_text("No view saved yet")


@pytest.mark.requirement("UI-107", "UI-108")
async def test_the_audit_is_for_every_eye_and_a_phone(
    server: RunningServer, page_for: PageFor, axe: Axe
) -> None:
    first = await page_for(server.base_url)
    await workspace.set_up(first, server)
    for theme, width in product(["light", "dark"], [1280, 320]):
        page = await page_for(server.base_url, theme=theme, width=width)
        await workspace.sign_in(page)
        await page.wait_for_url(re.compile("/(welcome|conversations)"))
        for path in ("/audit", "/audit?channel=console&risk=L4&risk=L3", "/audit/2"):
            await page.goto(path)
            if path == "/audit":
                await page.get_by_text("Show as table").click()
                asked = page.get_by_label("Command or its beginning")
                assert await asked.is_visible() == (width > 320), "folded on a phone"
            assert await axe(page) == [], (theme, width, path)
            wide = await page.evaluate(
                "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            assert wide <= 0, (theme, width, path)
        await page.close()
