"""Agents at work in a browser: what grows, ends and comes moves nobody, and is said once.

The rows are what the loop writes; the stream, the pages and the hub are the real ones.
"""

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.async_api import Page, expect
from sqlmodel import col, select

from app.aun import rpc
from app.aun.caller import Caller
from app.aun.models import IdentityKind
from app.console.live import stream
from app.identity.models import User
from app.kernel import clock, db, deltas
from app.kernel.db import Work
from app.runs import told
from app.runs.run_models import ModelRequest, Run, ToolCall
from e2e.board import House, house
from e2e.conftest import PageFor, Watch
from tests.aun.conversation_rows import caller_of
from tests.commands.asking import SEND, Asking
from tests.console import run_rows, run_stage
from tests.console.run_rows import RunRows
from tests.console.run_stage import Stage
from tests.packs.expenses.desk import Desk

pytestmark = pytest.mark.anyio
LINES, DELTAS, TALL = 30, 2_000, 600
CODE = "```python\ndef first():\n    return 'kept'\n```"
BLOCK = "```\n" + "\n".join(f"line {number}" for number in range(40)) + "\n```"
WATCH = """() => {
  globalThis.spoken = [];
  const hear = (live) => ({addedNodes}) => addedNodes.forEach((each) => {
    if (each.textContent.trim()) spoken.push(`${live}: ${each.textContent.trim()}`);
  });
  for (const live of ['status', 'alerts']) {
    const observer = new MutationObserver((changes) => changes.forEach(hear(live)));
    observer.observe(document.getElementById(live), {childList: true, subtree: true});
  }
}"""
TOUCHED = """(node) => {
  globalThis.touched = [];
  const isOfIt = (each) => (each.closest ? each : each.parentElement)?.closest(`#${node}, .meta`);
  const observer = new MutationObserver((changes) => {
    for (const {target} of changes) if (!isOfIt(target)) touched.push(target.outerHTML);
  });
  const all = {childList: true, subtree: true, characterData: true};
  observer.observe(document.getElementById('messages'), all);
}"""
PAINTED = "() => new Promise((then) => requestAnimationFrame(() => requestAnimationFrame(then)))"
ORDER = """() => [...document.querySelectorAll('#messages > li:not(#new)')]
  .filter((each) => !each.hidden)
  .map((each) => `${each.id} ${each.className.includes('message-continued')} ${each.textContent
    .replace(/\\d+ (ms|s)\\b|\\d:\\d\\d/g, '').replace(/\\s+/g, ' ')}`)"""


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with (
        pytest.MonkeyPatch.context() as monkeypatch,
        house(tmp_path_factory.mktemp("thoughts"), monkeypatch) as made,
    ):
        end = stream.listen()  # what passes goes out too, as from a server that was started
        yield made
        end()


@pytest.fixture(autouse=True)
def sound(lived: House, quiet: Watch) -> Iterator[None]:
    quiet.tolerate("ERR_FAILED", "ERR_INCOMPLETE", "ERR_ABORTED")
    yield
    lived.control.reset()


