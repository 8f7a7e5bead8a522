"""What is written, copied, dropped, searched and exported: nothing is lost, changed or run."""

import asyncio
import csv
import io
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import CDPSession, Page, expect
from sqlalchemy import insert
from sqlmodel import select

from app.audit import trail
from app.audit.trail import NewEntry
from app.aun import rpc
from app.aun.caller import Caller
from app.aun.models import Message
from app.identity.models import Agent, User
from app.kernel import db, deltas, ids, settings
from app.kernel.db import Work
from app.kernel.models import EventHead
from app.runs.models.scripted import ScriptedModel, Step
from e2e.board import House, house
from e2e.conftest import Axe, PageFor, Watch
from tests.aun.conversation_rows import caller_of
from tests.commands.asking import SEND, Asking
from tests.runs.playing import Stage, playing

pytestmark = pytest.mark.anyio
NAME = "出差报销助手"
SENTENCE = "请帮我把十月份去上海出差的住宿费、交通费和餐费整理成一张出差报销单,然后交给部门经理审批"
TYPED = [
    "test<test",
    "a < b && c > d",
    "&lt;b&gt; &amp; &#60;",
    "<img src=x onerror=alert(1)><script>alert(2)</script>",
    "<hx-get='/x'> {{ 7*7 }} ${7*7} \\n %s",
    "```\n<b>  two  spaces\n```",
    "«quotes» \"double\" 'single' \u202eright\u202c 出差 😀",
]
FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", '=HYPERLINK("http://x.example")', "出差报销"]
SUBMITS = """
globalThis.submits = 0;
addEventListener('submit', () => { globalThis.submits += 1; }, true);
"""
KEYBOARD = """
const whole = {height: innerHeight, offsetTop: 0, scale: 1};
globalThis.screen_ = Object.assign(new EventTarget(), whole);
Object.defineProperty(globalThis, 'visualViewport', {get: () => screen_});
"""
NOTIFICATION = """
globalThis.shown = [];
globalThis.Notification = class {
  static permission = 'granted';
  constructor(text, {tag}) { shown.push({tag, click: () => this.onclick()}); }
  close() {}
};
localStorage.notify = 'on';
"""
HIDE = """() => {
  Object.defineProperty(document, 'hidden', {configurable: true, get: () => true});
  document.dispatchEvent(new Event('visibilitychange'));
}"""
TIMED = """() => {
  globalThis.took = [];
  new PerformanceObserver((list) => list.getEntries().forEach(({name, duration}) => {
    if (name === 'keydown') took.push(duration);
  })).observe({type: 'event', durationThreshold: 16});
}"""


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with (
        pytest.MonkeyPatch.context() as monkeypatch,
        house(tmp_path_factory.mktemp("contents"), monkeypatch) as made,
    ):
        yield made


@pytest.fixture(scope="module")
def asking(stage: Stage) -> Asking:
    return stage.asking


@pytest.fixture(scope="module")
def stage(lived: House) -> Stage:
    """The desk of expenses, whose agent alice lets act for her."""
    return Stage(lived.world)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedModel]:
    """What every agent thinks with: it says nothing, and keeps what it was asked."""
    monkeypatch.setenv("ASSENT_MODEL", "scripted:loop")
    settings.current.cache_clear()
    yield playing(*[Step(text="Heard.")] * 9)
    monkeypatch.undo()
    settings.current.cache_clear()


@pytest.fixture(autouse=True)
def sound(lived: House, quiet: Watch) -> Iterator[None]:
    quiet.tolerate("503", "ERR_FAILED", "ERR_INCOMPLETE", "ERR_ABORTED")
    yield
    lived.control.reset()


def me(user: User) -> Caller:
    return caller_of(db.read_now(lambda s: s.get_one(User, (user.tenant_id, user.id))))


async def say(caller: Caller, to: Caller, message_id: str, text: str) -> None:
    payload = {"type": "text", "text": text}
    params = {"to": to.aid, "message_id": message_id, "payload": payload}
    await rpc.invoke(caller, "message.send", params)


