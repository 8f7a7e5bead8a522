"""A person asks an agent from a stock client elsewhere, and assents in the browser."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from e2e.conftest import Watch
from e2e.doors import Doors
from e2e.every_page import Demo
from e2e.test_agent_story import PATIENCE_MS, assent, state_of
from e2e.test_stock_client import AID, Client, started
from tests.aun import stock
from tests.aun.stock import Instance

AGENT = f"expenses.{stock.DOMAIN}"


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    folder: Path = tmp_path_factory.mktemp("stock-agent")
    with stock.instance(folder, demo=folder / "credentials.json") as running:
        yield running


@pytest.fixture(scope="module")
def demo(instance: Instance) -> Demo:
    return Demo(instance.server, instance.server.data.parent / "credentials.json")


@pytest.fixture
async def doors(demo: Demo, browser: Browser) -> AsyncIterator[Doors]:
    made = Doors(demo, browser)
    yield made
    await made.close()


async def link(page: Page, client: Client) -> None:
    """Alice links the client to herself: a code that it sends, and her yes."""
    await page.goto("/connect")
    await page.get_by_role("button", name="Make a code").click()
    code = await page.locator("main .notice [data-copy-text]").inner_text()
    await client.say(code, to=f"connect.{stock.DOMAIN}")
    confirm = page.get_by_role("link", name="Check and link")
    async with asyncio.timeout(20):
        while not await confirm.count():
            await page.get_by_role("link", name="Look again").click()
    await confirm.click()
    await page.get_by_role("button", name="Link").click()
    await expect(page.get_by_role("status").first).to_contain_text("linked")


async def until(client: Client, words: str) -> str:
    """What the agent says next with these words in it."""
    while True:
        heard = await client.told("heard")
        assert heard["by"] == AGENT
        assert heard["encrypted"] is True, "as the client wrote, so it is answered"
        if words in heard["heard"]["text"]:
            return str(heard["heard"]["text"])


@pytest.mark.requirement("RUN-80", "RUN-89", "AUN-8", "AUN-13")
async def test_a_stock_client_asks_an_agent_and_its_person_assents_in_the_browser(
    doors: Doors, quiet: Watch, demo: Demo, instance: Instance, tmp_path: Path
) -> None:
    number = demo.one("SELECT number FROM expense_report WHERE title LIKE ?", "十月上海出差%")
    page = await doors.page("alice", "light", "en", 1280)
    quiet.over(page.context)
    async with started(instance, tmp_path / "client") as client:
        await link(page, client)

        await client.say("submit my October travel report", to=AGENT)
        for _ in ("what it is about to do", "that it is done"):
            await until(client, number)
        assert state_of(demo, number) == "submitted"

        await page.goto("/approvals")
        await client.say("recall it", to=AGENT)
        row = page.locator("main").get_by_role("link", name=re.compile("Recall")).first
        await expect(row).to_be_visible(timeout=PATIENCE_MS)
        await row.click()
        await assent(page)
        for _ in ("what it was about to do", "that it is done"):
            await until(client, number)
        assert state_of(demo, number) == "draft"
        assert thoughts_for(demo, AID) > 0


def thoughts_for(demo: Demo, aid: str) -> int:
    """How many pieces of thought the viewer outside may read."""
    query = (
        "SELECT count(*) FROM thought t JOIN thought_head h ON h.id = t.head_id "
        "WHERE h.peer = ? AND h.context_type = 'run'"
    )
    return int(demo.one(query, aid))
