"""Requests for a person's word, and what became of them, over the end of the server's process."""

import re
from collections.abc import AsyncIterator, Iterator

import pytest
from playwright.async_api import Browser, Page, expect

from e2e.conftest import Watch
from e2e.doors import Doors, demo_in
from e2e.every_page import EMPLOYEE, Demo
from e2e.scene import deny, read, verb

AGENT, RECALL = "报销助手", "expense.report.recall"
PATIENCE_MS = 30_000


@pytest.fixture
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with demo_in(tmp_path_factory.mktemp("restarts")) as running:
        yield running


@pytest.fixture
async def doors(demo: Demo, browser: Browser) -> AsyncIterator[Doors]:
    made = Doors(demo, browser)
    yield made
    await made.close()


async def say(page: Page, text: str) -> None:
    """Write to the agent."""
    box = page.locator("#composer textarea")
    await box.fill(text)
    await box.press("Enter")
    await expect(page.locator("#messages").get_by_text(text, exact=True).last).to_be_visible()


async def asks(page: Page, text: str) -> str:
    """Say something that the agent may not do by itself; the path of the request."""
    await say(page, text)
    review = page.locator("#messages a", has_text="Review…")
    await expect(review).to_have_count(1, timeout=PATIENCE_MS)
    return str(await review.get_attribute("href"))


@pytest.mark.requirement("CON-42", "CON-47", "CMD-15")
async def test_over_a_restart_a_no_stays_a_no_and_what_is_open_is_decided_and_goes_on(
    doors: Doors, quiet: Watch, demo: Demo
) -> None:
    alice = demo.user(EMPLOYEE)
    query = "SELECT number FROM expense_report WHERE state = ? AND owner_id = ? LIMIT 1"
    number = demo.one(query, "submitted", alice)
    page = await doors.page(EMPLOYEE, "light", "en", 1280)
    quiet.over(page.context)
    await page.goto("/conversations/new?q=" + AGENT)
    await page.get_by_role("link", name=re.compile(AGENT)).last.click()
    await say(page, f"show {number}")
    await expect(page.locator("[data-opened]")).to_be_visible(timeout=PATIENCE_MS)
    talk = f"/conversations/{await page.locator('[data-opened]').get_attribute('data-opened')}"
    await page.goto(talk)
    await expect(page.locator(".strip")).to_have_count(0, timeout=PATIENCE_MS)

    denied = await asks(page, "recall it")
    await page.goto(denied)
    await deny(page, "Not today")
    await expect(page.get_by_text("Denied by")).to_be_visible()
    await page.goto(talk)
    await expect(page.locator(".strip")).to_have_count(0, timeout=PATIENCE_MS)
    opened = await asks(page, f"recall {number}")
    await page.goto("about:blank")
    demo.server.restart()

    await page.goto(talk)
    await expect(page.locator(".strip")).to_contain_text("Waiting for a person's decision")
    await page.goto(denied)
    await expect(page.get_by_text("Denied by")).to_be_visible()
    await page.goto(opened)
    await read(page)
    await verb(page).click()
    state = page.locator("[id$=-state]")
    await expect(state).to_contain_text("Done, approved by", timeout=PATIENCE_MS)
    await page.goto(talk)
    await expect(page.locator(".strip")).to_have_count(0, timeout=PATIENCE_MS)
    done = "SELECT approval_id FROM audit_entry WHERE command = ? AND outcome = 'done'"
    assert demo.rows(done, RECALL) == [(opened.rpartition("/")[2],)]
    assert demo.one("SELECT state FROM expense_report WHERE number = ?", number) == "draft"
    states = "SELECT state FROM tool_call WHERE tool = 'expense-report-recall' ORDER BY started_at"
    assert demo.rows(states) == [("denied",), ("done",)]
    assert demo.rows("SELECT state FROM run WHERE state NOT IN ('completed', 'canceled')") == []