async def up(page: Page) -> None:
    await expect(page.locator("html[data-live=up]")).to_be_attached(timeout=15_000)


async def opened(lived: House, page_for: PageFor, path: str, who: str, **look: Any) -> Page:
    page = await lived.page(page_for, lived.world.acme[who], **look)
    await page.goto(path)
    return page


async def talk(page: Page, to: str) -> None:
    """Begin or open the conversation with an AID."""
    await page.goto(f"/conversations/new?to={to}")
    if not re.search(r"/conversations/\w{26}$", page.url):
        await page.locator("#composer-text").fill("begin")
        await page.keyboard.press("Enter")
        await page.wait_for_url(re.compile(r"/conversations/\w{26}$"))
    await up(page)


async def compose(page: Page, text: str) -> None:
    """Choose a candidate of an input method with Enter, in the field that has the focus."""
    cdp = await page.context.new_cdp_session(page)
    composed = {"text": "chuchai", "selectionStart": 7, "selectionEnd": 7}
    await cdp.send("Input.imeSetComposition", composed)
    await page.keyboard.press("Enter")
    await cdp.send("Input.insertText", {"text": text})


@pytest.mark.requirement("CON-63", "UI-94")
async def test_enter_of_an_input_method_only_puts_the_text_in_everywhere(
    lived: House, page_for: PageFor, asking: Asking
) -> None:
    report = await asking.desk.approved("alice", 2_000)
    row = await asking.ask(asking.call("fiona", SEND, report))
    page = await lived.page(page_for, lived.world.acme["frank"])
    await page.add_init_script(SUBMITS)
    fields = {
        "/agents": "#q",
        "/conversations/new": "#q",
        "/commands": "#q",
        "/audit": "[name=command]",
        f"/approvals/{row.id}": "input[name=typed]",
        f"/approvals/{row.id}#deny": "[data-deny] textarea",
    }
    for path, name in fields.items():
        await page.goto(path)
        await page.reload()
        field = page.locator(name).first
        await field.focus()
        await compose(page, "出差")
        await expect(field).to_have_value("出差")
        assert await page.evaluate("submits") == 0, path
    assert asking.row(row.id).state == "open"
    await page.goto("/agents")
    await page.locator("#q").fill("出差")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/agents?q=*")


@pytest.mark.requirement("CON-74")
async def test_a_tab_that_slept_sends_and_what_it_missed_stands_above(
    lived: House, page_for: PageFor
) -> None:
    alice, bob = lived.world.acme["alice"], lived.world.acme["bob"]
    await say(me(bob), me(alice), "y-1", "yesterday")
    await db.transaction(_a_day_ago, "y-1")
    page = await opened(lived, page_for, f"/conversations/new?to={me(bob).aid}", "alice")
    await up(page)
    lived.control.stream("status", 503)
    lived.control.stream("drop")
    await expect(page.locator("html[data-live=down]")).to_be_attached(timeout=10_000)
    for number in (2, 3):
        await say(me(bob), me(alice), f"y-{number}", f"missed {number}")

    await page.locator("#composer-text").fill("awake")
    await page.keyboard.press("Enter")
    texts = page.locator("#messages .message .md")
    await expect(texts).to_have_text(["yesterday", "awake"])
    lived.control.stream("ok")
    await page.evaluate("dispatchEvent(new Event('online'))")
    await expect(texts).to_have_text(["yesterday", "missed 2", "missed 3", "awake"])
    await expect(page.locator("#outbox > *")).to_have_count(0)
    order = "[...document.querySelectorAll('#messages > li:not(#new)')].map((each) => each.id)"
    live = await page.evaluate(order)
    assert [each.split("-")[0] for each in live] == [
        *("day", "message", "day", "message", "message", "message")
    ]
    await page.reload()
    await up(page)
    assert await page.evaluate(order) == live


def _a_day_ago(work: Work, message_id: str) -> None:
    row = work.session.exec(select(Message).where(Message.message_id == message_id)).one()
    row.sent_at -= timedelta(days=1)
    row.sent_ms -= 86_400_000
    work.session.add(row)


