"""Conversations in browsers: people and an agent write, and every open page shows it once."""

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.async_api import Page, Route, expect
from sqlmodel import select

from app.aun import rpc
from app.aun.caller import Caller
from app.aun.models import IdentityKind, Message
from app.identity.models import Agent, User
from app.kernel import db
from e2e.board import House, house
from e2e.conftest import Axe, PageFor, Watch
from tests.aun.conversation_rows import caller_of

pytestmark = pytest.mark.anyio
OLDER, LONG_URL = 60, "https://example.com/" + "x" * 300


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with (
        pytest.MonkeyPatch.context() as monkeypatch,
        house(tmp_path_factory.mktemp("talk"), monkeypatch) as made,
    ):
        yield made


@pytest.fixture(autouse=True)
def sound(lived: House, quiet: Watch) -> Iterator[None]:
    quiet.tolerate("503", "ERR_FAILED", "ERR_INCOMPLETE", "ERR_ABORTED")
    yield
    lived.control.reset()


def me(user: User) -> Caller:
    return caller_of(db.read_now(lambda s: s.get_one(User, (user.tenant_id, user.id))))


def the_agent(lived: House) -> Caller:
    known = lived.world.acme.agents["stock"]
    row = db.read_now(lambda s: s.get_one(Agent, (known.tenant_id, known.id)))
    return Caller(row.tenant_id, row.aid or "", IdentityKind.AGENT, "hosted")


async def say(caller: Caller, to: Caller, message_id: str, text: str, **more: Any) -> None:
    payload = {"type": "text", "text": text, **more}
    params = {"to": to.aid, "message_id": message_id, "payload": payload}
    await rpc.invoke(caller, "message.send", params)


async def up(page: Page) -> None:
    await expect(page.locator("html[data-live=up]")).to_be_attached(timeout=15_000)


async def shows(page: Page, *texts: str) -> None:
    """Exactly these messages, in this order, each once."""
    await expect(page.locator("#messages .message .md")).to_have_text(list(texts), timeout=15_000)


async def write(page: Page, text: str) -> None:
    await page.locator("#composer-text").fill(text)
    await page.keyboard.press("Enter")


async def is_sound(page: Page, axe: Axe) -> None:
    assert await axe(page) == []
    assert not await page.evaluate("document.documentElement.scrollWidth > innerWidth")


@pytest.mark.requirement(
    "UI-1", "UI-2", "UI-3", "UI-28", "UI-47", "AUN-11", "AUN-12", "CON-69", "CON-72", "CON-73",
    "CON-75", "CON-90", "CON-96", "CON-97", "CON-102", "CON-105",
)  # fmt: skip
async def test_two_people_chat_in_three_tabs(lived: House, page_for: PageFor, axe: Axe) -> None:
    alice, bob = lived.world.acme["alice"], lived.world.acme["bob"]
    hers = await lived.page(page_for, alice)
    await hers.goto(f"/conversations/new?to={me(bob).aid}")
    await write(hers, "one")
    await hers.wait_for_url(re.compile(r"/conversations/\w{26}$"))
    path = hers.url.removeprefix(lived.base_url)
    second = await hers.context.new_page()
    await second.goto(path)
    his = await lived.page(page_for, bob, theme="dark", lang="zh-CN")
    await his.goto("/approvals")
    await up(his)
    assert (await his.title()).startswith("(1) ")
    for page in (hers, second):
        await up(page)
        await expect(page.locator(".delivery")).to_have_text("Delivered")
        assert await page.locator(".message .icon, .message [role=alert]").count() == 0

    await his.goto(path)
    await expect(his.locator("#new")).to_be_visible()
    await expect(hers.locator(".delivery")).to_have_text("Seen")
    await expect(second.locator(".delivery")).to_have_text("Seen")
    await expect(his.locator("#badge-unread")).to_be_hidden()
    await expect(his).to_have_title(re.compile(r"^[^(]"))

    await hers.locator("#composer-text").fill("half")
    await his.locator(".message").first.hover()
    await his.locator("[data-reply]").first.click()
    await write(his, "r1")
    for page in (hers, second, his):
        await shows(page, "one", "r1")
        await expect(page.locator("#messages .quote")).to_have_count(0)
    await asyncio.gather(write(second, "two"), write(his, "three"))
    await expect(hers.locator("#messages .message")).to_have_count(4)
    assert await hers.locator("#composer-text").input_value() == "half", "the draft is untouched"
    for number in (2, 3):
        await his.locator(".message").first.hover()
        await his.locator("[data-reply]").first.click()
        await write(his, f"r{number}")
    await expect(hers.locator("#messages .message")).to_have_count(6)
    await expect(hers.locator(".replies").first).to_contain_text("3 replies")
    await expect(hers.locator("#messages .quote")).to_have_count(1)

    await hers.locator("#composer-text").fill("half")
    live = await hers.locator("#messages .message .md").all_text_contents()
    ids = "[...document.querySelectorAll('#messages > .message')].map(e => e.id)"
    order = await hers.evaluate(ids)
    for page in (hers, second, his):
        await expect(page.locator("#outbox > *")).to_have_count(0)
        await page.reload()
        await up(page)
        assert await page.locator("#messages .message .md").all_text_contents() == live
        await is_sound(page, axe)
    assert await hers.evaluate(ids) == order
    await expect(hers.locator("#composer-text")).to_have_value("half")
    await hers.goto("/conversations")
    await hers.go_back()
    await up(hers)
    await expect(hers.locator("#composer-text")).to_have_value("half")
    await hers.locator("#composer-text").press("Enter")
    await expect(his.locator("#messages .message .md").last).to_have_text("half")
    await hers.reload()
    await expect(hers.locator("#composer-text")).to_have_value("")