class Play:
    """One run of the agent in the conversation of Alice, told step by step."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.run_id, self.thought_id, self.at = stage, "", "", 0

    @property
    def agent(self) -> Caller:
        """The agent, as it sends."""
        row = self.stage.agent
        return Caller(row.tenant_id, row.aid or "", IdentityKind.AGENT, "hosted")

    @property
    def node(self) -> str:
        """The element whose text grows."""
        return f"thought-{self.thought_id}-1-text"

    async def say(self, message_id: str, text: str, **more: Any) -> None:
        """A message of the agent's to Alice."""
        payload = {"type": "text", "text": text, **more}
        params = {"to": me(self.stage).aid, "message_id": message_id, "payload": payload}
        await rpc.invoke(self.agent, "message.send", params)

    async def think(self) -> None:
        """A request goes out; at the first one the run begins."""
        self.at = 0
        await db.transaction(self._asked)

    def grow(self, text: str) -> None:
        """Its text grows."""
        acme, alice = self.stage.agent.tenant_id, self.stage.alice_id
        deltas.append(acme, alice, self.node, self.at, text)
        self.at += deltas.units(text)

    async def answer(self, thought: str, *tools: str, **call: Any) -> None:
        """The response is accepted, with calls of these tools."""
        await db.transaction(self._answered, thought, tools, call)

    async def done(self) -> None:
        """Every call is done."""
        await db.transaction(self._done)

    async def end(self, state: str = "completed", **row: Any) -> None:
        """The end is stored."""
        await db.transaction(self._ended, state, row)

    def _rows(self, work: Work) -> RunRows:
        if not self.run_id:
            newest = self.stage.newest()
            rows = run_rows.of(work, self.stage.agent, self.stage.alice_id, newest).begin()
            self.run_id = rows.run_id
            rows.at = clock.now()
            return rows
        stage, run = self.stage, self._run(work)
        rows = RunRows(work, stage.agent, stage.alice_id, stage.conversation_id, clock.now())
        rows.run_id, rows.turn, rows.seq = run.id, run.turn, run.turn * 10
        return rows

    def _run(self, work: Work) -> Run:
        return work.session.get_one(Run, (self.stage.agent.tenant_id, self.run_id))

    def _asked(self, work: Work) -> None:
        rows = self._rows(work)
        rows.turn += 1
        self.thought_id = rows.ask(state="started", ended_at=None, finish=None)
        run = rows.become("running", version=rows.turn)
        told.run(work, run)
        work.announce(
            told.Began(
                tenant_id=run.tenant_id,
                user_id=self.stage.alice_id,
                run_id=run.id,
                conversation_id=run.conversation_id,
                turn=run.turn,
                thought_id=self.thought_id,
                attempt=1,
            )
        )

    def _answered(
        self, work: Work, thought: str, tools: tuple[str, ...], call: dict[str, Any]
    ) -> None:
        rows = self._rows(work)
        query = select(ModelRequest).where(ModelRequest.thought_id == self.thought_id)
        request = work.session.exec(query).one()
        request.state, request.ended_at = "done", clock.now()
        work.session.add(request)
        rows._entry("response", {"thoughts": [thought], "text": "", "calls": []})
        made = [rows.call(tool, **{"state": "started", "ended_at": None, **call}) for tool in tools]
        told.turn(work, rows.row, rows.turn, self.thought_id)
        for each in made:
            told.call(work, rows.row, each)

    def _done(self, work: Work) -> None:
        query = select(ToolCall).where(ToolCall.run_id == self.run_id, ToolCall.state == "started")
        for each in work.session.exec(query).all():
            each.state, each.ended_at, each.rev = "done", clock.now(), 2
            work.session.add(each)
            work.session.flush()
            told.call(work, self._run(work), each)

    def _ended(self, work: Work, state: str, row: dict[str, Any]) -> None:
        rows = self._rows(work)
        run = rows.become(state, version=rows.turn + 1, **row)
        told.run(work, run)


def me(stage: Stage) -> Caller:
    """Alice at the console."""
    key = (stage.agent.tenant_id, stage.alice_id)
    return caller_of(db.read_now(lambda session: session.get_one(User, key)))


async def staged(lived: House) -> Play:
    """Alice and the agent, in the one conversation they have, where nothing goes on."""
    await db.transaction(over)
    async with lived.world.client(lived.world.acme["alice"]) as hers:
        return Play(await run_stage.opened(lived.world, hers))


def over(work: Work) -> None:
    """Every run has ended, some time ago."""
    for run in work.session.exec(select(Run).where(col(Run.ended_at).is_(None))).all():
        run.state, run.ended_at = "completed", clock.now()
        work.session.add(run)


async def opened(lived: House, page_for: PageFor, path: str, who: str = "alice") -> Page:
    page = await lived.page(page_for, lived.world.acme[who])
    await page.goto(path)
    await expect(page.locator("html")).to_have_attribute("data-live", "up")
    return page


async def at_end(page: Page) -> None:
    """The end is in view once the page is painted, and nothing offers to go there."""
    await page.evaluate(PAINTED)
    below = "document.getElementById('end').getBoundingClientRect().top - innerHeight"
    assert abs(await page.evaluate(below)) < 2
    await expect(page.locator("#jump")).to_be_hidden()


async def place(page: Page, name: str) -> tuple[float, float]:
    """Where something stands on the screen, and how far the page is scrolled."""
    top = await page.locator(name).evaluate("(each) => each.getBoundingClientRect().top")
    return round(top), round(await page.evaluate("scrollY"))