@pytest.mark.requirement("CON-77", "CON-76", "UI-88")
async def test_typing_is_fluid_among_ten_thousand_messages_while_a_thought_streams(
    lived: House, page_for: PageFor, record_property: Any
) -> None:
    alice, axel = lived.world.acme["alice"], lived.world.acme["axel"]
    await db.transaction(_later)
    await say(me(alice), me(axel), "t-last", "the newest")
    await db.transaction(_ten_thousand, "t-last")
    page = await opened(lived, page_for, f"/conversations/new?to={me(axel).aid}", "alice")
    await up(page)
    await expect(page.locator("#messages .message")).to_have_count(50)
    await page.evaluate(TIMED)
    node = '<li id="turn-1" data-seq="99999999"><p id="thought-1-text" data-streaming></p></li>'
    await asyncio.to_thread(lived.emit, [("#messages", "beforeend", node)])
    await expect(page.locator("#thought-1-text")).to_be_attached()

    whole = asyncio.Event()

    async def stream() -> int:
        """A hundred words a second, and as many news of the list, until all is typed."""
        at = 0
        while not whole.is_set():
            deltas.append(alice.tenant_id, alice.id, "thought-1-text", at, f"word {at:06} ")
            at += 12
            await asyncio.to_thread(lived.emit, [("#nobody", "outerHTML", "<p></p>")])
        return at

    streaming = asyncio.create_task(stream())
    text = "I write while all of this goes on, and every letter is there. "
    await page.locator("#composer-text").focus()
    meter = await page.context.new_cdp_session(page)
    await meter.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = await worked(meter)
    await page.keyboard.type(text, delay=15)
    busy = await worked(meter) - before
    whole.set()
    at = await streaming
    await expect(page.locator("#composer-text")).to_have_value(text)
    assert at > 1_000, "it streamed meanwhile"
    took = sorted(await page.evaluate("took"))
    record_property("keydown_p95_ms", took[int(len(took) * 0.95)] if took else 16)
    assert busy / len(text) < 50, "ms of work for each letter and all that streams meanwhile"
    assert await page.evaluate("document.querySelectorAll('*').length") < 6_000
    await page.keyboard.press("Enter")
    await expect(page.locator("#messages .message .md").last).to_have_text(text.strip())
    await expect(page.locator("#messages .message")).to_have_count(51)


async def worked(meter: CDPSession) -> float:
    """Milliseconds that the page's main thread worked, whatever else the machine does."""
    metrics = (await meter.send("Performance.getMetrics"))["metrics"]
    [seconds] = [each["value"] for each in metrics if each["name"] == "TaskDuration"]
    return float(seconds) * 1_000


def _later(work: Work) -> None:
    """So much has happened that there is room for as many messages."""
    for each in work.session.exec(select(EventHead)).all():
        each.seq += 10_000
        work.session.add(each)


def _ten_thousand(work: Work, message_id: str) -> None:
    """As many messages before one of them, all like it."""
    row = work.session.exec(select(Message).where(Message.message_id == message_id)).one()
    like = row.model_dump()
    rows = [
        like
        | {
            "id": ids.ulid(),
            "message_id": f"t-{number}",
            "log_seq": row.log_seq - number,
            "sent_at": row.sent_at - timedelta(minutes=number),
            "sent_ms": row.sent_ms - number * 60_000,
        }
        for number in range(1, 10_000)
    ]
    work.connection.execute(insert(Message), rows)


@pytest.mark.requirement("CON-86", "CON-85", "UI-58")
async def test_what_was_typed_reaches_the_model_and_other_programs_as_it_was_typed(
    lived: House, page_for: PageFor, stage: Stage, model: ScriptedModel
) -> None:
    page = await lived.page(page_for, lived.world.acme["alice"])
    await talk(page, stage.aid("expenses"))
    for text in TYPED:
        await page.locator("#composer-text").fill(text)
        await page.locator("#composer button.primary").click()
        await expect(page.locator("#outbox > *")).to_have_count(0)
    await expect(page.locator("#messages .message-own")).to_have_count(len(TYPED) + 1)
    await expect(page.locator("#messages .md").nth(1)).to_have_text(TYPED[0])

    await stage.play()
    heard = [str(entry.body.get("text", "")) for ask in model.asks for entry in ask.entries]
    for text in TYPED:
        assert any(text in each for each in heard), text

    pulled = await rpc.invoke(stage.caller("expenses"), "message.pull", {"limit": 100})
    told = [each["payload"]["text"] for each in pulled["messages"]]
    assert [each for each in told if each in TYPED] == TYPED