@pytest.mark.requirement("UI-4", "UI-8", "UI-89", "AUN-13", "CON-82", "CON-103", "CON-64")
async def test_an_agent_begins_and_nobody_is_moved(
    lived: House, page_for: PageFor, axe: Axe
) -> None:
    agent, ines = the_agent(lived), lived.world.acme["ada"]
    page = await lived.page(page_for, ines)
    await page.goto("/conversations")
    await up(page)
    await is_sound(page, axe)
    await say(agent, me(ines), "s-1", "Paper runs low.")
    await expect(page.locator(".chat-row")).to_contain_text("started by the agent")
    await expect(page.locator("#badge-unread")).to_have_attribute("data-count", "1")
    await expect(page).to_have_title(re.compile(r"^\(1\) "))
    await expect(page.locator("#status")).to_contain_text("New message from")
    await page.locator(".chat-row a").click()
    await up(page)
    await expect(page.locator(".panel")).to_contain_text("It may answer, not answer")
    await page.get_by_role("link", name="Check connection").click()
    await expect(page.locator("#presence")).to_contain_text("checked")

    for number in range(OLDER):
        await say(agent, me(ines), f"n-{number}", f"line {number}\n\nmore")
    await expect(page.locator("#messages .message")).to_have_count(OLDER + 1)
    await expect(page.locator("#badge-unread")).to_be_hidden()
    await page.reload()
    await up(page)
    await expect(page.locator("#new")).to_have_count(0)
    await expect(page.locator("#messages .message")).to_have_count(50)
    await page.mouse.move(600, 300)
    await page.mouse.wheel(0, -1200)
    await expect(page.locator("#jump")).to_be_visible()
    before = await page.evaluate("scrollY")
    for number in range(5):
        await say(agent, me(ines), f"q-{number}", f"new {number}")
    await expect(page.locator("#jump")).to_have_text("↓ 5 new")
    assert await page.evaluate("scrollY") == before
    spoken = page.locator("#status p")
    await expect(spoken.first).to_contain_text(re.compile("messages|New message"))
    await page.locator("#jump").click()
    await expect(page.locator("#messages .message").last).to_be_in_viewport()
    await expect(page.locator("#jump")).to_be_hidden()
    await say(agent, me(ines), "last", "the end")
    await expect(page.locator("#messages .message").last).to_be_in_viewport()
    await page.evaluate("scrollTo(0, 0)")
    await expect(page.locator("#messages .message")).to_have_count(OLDER + 7)


@pytest.mark.requirement("CON-62", "UI-47", "UI-1", "CON-76")
async def test_enter_of_an_input_method_sends_nothing_and_a_lost_message_is_tried_again(
    lived: House, page_for: PageFor
) -> None:
    alice, axel = lived.world.acme["alice"], lived.world.acme["axel"]
    await say(me(axel), me(alice), "x-1", "begin")
    page = await lived.page(page_for, alice)
    await page.goto("/conversations")
    await page.get_by_text("begin").click()
    await up(page)
    await page.locator("#composer-text").focus()
    cdp = await page.context.new_cdp_session(page)
    composed = {"text": "ni", "selectionStart": 2, "selectionEnd": 2}
    await cdp.send("Input.imeSetComposition", composed)
    await page.keyboard.press("Enter")
    await cdp.send("Input.insertText", {"text": "你"})
    await expect(page.locator("#messages .message")).to_have_count(1)

    await page.route("**/messages", lambda route: route.abort())
    await page.locator("#composer-text").fill("lost")
    await page.get_by_role("button", name="Send").click()
    await expect(page.get_by_text("Not sent.")).to_be_visible()
    await page.reload()
    await up(page)
    await expect(page.get_by_text("Not sent.")).to_be_visible()
    await page.unroute("**/messages")
    await page.get_by_role("button", name="Try again").click()
    await shows(page, "begin", "lost")
    await expect(page.locator("#outbox > *")).to_have_count(0)
    stored = db.read_now(
        lambda s: [m for m in s.exec(select(Message)) if (m.payload or {}).get("text") == "lost"]
    )
    assert len(stored) == 1


