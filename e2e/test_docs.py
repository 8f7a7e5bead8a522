"""The HTTP API is read and tried out in a browser, under the policy of every page."""

import json
from collections.abc import Iterator

import pytest
from playwright.async_api import Locator, Page, expect

from e2e import workspace
from e2e.conftest import Axe, PageFor
from tests.server import RunningServer


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server of this module's own."""
    with workspace.empty(tmp_path_factory.mktemp("docs")) as server:
        yield server


@pytest.mark.requirement("CMD-7", "SEC-44")
async def test_the_api_is_tried_out_by_keys_with_ones_own_session(
    place: RunningServer, page_for: PageFor
) -> None:
    page = await page_for(place.base_url)
    await workspace.set_up(page, place)
    await page.goto("/docs")

    me = await _opened_by_keys(page, "/v1/me")
    await me.get_by_role("button", name="Try it out").click()
    await me.get_by_role("button", name="Execute").click()
    answer = me.locator(".live-responses-table")
    await expect(answer.locator(".response-col_status").last).to_contain_text("200")
    await expect(answer).to_contain_text("alice")

    call = await _opened_by_keys(page, "/v1/commands/{cmdCode}/calls")
    await call.get_by_role("button", name="Try it out").click()
    await call.get_by_placeholder("cmdCode").fill("expense.report.list")
    await call.locator("textarea").fill(json.dumps({"input": {}}))
    await call.get_by_role("button", name="Execute").click()
    answer = call.locator(".live-responses-table")
    await expect(answer.locator(".response-col_status").last).to_contain_text("200")
    await expect(answer).to_contain_text("auditSeq")


@pytest.mark.requirement("CMD-7", "SEC-88", "UI-91")
@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_the_api_is_readable_by_anybody_on_a_phone_and_in_the_dark(
    theme: str, place: RunningServer, page_for: PageFor, axe: Axe
) -> None:
    page = await page_for(place.base_url, theme=theme, lang="zh-CN", width=320)
    await page.goto("/docs")
    await _opened_by_keys(page, "/v1/me")

    assert await axe(page) == []
    assert not await page.evaluate("document.documentElement.scrollWidth > innerWidth")


async def _opened_by_keys(page: Page, path: str) -> Locator:
    operation = page.locator(".opblock").filter(
        has=page.locator(f'.opblock-summary-path[data-path="{path}"]')
    )
    head = operation.locator(".opblock-summary-control")
    await expect(head).to_have_attribute("aria-expanded", "false")
    await head.press("Enter")
    await expect(head).to_have_attribute("aria-expanded", "true")
    return operation