@pytest.mark.requirement("CON-87")
@pytest.mark.parametrize("lang", ["en", "zh-CN"])
async def test_copying_without_permission_offers_a_way_out_and_says_so(
    lived: House, page_for: PageFor, axe: Axe, lang: str
) -> None:
    alice, bob = lived.world.acme["alice"], lived.world.acme["bob"]
    await say(me(bob), me(alice), f"code-{lang}", "See:\n\n```python\nprint('copied')\n```")
    page = await opened(lived, page_for, f"/conversations/new?to={me(bob).aid}", "alice", lang=lang)
    await up(page)
    names = {"en": ("Copy the code", "Copied", "Press Ctrl+C"), "zh-CN": ("复制代码",) * 3}
    block = page.locator("#messages .code").last
    copy = block.get_by_role("button", name=names[lang][0])
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await copy.focus()
    await page.keyboard.press("Enter")
    await expect(block.locator("[data-copied]")).to_be_visible()
    await paste(page)
    await page.context.clear_permissions()
    await copy.click()
    way_out = block.locator("[data-copy-failed]")
    await expect(way_out).to_be_visible()
    await expect(page.locator("#status")).to_contain_text(await way_out.inner_text())
    assert await page.evaluate("`${getSelection()}`.trim()") == "print('copied')"
    await page.keyboard.press("Control+c")
    await paste(page)
    assert await axe(page) == []
    await page.goto("/connect")
    await page.locator(".copyable [data-copy]").first.click()
    await expect(page.locator("[data-copy-failed]").first).to_be_visible()


@pytest.mark.requirement("UI-61", "CON-87")
async def test_a_message_is_copied_as_it_was_written(lived: House, page_for: PageFor) -> None:
    alice, bob = lived.world.acme["alice"], lived.world.acme["bob"]
    written = "**Paid** `EXP-1`\n\n- 第一 \\*\n- <b>two</b>"
    await say(me(bob), me(alice), "as-written", written)
    page = await opened(lived, page_for, f"/conversations/new?to={me(bob).aid}", "alice")
    await up(page)
    message = page.locator("#messages .message").last
    copy = message.get_by_role("link", name=f"Copy the message of {bob.display_name}")
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await copy.focus()
    await page.keyboard.press("Enter")
    await expect(page.locator("#status")).to_contain_text("Copied")
    await page.locator("#composer-text").focus()
    await page.keyboard.press("Control+v")
    await expect(page.locator("#composer-text")).to_have_value(written)

    await page.context.clear_permissions()
    await message.locator("[data-source]").click()
    await expect(page.locator("#status")).to_contain_text("Press Ctrl+C")
    assert (await page.evaluate("`${getSelection()}`")).startswith("Paid EXP-1")
    await expect(copy).to_be_visible()  # its own word again


async def paste(page: Page) -> None:
    """What was copied arrives where it is pasted."""
    text = page.locator("#composer-text")
    await text.fill("")
    await text.focus()
    await page.keyboard.press("Control+v")
    await expect(text).to_have_value(re.compile(r"^print\('copied'\)\s*$"))
    await text.fill("")