@pytest.mark.requirement("UI-47", "CON-69")
async def test_what_is_sent_quickly_keeps_its_order_on_a_slow_network(
    lived: House, page_for: PageFor
) -> None:
    alice, olga = lived.world.acme["alice"], lived.world.acme["olga"]
    await say(me(olga), me(alice), "slow-1", "begin slowly")
    page = await lived.page(page_for, alice)
    await page.goto("/conversations")
    await page.get_by_text("begin slowly").click()
    await up(page)
    asked: list[Route] = []
    through = asyncio.Event()

    async def hold(route: Route) -> None:
        asked.append(route)
        await through.wait()
        await route.continue_()

    await page.route("**/messages", hold)
    for text in ("one", "two", "three"):
        await write(page, text)
    await expect(page.locator("#outbox > *")).to_have_count(3)
    assert len(asked) == 1
    through.set()
    await shows(page, "begin slowly", "one", "two", "three")
    await expect(page.locator("#outbox > *")).to_have_count(0)
    await page.reload()
    await shows(page, "begin slowly", "one", "two", "three")


@pytest.mark.requirement("UI-6", "UI-7", "CON-88", "CON-89", "UI-58")
async def test_groups_tools_and_long_texts_fit_a_phone(
    lived: House, page_for: PageFor, axe: Axe
) -> None:
    alice, bob = lived.world.acme["alice"], lived.world.acme["bob"]
    agent = the_agent(lived)
    hers = await lived.page(page_for, alice, width=320, theme="dark", lang="zh-CN")
    await hers.goto("/conversations/new/group")
    await is_sound(hers, axe)
    await hers.locator(".rail-more summary").click()
    for entry in ("/conversations", "/approvals", "/commands", "/welcome", "/audit", "/settings"):
        await expect(hers.locator(f".rail a[href='{entry}']:not(.brand)")).to_be_visible()
    await is_sound(hers, axe)
    await hers.locator(".rail-more summary").click()
    await hers.locator("[name=name]").fill("月末结账")
    for party in (me(bob), agent):
        await hers.locator(f"input[value='{party.aid}']").check()
    await hers.locator("main form button.primary").first.click()
    await hers.wait_for_url(re.compile(r"/conversations/\w{26}$"))
    path = hers.url.removeprefix(lived.base_url)
    await hers.goto(f"{path}/settings")
    await hers.locator("input[value=mention-only]").check()
    await hers.locator("main form button.primary").first.click()
    await expect(hers.locator(".notice-ok")).to_be_visible()
    await is_sound(hers, axe)
    await hers.goto(f"{path}/members?q=axel")
    await is_sound(hers, axe)
    await hers.goto(path)
    await up(hers)
    his = await lived.page(page_for, bob)
    await his.goto(path)
    await up(his)

    await hers.locator("#composer-text").fill(f"{LONG_URL}\n\n```\n{'y' * 300}\n```")
    await hers.locator("#composer button.primary").click()
    await hers.locator("#composer-text").fill("مرحبا `code 12` بكم")
    await hers.locator("#composer button.primary").click()
    for page in (hers, his):
        await expect(page.locator("#messages .message")).to_have_count(2)
        await expect(page.locator(".kept")).to_have_count(2)
        await is_sound(page, axe)
    arabic = his.locator("#messages .md").last
    assert await arabic.evaluate("each => getComputedStyle(each).direction") == "rtl"
    group = await rpc.invoke(me(alice), "group.list_my", {})
    group_id = group["items"][0]["group_id"]
    tool = {"type": "tool_call", "call_id": "1", "name": "list", "arguments": {"a": "<b>"}}
    sent = {"group_id": group_id, "message_id": "t-1", "payload": tool}
    await rpc.invoke(agent, "group.send", sent)
    card = his.locator(".reported")
    await expect(card).to_contain_text("reported by")
    await card.locator("summary").click()
    assert await card.locator("button, form, a, input").count() == 0
    await is_sound(his, axe)
    leaving = {"group_id": group_id, "aid": me(bob).aid}
    await rpc.invoke(me(alice), "group.kick", leaving)
    await expect(his.get_by_text("You do not take part")).to_be_visible(timeout=10_000)
    await expect(his.locator(".chat-row", has_text="月末结账")).to_have_count(0)


@pytest.mark.requirement("UI-25")
async def test_without_script_one_reads_and_writes(lived: House, page_for: PageFor) -> None:
    axel, bob = lived.world.acme["axel"], lived.world.acme["bob"]
    page = await lived.page(page_for, bob, javascript=False)
    await page.goto(f"/conversations/new?to={me(axel).aid}")
    await page.locator("#composer-text").fill("plain")
    await page.get_by_role("button", name="Send").click()
    await shows(page, "plain")
    await page.get_by_role("link", name=re.compile("^Reply")).click()
    await page.locator("#composer-text").fill("again")
    await page.get_by_role("button", name="Send").click()
    await shows(page, "plain", "again")
    await page.get_by_role("button", name="Take back").last.click()
    await expect(page.get_by_text("This message was taken back.")).to_be_visible()
