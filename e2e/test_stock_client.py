"""A stock client elsewhere and a person in the browser write to each other."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from e2e.conftest import PageFor
from tests.aun import stock
from tests.aun.stock import Instance

pytestmark = pytest.mark.anyio

AID, OLGA = f"desk-tools.{stock.DOMAIN}", f"olga.{stock.DOMAIN}"
SCRIPT = Path(stock.__file__).parent / "scripts" / "chat.py"
PATIENCE_S = 30


class Client:
    """The stock client's process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def told(self, kind: str) -> dict[str, Any]:
        """The next line of a kind."""
        assert self._process.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            while line := await self._process.stdout.readline():
                said = json.loads(line)
                assert "undecryptable" not in said, said
                if kind in said:
                    return dict(said)
        raise AssertionError(f"the client ended before it told {kind}")

    async def say(self, words: str, *, to: str = OLGA, **more: Any) -> str:
        """Write to olga, or to somebody else; the message's id."""
        assert self._process.stdin is not None
        act = {"to": to, "payload": {"type": "text", "text": words, **more}}
        self._process.stdin.write(json.dumps(act).encode() + b"\n")
        return str((await self.told("sent"))["sent"])


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[Instance]:
    """A server that the client finds."""
    with stock.instance(tmp_path / "server") as running:
        yield running


@asynccontextmanager
async def started(instance: Instance, home: Path) -> AsyncIterator[Client]:
    """The client, registered and connected."""
    process = await asyncio.create_subprocess_exec(
        str(stock.python()),
        str(SCRIPT),
        AID,
        env=instance.environment(home),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        client = Client(process)
        assert (await client.told("ready"))["ready"] == AID
        yield client
    finally:
        process.terminate()
        await process.wait()


async def come_in(page: Page, invitation: str) -> None:
    """Olga takes her invitation."""
    await page.goto(invitation)
    for field in await page.locator("input[type=password]").all():
        await field.fill("correct horse battery staple")
    await page.locator("main form button.primary").click()
    await page.wait_for_url("**/welcome")


async def send(page: Page, words: str) -> None:
    await page.locator("#composer-text").fill(words)
    await page.keyboard.press("Enter")


@pytest.mark.requirement("AUN-2", "AUN-11", "AUN-12", "AUN-13", "UI-1", "UI-3", "UI-4")
async def test_a_stock_client_and_a_person_chat_encrypted_and_nobody_owes_an_answer(
    instance: Instance, page_for: PageFor, tmp_path: Path
) -> None:
    page = await page_for(instance.server.base_url)
    await come_in(page, instance.invitation)
    await page.goto("/conversations")
    async with started(instance, tmp_path / "client") as client:
        asked_by_nobody = await client.say("Nobody asked, but the report is **ready**.")

        row = page.locator("#conversations li", has_text="the report is")
        await expect(row).to_contain_text("1")
        await row.get_by_role("link").click()
        first = page.locator("#messages li.message").first
        await expect(first).to_contain_text("Nobody asked, but the report is ready.")
        await expect(first.locator("strong")).to_have_text("ready")

        await send(page, "Thank you. Three questions.")
        heard = await client.told("heard")
        assert heard["heard"]["text"] == "Thank you. Three questions."
        assert heard["by"] == OLGA
        assert heard["encrypted"] is True, "as the client wrote, so it is answered"
        question = page.locator("#messages li.message", has_text="Three questions.")
        await expect(question.locator(".delivery")).to_have_text(re.compile("Delivered|Seen"))

        reply_to = {"message_id": heard["message_id"], "sender_aid": OLGA}
        for number in ("One.", "Two.", "Three."):
            await client.say(number, reply_to=reply_to)
        await expect(question.locator(".replies")).to_contain_text("3 replies")
        await expect(page.locator("#messages li.message", has_text="Three.").last).to_be_visible()

        await send(page, "This one needs no answer.")
        assert (await client.told("heard"))["heard"]["text"] == "This one needs no answer."
        last = page.locator("#messages li.message", has_text="needs no answer")
        await expect(last.locator(".delivery")).to_have_text(re.compile("Delivered|Seen"))
        await client.say("Later, about something else.")
        await expect(page.locator("#messages li.message").last).to_contain_text("something else")
        await expect(last.locator(".replies")).to_have_text("")
        wrong = page.locator("#messages .danger, #messages [role=alert], #messages .spinner")
        await expect(wrong).to_have_count(0)

        order = await page.locator("#messages li.message .md").all_inner_texts()
        await page.reload()
        assert await page.locator("#messages li.message .md").all_inner_texts() == order
        assert asked_by_nobody