@pytest.mark.requirement("CON-65", "CON-66", "UI-87")
async def test_whoever_follows_stays_at_the_end_and_whoever_reads_is_not_moved(
    lived: House, page_for: PageFor
) -> None:
    play = await staged(lived)
    for number in range(LINES):
        await play.say(f"f-{number}", f"line {number}")
    page = await opened(lived, page_for, play.stage.path)
    await page.locator("#jump").click()
    await at_end(page)
    await expect(page.locator(".chat-row:has([aria-current]) .chat-unread")).to_have_count(0)

    await play.think()
    head = page.locator(f"#thought-{play.thought_id}-head")
    await expect(head).to_contain_text("Thinking…")
    await head.click()  # whoever opens it reads along
    text = page.locator(f"#{play.node}")
    for number in range(40):
        play.grow(f"\nthought {number}")
    await expect(text).to_contain_text("thought 39")
    assert await text.evaluate("(each) => each.offsetHeight") > TALL
    await at_end(page)
    await play.answer("Short.", "read_record")
    await expect(text).to_have_text("Short.")
    await at_end(page)
    await play.say("f-reply", BLOCK)
    pre = page.locator("#messages .message").last.locator("pre")
    assert await pre.evaluate("(each) => each.offsetHeight") > TALL
    await at_end(page)
    await play.done()
    await expect(page.locator(".tool").last).to_contain_text("Done")
    await at_end(page)

    await play.think()
    await page.locator(f"#thought-{play.thought_id}-head").click()
    await page.mouse.move(600, 300)
    await page.mouse.wheel(0, -40)  # a little is enough
    await expect(page.locator("#jump")).to_be_visible()
    seen = f"#{await page.locator('#messages .message').nth(-2).get_attribute('id')}"
    before = await place(page, seen)
    for number in range(40):
        play.grow(f"\nagain {number}")
    await expect(page.locator(f"#{play.node}")).to_contain_text("again 39")
    assert await place(page, seen) == before
    await play.answer("Shorter than it was.")
    await play.say("f-end", "All of it is done.")
    await play.end("canceled", reason="by_user")
    await expect(page.locator(".strip")).to_have_count(0)
    await expect(page.locator("#jump")).to_have_text("↓ 1 new")
    assert await place(page, seen) == before
    await page.locator("#jump").click()
    await at_end(page)


@pytest.mark.requirement("CON-78", "CON-79", "CON-80", "UI-36", "UI-89")
async def test_code_that_streams_touches_nothing_else_and_is_never_spoken(
    lived: House, page_for: PageFor
) -> None:
    play = await staged(lived)
    await play.say("c-1", f"As before:\n\n{CODE}")
    page = await opened(lived, page_for, play.stage.path)
    block = page.locator("#messages .code").last
    await expect(block.locator(".tok-k, .tok-kd").first).to_be_visible()
    copy = block.get_by_role("button", name="Copy the code")
    await expect(copy).to_be_visible()
    await play.think()
    await page.locator(f"#thought-{play.thought_id}-head").click()
    await copy.evaluate("(each) => { each.kept = true; }")
    await block.locator("pre").evaluate("(each) => getSelection().selectAllChildren(each)")
    await page.evaluate(WATCH)
    await page.evaluate(TOUCHED, play.node)

    whole = (
        "```python\n" + "".join(f"x{number} = {number}\n" for number in range(DELTAS - 2)) + "```"
    )
    pieces = whole.splitlines(keepends=True)
    assert len(pieces) == DELTAS
    for number, piece in enumerate(pieces):
        play.grow(piece)
        if number % 50 == 0:
            await asyncio.sleep(0)  # let streams send
    node = page.locator(f"#{play.node}")
    await expect(node).to_have_text(whole, timeout=15_000)
    assert await page.evaluate("touched") == []
    assert await node.evaluate("(each) => [each.childNodes.length, each.children.length]") == [1, 0]
    assert await page.evaluate("spoken") == []
    assert "return 'kept'" in await page.evaluate("`${getSelection()}`")
    assert await copy.evaluate("(each) => each.kept")
    assert await page.evaluate("document.querySelectorAll('*').length") < 6_000

    await play.answer("Written.")
    await play.say("c-2", "Here it is.")
    await play.end()
    await expect(page.locator(".strip")).to_have_count(0)
    await expect(page.locator("#status")).to_contain_text("New message from")
    assert [each.split(" ")[0] for each in await page.evaluate("spoken")] == ["status:"], "one"
    assert "return 'kept'" in await page.evaluate("`${getSelection()}`")
    assert await copy.evaluate("(each) => each.kept")