@pytest.mark.requirement("CON-91")
async def test_a_phone_keyboard_covers_neither_composer_nor_buttons(
    lived: House, page_for: PageFor, asking: Asking
) -> None:
    alice, bob = lived.world.acme["alice"], lived.world.acme["bob"]
    for number in range(12):
        await say(me(bob), me(alice), f"p-{number}", f"line {number}\n\nmore of it")
    page = await lived.page(page_for, alice, width=320)
    await page.add_init_script(KEYBOARD)
    await talk(page, me(bob).aid)
    if await page.locator("#jump").is_visible():
        await page.locator("#jump").click()
    await expect(page.locator(".chat-row:has([aria-current]) .chat-unread")).to_have_count(0)
    await page.locator("#composer-text").focus()
    await covered(page, 300)
    for name in ("#composer-text", "#composer button.primary", "#messages .message:last-child .md"):
        assert await bottom(page, name) <= await page.evaluate("screen_.height"), name
    await covered(page, 0)
    await expect(page.locator("#messages .message").last).to_be_in_viewport()
    assert await bottom(page, "#composer") <= await page.evaluate("innerHeight") - 60

    await page.goto("/settings/delegations")
    await page.locator("[data-dialog]").first.click()
    await covered(page, 300)
    for button in await page.locator("dialog[open] .actions button").all():
        assert await bottom(page, button) <= await page.evaluate("screen_.height")

    report = await asking.desk.approved("alice", 3_000)
    row = await asking.ask(asking.call("fiona", SEND, report))
    page = await lived.page(page_for, lived.world.acme["frank"], width=320)
    await page.add_init_script(KEYBOARD)
    await page.goto(f"/approvals/{row.id}")
    await page.locator("input[name=typed]").focus()
    await covered(page, 300)
    for button in await page.locator("[data-arm], .deny > summary").all():
        assert await bottom(page, button) <= await page.evaluate("screen_.height")


async def covered(page: Page, px: int) -> None:
    """The keyboard covers so much of the bottom."""
    await page.evaluate(
        """(px) => {
          screen_.height = innerHeight - px;
          screen_.dispatchEvent(new Event('resize'));
          return new Promise((then) => requestAnimationFrame(() => setTimeout(then)));
        }""",
        px,
    )


async def bottom(page: Page, what: Any) -> float:
    """Where something ends on the screen."""
    found = page.locator(what).last if isinstance(what, str) else what
    return float(await found.evaluate("(each) => each.getBoundingClientRect().bottom"))


@pytest.mark.requirement("CON-95", "UI-49")
async def test_a_notification_leads_to_the_message_of_its_own_conversation(
    lived: House, page_for: PageFor
) -> None:
    alice, bob, olga = (lived.world.acme[name] for name in ("alice", "bob", "olga"))
    for number in range(30):
        await say(me(olga), me(alice), f"b-{number}", f"line {number}")
    page = await lived.page(page_for, alice)
    await page.add_init_script(NOTIFICATION)
    await talk(page, me(olga).aid)
    with_olga = page.url
    await page.locator("#messages .message").last.scroll_into_view_if_needed()
    row = page.locator(f"#conversation-{with_olga.rpartition('/')[2]}-row")
    await expect(row.locator(".chat-unread")).to_have_count(0)
    await talk(page, me(bob).aid)
    await page.evaluate(HIDE)
    await say(me(olga), me(alice), "b-news", "it is about this")
    await page.wait_for_function("() => shown.length")
    [tag] = await page.evaluate("shown.map((each) => each.tag)")
    assert tag == f"conversation-{with_olga.rpartition('/')[2]}"
    await page.evaluate("shown[0].click()")
    await page.wait_for_url(with_olga)
    await expect(page.locator(".message", has_text="it is about this")).to_be_in_viewport()


@pytest.mark.requirement("CON-99", "CON-100")
async def test_an_export_computes_nothing_and_a_spreadsheet_reads_its_chinese(
    lived: House, page_for: PageFor
) -> None:
    acme = lived.world.acme
    for number, text in enumerate(FORMULAS):
        await db.transaction(_recorded, acme["alice"], text, number)
    page = await opened(lived, page_for, "/audit?command=csv.of", "axel")
    async with page.expect_download() as started:
        await page.get_by_role("link", name=re.compile("^Export CSV")).click()
    raw = Path(await (await started.value).path()).read_bytes()  # noqa: ASYNC240 - small

    assert raw.startswith(b"\xef\xbb\xbf"), "how a spreadsheet knows it for UTF-8"
    assert raw.count(b"\r\n") == raw.count(b"\n") == len(FORMULAS) + 1
    rows = list(csv.DictReader(io.StringIO(raw.decode("utf-8-sig"), newline="")))
    *wild, plain = [row["target_id"] for row in reversed(rows)]
    assert wild == [f"'{text}" for text in FORMULAS[:-1]]
    assert plain == FORMULAS[-1]
    for row in rows:
        for value in row.values():
            assert not re.match(r"[=+@\t\r]|-(?!$)", value), value


