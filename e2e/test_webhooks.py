"""An administrator lets a system outside hear of things: added, tried out, paused, removed."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from e2e import workspace
from e2e.conftest import Axe, PageFor
from tests.server import RunningServer
from tests.webhook_receiver import Receiver, listening


async def looks_right(page: Page, axe: Axe) -> None:
    assert await axe(page) == []
    assert not await page.evaluate("document.documentElement.scrollWidth > innerWidth")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with listening() as running:
        yield running


@pytest.fixture
def server(tmp_path: Path, receiver: Receiver) -> Iterator[RunningServer]:
    """A server that may call the receiver, though it is on this machine."""
    with workspace.empty(tmp_path / "data", ASSENT_OUTBOUND_ALLOW=receiver.pair) as running:
        yield running


@pytest.mark.requirement("CMD-24")
async def test_a_receiver_is_added_tried_out_and_removed(
    server: RunningServer, receiver: Receiver, page_for: PageFor, axe: Axe
) -> None:
    page = await page_for(server.base_url)
    await workspace.set_up(page, server)
    await _add(page, axe, receiver)

    secret = await page.locator("[data-copy-text]").first.inner_text()
    await looks_right(page, axe)
    await page.get_by_role("link", name="Go to the receiver").click()
    await page.get_by_role("button", name="Send test event").click()
    await expect(page.get_by_role("status").first).to_contain_text("on its way")
    delivered = page.locator("tr[id^=delivery-]").filter(has_text="Delivered")
    while not await delivered.count():  # the page is plain: a person reloads it
        await page.reload()
    await looks_right(page, axe)
    (got,) = receiver.received
    assert got.is_signed_with(secret)
    assert got.type == "assent.test"

    _forget_language(server)
    await _in_another_look(page, page_for, axe)
    await page.get_by_role("link", name="Remove…").click()
    await looks_right(page, axe)
    await page.get_by_role("button", name="Remove").click()
    await expect(page.get_by_role("status").first).to_contain_text("was removed")
    await expect(page.locator("tr[id^=webhook-]")).to_have_count(0)


async def _add(page: Page, axe: Axe, receiver: Receiver) -> None:
    await page.goto("/admin/webhooks")
    await expect(page.locator("main")).to_contain_text("No receiver yet")
    await looks_right(page, axe)
    await page.get_by_role("link", name="Add receiver").first.click()
    await page.get_by_label("Address").fill("http://inside.example/hook")
    await page.get_by_label("Everything of expense").check()
    await page.get_by_role("button", name="Add receiver").click()
    await expect(page.locator("#field-url-error")).to_contain_text("https://")
    await looks_right(page, axe)
    await page.get_by_label("Address").fill(receiver.url)
    await page.get_by_label("Description").fill("Bank 银行")
    await page.get_by_role("button", name="Add receiver").click()


def _forget_language(server: RunningServer) -> None:
    """Let the browser's language count, not the one that was chosen at setup."""
    with closing(sqlite3.connect(server.data / "assent.db", timeout=10)) as connection:
        connection.execute("UPDATE user SET locale = NULL")
        connection.commit()


async def _in_another_look(page: Page, page_for: PageFor, axe: Axe) -> None:
    """The receiver's pages, at a phone's width, dark and in Chinese."""
    state = await page.context.storage_state()
    address = page.url.partition("?")[0]
    small = await page_for(page.url.partition("/admin")[0], theme="dark", lang="zh-CN", width=320)
    looks = {"lang", "theme"}
    own = [each for each in state["cookies"] if each["name"] not in looks]
    await small.context.add_cookies(own)  # type: ignore[arg-type]
    for path in ("", "/edit", "/secret", "/removal"):
        await small.goto(address + path)
        await expect(small.locator("html")).to_have_attribute("lang", "zh-CN")
        await looks_right(small, axe)