@pytest.mark.requirement("CON-70", "UI-3", "UI-5")
async def test_every_kind_of_thing_stands_after_a_reload_where_it_stood(
    lived: House, page_for: PageFor
) -> None:
    play = await staged(lived)
    page = await opened(lived, page_for, play.stage.path)

    async def write(text: str) -> None:
        await page.locator("#composer-text").fill(text)
        await page.keyboard.press("Enter")
        await expect(page.locator("#messages .message .md").last).to_have_text(text)
        await expect(page.locator("#outbox > *")).to_have_count(0)

    for round_ in range(2):
        play.run_id = ""
        await write(f"asked {round_}")
        replied = play.stage.newest()
        await play.think()
        await play.answer("One thing first.", "expense.report.list", "read_record")
        await play.say(f"k-{round_}-1", "I look.", in_reply_to=replied.message_id)
        await play.done()
        await write(f"more {round_}")
        await play.think()
        await play.answer("Then the other.", "send_message", state="failed", stage="load")
        reported = {"type": "tool_result", "call_id": "9", "name": "scan", "result": 1}
        await rpc.invoke(
            play.agent,
            "message.send",
            {"to": me(play.stage).aid, "message_id": f"k-{round_}-2", "payload": reported},
        )
        await play.say(f"k-{round_}-3", "Both at once.", in_reply_to=replied.message_id)
        await play.think()
        await play.answer("Nothing to say.")
        await play.end(("completed", "failed")[round_])
        await expect(page.locator(".strip")).to_have_count(0)
        for last in ("Both at once.", "Nothing to say."):  # an earlier frame may show the end
            shown = page.locator("#messages > li", has_text=last)
            await expect(shown).to_have_count(round_ + 1)
    await expect(page.locator(".run-end")).not_to_have_count(0)

    live = await page.evaluate(ORDER)
    kinds = {re.split(r"-", each)[0] for each in live}
    assert kinds == {"day", "message", "turn", "run"}
    await page.reload()
    await expect(page.locator("html")).to_have_attribute("data-live", "up")
    assert await page.evaluate(ORDER) == live


@pytest.mark.requirement("CON-81", "UI-89", "UI-16")
async def test_what_was_sent_replied_refused_and_needed_is_said_once_each(
    lived: House, page_for: PageFor
) -> None:
    asking = Asking(Desk(lived.world))
    report = await asking.desk.approved("alice", 2_000)
    agent = lived.world.acme.agents["stock"]
    page = await lived.page(page_for, lived.world.acme["frank"])
    await page.goto(f"/conversations/new?q={agent.code}")
    await page.locator(".party-list a").first.click()
    await expect(page.locator("html")).to_have_attribute("data-live", "up")  # its scripts stand
    await page.locator("#composer-text").fill("begin")
    await page.keyboard.press("Enter")
    await page.wait_for_url(re.compile(r"/conversations/\w{26}$"))
    await expect(page.locator("html")).to_have_attribute("data-live", "up")
    second = await page.context.new_page()
    await second.goto(page.url)
    await expect(second.locator("html")).to_have_attribute("data-live", "up")
    for each in (page, second):
        await each.evaluate(WATCH)
    lived.control.stream("double")
    lived.control.stream("drop")
    await page.evaluate("dispatchEvent(new Event('online'))")
    await expect(page.locator("html")).to_have_attribute("data-live", "up")

    async def said(words: str, *tabs: Page) -> None:
        for tab in tabs:
            await expect(tab.locator("#status")).to_contain_text(words)

    await page.locator("#composer-text").fill("hello")
    await page.keyboard.press("Enter")
    await said("Sent", page)
    play = Play(Stage(lived.world, page.url.rpartition("/")[2], asking.acme["frank"].id, agent))
    play.stage.agent = db.read_now(lambda s: s.get_one(type(agent), (agent.tenant_id, agent.id)))
    await play.say("o-1", "Hello to you.")
    await said("New message from", page, second)
    row = await asking.ask(asking.call("fiona", SEND, report))
    await said("Approval needed", page, second)
    await asking.decide("frank", row, "deny", reason="not now")
    await play.think()
    stop = page.get_by_role("button", name="Stop")
    await expect(stop).to_be_visible()
    await db.transaction(_of_somebody_else, play.run_id, asking.acme["alice"].id)
    await stop.click()
    await expect(page.locator("#alerts #refusal")).to_be_in_viewport()
    await page.route("**/messages", lambda route: route.abort())
    await page.locator("#composer-text").fill("lost")
    await page.keyboard.press("Enter")
    await said("Not sent.", page)

    own, other = await page.evaluate("spoken"), await second.evaluate("spoken")
    begins = [re.sub(r"^(\w+: \w+( \w+)?).*", r"\1", each, flags=re.DOTALL) for each in own]
    assert begins == [
        *("status: Sent", "status: New message", "status: Approval needed"),
        *("alerts: Not found", "status: Not sent"),
    ]
    assert [each for each in own if each in other] == other
    assert len(other) == 2
    assert await page.locator("[aria-live]:not([aria-live=off])").count() == 0


def _of_somebody_else(work: Work, run_id: str, user_id: str) -> None:
    """The run is not this person's any more: whatever they do with it is refused."""
    run = work.session.exec(select(Run).where(Run.id == run_id)).one()
    run.user_id = user_id
    work.session.add(run)