def _recorded(work: Work, user: User, text: str, number: int) -> None:
    entry = NewEntry(
        tenant_id=user.tenant_id,
        call_id=ids.ulid(),
        command=f"csv.of.{number}",
        outcome="done",
        channel="console",
        user_id=user.id,
        target_id=text,
        reason="出差",
    )
    trail.append(work, entry)


@pytest.mark.requirement("CON-101")
async def test_chinese_is_found_by_a_word_a_character_and_a_sentence(
    lived: House, page_for: PageFor
) -> None:
    ada = lived.world.acme["ada"]
    await db.transaction(_renamed, lived.world.acme.agents["expenses"])
    page = await lived.page(page_for, ada)
    searches = {
        "/agents": (NAME, "销", "ＥＸＰＥＮＳＥＳ", SENTENCE),  # noqa: RUF001 - as it is typed
        "/admin/agents": (NAME, "销", SENTENCE),
        "/conversations/new": (NAME, "销", f"{NAME} ＥＸＰＥＮＳＥＳ"),  # noqa: RUF001
        "/commands": ("提交报销单", "销"),
        "/admin/commands": ("提交报销单", "销"),
    }
    for path, asked in searches.items():
        for each in asked:
            await page.goto(path)
            await page.locator("#q").fill(each)
            await page.keyboard.press("Enter")
            await page.wait_for_url("**q=*")
            result = "Submit expense report" if "commands" in path else NAME
            found = page.locator("main :is(a, td, th, bdi)", has_text=result).first
            await expect(found).to_be_visible()
        await page.goto(f"{path}?q=无此名称")
        await expect(page.locator("main :is(a, td, th, bdi)", has_text=result)).to_have_count(0)


def _renamed(work: Work, agent: Agent) -> None:
    row = work.session.get_one(Agent, (agent.tenant_id, agent.id))
    row.name, row.description = NAME, SENTENCE
    work.session.add(row)


@pytest.mark.requirement("CON-104", "CON-90")
async def test_a_file_dropped_on_the_page_opens_nothing_and_the_draft_stays(
    lived: House, page_for: PageFor, tmp_path: Path
) -> None:
    file = tmp_path / "receipt.html"
    file.write_text("<h1>opened</h1>")
    bob = lived.world.acme["bob"]
    page = await lived.page(page_for, lived.world.acme["alice"])
    await talk(page, me(bob).aid)
    await page.locator("#composer-text").fill("half a sentence")
    here = page.url
    for name in ("#messages", "#composer-text", ".rail", "#composer button.primary"):
        await drop(page, name, file)
    await page.goto(f"{lived.base_url}/agents")
    await drop(page, "main h1", file)
    assert page.url.endswith("/agents")
    await page.goto(here)
    await expect(page.locator("#composer-text")).to_have_value("half a sentence")


async def drop(page: Page, name: str, file: Path) -> None:
    """Drop a file from the desktop there; the page stays what it is."""
    box, seen = await page.locator(name).first.bounding_box(), page.viewport_size
    assert box is not None
    assert seen is not None
    top, bottom = max(box["y"], 0), min(box["y"] + box["height"], seen["height"])  # of what is seen
    cdp = await page.context.new_cdp_session(page)
    await page.evaluate("globalThis.stays = true")
    data = {"items": [], "files": [str(file)], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        await cdp.send(
            "Input.dispatchDragEvent",
            {"type": kind, "x": box["x"] + 5, "y": (top + bottom) / 2, "data": data},
        )
    await page.evaluate("fetch('/healthz')")  # a while in which it would have gone
    assert await page.evaluate("globalThis.stays"), name
    assert len(page.context.pages) == 1, name
