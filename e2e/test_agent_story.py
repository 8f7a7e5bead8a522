"""A person asks an agent, watches it think and act, and assents where a person has to.

No model is configured: the offline planner carries them through (RUN-106).
"""

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, Page, expect

from e2e.conftest import Axe, Watch
from e2e.doors import Doors, demo_in
from e2e.every_page import Demo

ALICE, BOB, FIONA, FRANK = "alice", "bob", "fiona", "frank"
AGENT = "报销助手"
PATIENCE_MS = 30_000


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    folder: Path = tmp_path_factory.mktemp("agents")
    with demo_in(folder) as running:
        yield running


@pytest.fixture
async def doors(demo: Demo, browser: Browser) -> AsyncIterator[Doors]:
    made = Doors(demo, browser)
    yield made
    await made.close()


async def talk(doors: Doors, quiet: Watch, who: str, lang: str) -> Page:
    """The conversation of somebody with the agent."""
    page = await doors.page(who, "light", lang, 1280)
    quiet.over(page.context)
    await page.goto("/conversations/new?q=" + AGENT)
    await page.get_by_role("link", name=re.compile(AGENT)).last.click()
    await expect(page.locator("#composer textarea")).to_be_visible()
    return page


async def say(page: Page, text: str) -> None:
    """Write to the agent."""
    box = page.locator("#composer textarea")
    await box.fill(text)
    await box.press("Enter")
    await expect(page.locator("#messages").get_by_text(text, exact=True).last).to_be_visible()


def cards(page: Page, name: str) -> Locator:
    """The cards of tool calls with this name."""
    return page.locator("#messages .tool", has=page.get_by_text(name, exact=True))


def card(page: Page, name: str) -> Locator:
    """The newest of them."""
    return cards(page, name).last


async def answered(page: Page, words: str) -> None:
    """Wait until the agent said something."""
    said = page.locator("#messages article, #messages .message").filter(has_text=words)
    await expect(said.last).to_be_visible(timeout=PATIENCE_MS)


async def finished(page: Page) -> None:
    """Wait until no run goes on in the conversation."""
    await expect(page.locator(".strip")).to_have_count(0, timeout=PATIENCE_MS)


async def assent(page: Page) -> None:
    """Read an approval to its end, type what it asks for, and press the verb."""
    for box in await page.locator("[data-read]").all():
        await box.evaluate("each => each.scrollTo(0, each.scrollHeight)")
    if await page.locator("input[name=typed]").count():
        await page.locator("input[name=typed]").fill(await page.locator("[data-type]").inner_text())
    verb = page.locator("[data-arm]")
    await expect(verb).to_have_attribute("aria-disabled", "false")
    await verb.click()


def state_of(demo: Demo, number: str) -> str:
    """Where a report stands."""
    return str(demo.one("SELECT state FROM expense_report WHERE number = ?", number))


@pytest.mark.requirement("RUN-106", "RUN-80", "RUN-85", "RUN-89", "UI-5", "UI-28")
async def test_a_report_is_submitted_taken_back_and_submitted_again_in_two_languages(
    doors: Doors, quiet: Watch, demo: Demo, axe: Axe
) -> None:
    number = demo.one("SELECT number FROM expense_report WHERE title LIKE ?", "十月上海出差%")
    page = await talk(doors, quiet, ALICE, "en")

    await say(page, "submit my October travel report")
    await answered(page, number)
    await expect(card(page, "Submit expense report")).to_contain_text("Done", timeout=PATIENCE_MS)
    await finished(page)
    assert state_of(demo, number) == "submitted"
    await expect(page.locator(".thought").first).to_be_visible()
    assert await axe(page) == []

    await say(page, "recall it")
    review = page.locator("#messages a", has_text="Review").last
    await expect(review).to_be_visible(timeout=PATIENCE_MS)
    await review.click()
    await assent(page)
    await page.goto(f"/conversations/{_conversation(demo)}")
    await finished(page)
    assert state_of(demo, number) == "draft"

    chinese = await talk(doors, quiet, ALICE, "zh-CN")
    await say(chinese, "提交我十月的出差报销")
    await expect(cards(chinese, "提交报销单")).to_have_count(2, timeout=PATIENCE_MS)
    await expect(card(chinese, "提交报销单")).to_contain_text("完成", timeout=PATIENCE_MS)
    await finished(chinese)
    assert state_of(demo, number) == "submitted"
    await chinese.goto("/audit")  # where it says who did it, in the reader's language
    await expect(chinese.get_by_text("离线规划器").first).to_be_visible()
    await expect(chinese.get_by_text("offline planner")).to_have_count(0)


def _conversation(demo: Demo) -> str:
    query = "SELECT conversation_id FROM run WHERE user_id = ? ORDER BY queued_at DESC LIMIT 1"
    return str(demo.one(query, demo.user(ALICE)))


@pytest.mark.requirement("RUN-89", "RUN-90", "CMD-14")
async def test_paying_waits_for_the_person_who_decides_and_goes_on_in_the_same_turn(
    doors: Doors, quiet: Watch, demo: Demo
) -> None:
    number = demo.one(
        "SELECT number FROM expense_report WHERE state = ? AND owner_id = ? LIMIT 1",
        "approved",
        demo.user(ALICE),
    )
    fiona = await talk(doors, quiet, FIONA, "en")
    await say(fiona, f"show {number}")
    await answered(fiona, number)
    await finished(fiona)

    await say(fiona, "pay it")
    paying = card(fiona, "Send payment")
    await expect(paying).to_contain_text("Waiting", timeout=PATIENCE_MS)
    assert state_of(demo, number) == "approved"

    frank = await doors.page(FRANK, "light", "en", 1280)
    quiet.over(frank.context)
    approval = demo.one("SELECT id FROM approval WHERE command = ? AND state = 'open'", PAY)
    await frank.goto(f"/approvals/{approval}")
    await assent(frank)
    await expect(frank.get_by_text(re.compile("Frank Weber")).first).to_be_visible()

    await expect(card(fiona, "Send payment")).to_contain_text("Done", timeout=PATIENCE_MS)
    await finished(fiona)
    assert state_of(demo, number) == "paid"
    turns = "SELECT count(*) FROM tool_call WHERE tool = 'expense-payment-send'"
    assert str(demo.one(turns)) == "1"


PAY = "expense.payment.send"
