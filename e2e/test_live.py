"""The live layer in a browser: every fault of a stream that users of some product met (CON)."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from playwright.async_api import Page, expect

from app.identity import sessions
from app.identity.models import User
from app.kernel import db, deltas, event_log, settings
from app.kernel.db import Work
from e2e import workspace
from e2e.board import PATH, House, house
from e2e.conftest import PageFor, Watch
from tests.server import RunningServer

pytestmark = pytest.mark.anyio
REFUSED = ("503", "502", "ERR_INCOMPLETE", "ERR_ABORTED")
REGIONS = "/live/regions"
HIDE = """() => {
  Object.defineProperty(document, 'hidden', {configurable: true, get: () => HIDDEN});
  document.dispatchEvent(new Event('visibilitychange'));
}"""


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with (
        pytest.MonkeyPatch.context() as monkeypatch,
        house(tmp_path_factory.mktemp("live"), monkeypatch) as made,
    ):
        yield made


@pytest.fixture(autouse=True)
def clean(lived: House, quiet: Watch) -> Iterator[None]:
    """An empty board and no faults; what a fault makes the browser log is expected."""
    quiet.tolerate(*REFUSED)
    lived.board.rows.clear()
    lived.board.posts.clear()
    lived.control.reset()
    yield
    lived.control.reset()


async def opened(lived: House, page_for: PageFor, tabs: int = 1, **look: Any) -> list[Page]:
    """Tabs of one browser with the board, each of which hears."""
    first = await lived.page(page_for, lived.world.acme["alice"], **look)
    pages = [first, *[await first.context.new_page() for _ in range(tabs - 1)]]
    for page in pages:
        await page.goto(PATH)
    for page in pages:
        await up(page)
    return pages


async def up(page: Page) -> None:
    await expect(page.locator("html[data-live=up]")).to_be_attached(timeout=15_000)


async def shows(page: Page, *texts: str) -> None:
    """Exactly these rows stand there, in this order, each once."""
    await expect(page.locator("#messages .said")).to_have_text(list(texts), timeout=15_000)


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not is_so():  # noqa: ASYNC110 - the server tells nobody
            await asyncio.sleep(0.02)


async def say(lived: House, *ids: str) -> None:
    for each in ids:
        await asyncio.to_thread(lived.say, each, each)


async def wake(page: Page) -> None:
    await page.evaluate("dispatchEvent(new Event('online'))")


@pytest.mark.requirement(
    "UI-32", "UI-35", "UI-43", "CON-1", "CON-2", "CON-3", "CON-7", "CON-8", "CON-9", "CON-13",
    "CON-15", "CON-17", "CON-106",
)  # fmt: skip
async def test_drops_silence_and_returns_lose_and_double_nothing(
    lived: House, page_for: PageFor
) -> None:
    control = lived.control
    one, two = await opened(lived, page_for, 2)
    third = await one.context.new_page()
    await third.goto("/approvals")
    await up(third)
    assert control.opened() == 1, "one stream, whatever the tabs and pages"

    await say(lived, "a")
    for page in (one, two):
        await shows(page, "a")
    await one.evaluate("document.querySelector('#message-a').kept = true")
    for number in range(3):
        before = str(db.read_now(event_log.newest, lived.world.acme.id))
        asked = len(control.asked())
        control.stream("drop")
        await say(lived, f"b{number}")
        await until(lambda asked=asked: len(control.asked()) > asked)  # type: ignore[misc]
        assert control.asked()[asked]["after"] == before, "it comes back where it was"
        await wake(one)
        for page in (one, two):
            await shows(page, "a", *(f"b{each}" for each in range(number + 1)))
    assert await one.evaluate("document.querySelector('#message-a').kept"), "no list was rebuilt"
    assert control.asked(REGIONS) == []

    for number in range(8):  # while events flow
        await say(lived, f"c{number}")
        if number in {2, 5}:
            control.stream("drop")
            await wake(two)
    whole = ["a", *(f"b{each}" for each in range(3)), *(f"c{each}" for each in range(8))]
    for page in (one, two):
        await shows(page, *whole)

    lived.board.put(
        "a", "a changed"
    )  # a row that came by the stream, changed by it, thrice at once
    for text in ("a changed once", "a changed twice"):
        await asyncio.to_thread(lived.say, "a", text)
    line = '<span id="message-a-line" data-rev="1">stored</span>'
    await asyncio.to_thread(lived.emit, [("#message-a", "beforeend", line)])
    line = '<span id="message-a-line" data-rev="2">seen</span>'
    await asyncio.to_thread(lived.emit, [("#message-a-line", "outerHTML", line)])
    await shows(one, "a changed twice", *whole[1:])
    await expect(one.locator("#message-a-line")).to_have_text("seen")

    control.stream("silent")  # the socket is open and dead
    await say(lived, "d")
    await wake(one)
    for page in (one, two):
        await shows(page, "a changed twice", *whole[1:], "d")

    await one.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))")
    await up(one)
    await say(lived, "e")
    await shows(one, "a changed twice", *whole[1:], "d", "e")
    assert control.opened() == 1


@pytest.mark.requirement(
    "UI-48", "UI-51", "CON-4", "CON-5", "CON-11", "CON-14", "CON-19", "CON-108"
)
async def test_a_server_that_is_away_is_said_so_and_everything_is_there_again(
    lived: House, page_for: PageFor
) -> None:
    control = lived.control
    page = await lived.page(page_for, lived.world.acme["alice"])
    control.stream("status", 503, times=1)
    await page.goto(PATH)
    await say(lived, "a", "b", "c")  # after the page was drawn, before its stream was there
    await up(page)
    await shows(page, "a", "b", "c")
    assert control.asked(REGIONS) == []

    strip = page.locator("#live-strip [data-when=down]")
    await expect(strip).to_be_hidden()
    control.stream("status", 502)
    control.stream("drop")
    await expect(strip).to_be_visible(timeout=10_000)
    await expect(page.locator("#status")).to_contain_text("Reconnecting")
    await page.locator("#text").fill("never disabled")
    await say(lived, "the end")
    control.stream("ok")
    await wake(page)
    await expect(strip).to_be_hidden(timeout=3_000)
    await shows(page, "a", "b", "c", "the end")

    for mode, value in (("split", None), ("double", None), ("buffer", 2_000)):
        control.stream(mode, value)
        control.stream("drop")
        await wake(page)
        await say(lived, mode)
        if mode == "buffer":  # a proxy that gives when it has enough
            await asyncio.to_thread(lived.emit, [("#nobody", "outerHTML", "x" * 2_000)])
    await shows(page, "a", "b", "c", "the end", "split", "double", "buffer")


@pytest.mark.requirement("UI-48", "CON-5")
async def test_what_is_said_of_a_server_that_is_away_goes_when_it_is_back(
    server: RunningServer, page_for: PageFor, quiet: Watch
) -> None:
    quiet.tolerate("ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET", "NetworkError", "Failed to")
    page = await page_for(server.base_url)
    await workspace.set_up(page, server)
    await page.goto("/commands/expense.report.create")
    await up(page)
    title = page.get_by_label("Title")
    await title.fill("October, Shanghai")

    await asyncio.to_thread(server.kill)
    await page.get_by_role("button", name="Check only").click()
    unreachable = page.locator("#alerts .notice")
    strip = page.locator("#live-strip [data-when=down]")
    await expect(unreachable).to_contain_text("The server cannot be reached.")
    await expect(strip).to_be_visible(timeout=10_000)

    await asyncio.to_thread(server.start)
    await up(page)
    await expect(strip).to_be_hidden()
    await expect(unreachable).to_have_count(0)
    await expect(title).to_have_value("October, Shanghai")


@pytest.mark.requirement("CON-18")
async def test_bytes_that_are_held_back_are_said_to_be(
    lived: House, page_for: PageFor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSENT_HEARTBEAT_S", "3.8")  # the watchdog waits longer than the strip
    settings.current.cache_clear()
    page = await lived.page(page_for, lived.world.acme["alice"])
    lived.control.stream("buffer", 1_000_000)
    await page.goto(PATH)
    line = page.locator("#live-strip [data-when=delayed]")
    await expect(line).to_be_visible(timeout=15_000)
    lived.control.stream("ok")
    await expect(line).to_be_hidden(timeout=10_000)
    monkeypatch.undo()
    settings.current.cache_clear()


@pytest.mark.requirement("UI-45", "UI-46", "UI-44", "CON-109", "CON-110")
async def test_a_redraw_takes_nothing_from_the_person_and_shows_everything_once(
    lived: House, page_for: PageFor
) -> None:
    control, acme = lived.control, lived.world.acme.id
    await say_before(lived, "a", "b")
    [page] = await opened(lived, page_for)
    await page.locator("#message-a summary").click()
    await page.locator("#kept summary").click()
    await page.locator("#text").fill("on its way")
    control.stream("hold", path=f"{PATH}/messages")
    await page.get_by_role("button", name="Send").click()
    await page.locator("#text").fill("half a thought")
    await page.evaluate("document.getElementById('text').setSelectionRange(2, 6)")

    control.stream("status", 503, times=2, path=REGIONS)
    lived.board.put("c", "while nobody looked")
    await asyncio.to_thread(db.transact_now, event_log.new_epoch, acme)
    await expect(page.locator("html[data-refreshing]")).to_be_attached()
    await say(lived, "d")
    await expect(page.locator("#live-strip [data-when=refreshing]")).to_be_visible(timeout=5_000)
    await shows(page, "a", "b", "while nobody looked", "d")
    await expect(page.locator("#live-strip [data-when=refreshing]")).to_be_hidden()
    await expect(page.locator("html[data-refreshing]")).not_to_be_attached()
    assert len(control.asked(REGIONS)) == 3
    oldest = lived.board.rows["a"][0]
    assert f"board:1@{oldest}" in control.all_of(REGIONS, "region")

    assert await page.evaluate(
        "[document.getElementById('message-a-more').open, document.getElementById('kept').open]"
    ) == [True, True]
    await expect(page.locator("#outbox")).to_contain_text("on its way")
    assert await page.evaluate(
        "(({value, selectionStart, selectionEnd}) => [value, selectionStart, selectionEnd])"
        "(document.getElementById('text'))"
    ) == ["half a thought", 2, 6]
    assert await page.evaluate("document.activeElement.id") == "text"
    control.release(f"{PATH}/messages")
    await shows(page, "a", "b", "while nobody looked", "d", "on its way")
    await expect(page.locator("#outbox > *")).to_have_count(0)

    await page.locator("#button-1").focus()
    button = '<span id="focusable">gone</span>'
    await asyncio.to_thread(lived.emit, [("#focusable", "outerHTML", button)])
    await expect(page.get_by_role("link", name="home")).to_be_focused()


async def say_before(lived: House, *ids: str) -> None:
    for each in ids:
        lived.board.put(each, each)


@pytest.mark.requirement("UI-47", "CON-107")
async def test_an_own_message_is_one_bubble_at_any_time_in_every_tab(
    lived: House, page_for: PageFor
) -> None:
    one, two = await opened(lived, page_for, 2)
    lived.control.stream("double")
    for text in ("first", "late: approved"):
        await one.locator("#text").fill(text)
        await one.locator("#text").press("Enter")
        await expect(one.locator("#outbox > *")).to_have_count(0, timeout=5_000)
    await shows(one, "first", "done")
    await expect(one.locator("#status")).to_contain_text("Sent")
    await shows(two, "done")  # the board tells the stream of the second alone
    assert list(lived.board.posts.values()) == [1, 1]

    lived.control.stream("status", 503, path=f"{PATH}/messages")
    await one.locator("#text").fill("again")
    await one.get_by_role("button", name="Send").click()
    await expect(one.get_by_role("button", name="Try again")).to_be_visible()
    lived.control.release(f"{PATH}/messages")
    await one.reload()
    await up(one)
    await one.get_by_role("button", name="Edit").click()
    await expect(one.locator("#text")).to_have_value("again")
    await expect(one.locator("#outbox > *")).to_have_count(0)
    await one.get_by_role("button", name="Send").click()
    await shows(one, "first", "done", "again")


@pytest.mark.requirement("CON-20", "CON-21", "CON-22", "CON-111")
async def test_whoever_is_signed_out_is_told_and_keeps_what_they_typed(
    lived: House, page_for: PageFor
) -> None:
    acme, control = lived.world.acme, lived.control
    pages = await opened(lived, page_for, 5)
    page = pages[0]
    await page.locator("#text").fill("my words")
    asked = len(control.asked())
    await asyncio.to_thread(db.transact_now, _sign_out, acme["alice"])
    for each in pages:
        await expect(each.locator("#live-strip [data-when=signed-out]")).to_be_visible()
    await say(lived, "a")
    await pages[1].evaluate(HIDE.replace("HIDDEN", "false"))
    await until(lambda: len(control.asked()) == asked + 1)
    await pages[1].evaluate("fetch('/healthz')")  # a while in which nothing else is asked
    assert len(control.asked()) == asked + 1
    await shows(page)

    await page.get_by_role("button", name="Send").click()
    await expect(page.get_by_role("button", name="Try again")).to_be_visible()
    assert lived.board.posts == {}
    await lived.sign_in(page, acme["alice"])
    await page.reload()
    await up(page)
    await page.get_by_role("button", name="Try again").click()
    await expect(page.locator("#messages .said")).to_contain_text(["a", "my words"])
    assert list(lived.board.posts.values()) == [1]

    await page.locator("#text").fill("of alice alone")
    await lived.sign_in(page, acme["bob"])
    control.stream("drop")
    await wake(page)
    await expect(page.locator("#live-strip [data-when=session-changed]")).to_be_visible()
    other = pages[2]
    await other.goto(PATH)
    await up(other)
    await expect(other.locator("#text")).to_have_value("")
    row = '<li id="message-bobs" data-seq="99" data-rev="1"><span class="said">for bob</span></li>'
    await asyncio.to_thread(lived.emit, [("#messages", "beforeend", row)], acme["bob"])
    await expect(other.locator("#message-bobs")).to_be_visible()
    await expect(page.locator("#message-bobs")).to_have_count(0)
    await expect(page.locator("#text")).to_have_value("of alice alone")
    await lived.sign_in(page, acme["alice"])
    await page.get_by_role("link", name="Reload").click()
    await up(page)
    await expect(page.locator("#text")).to_have_value("of alice alone")


@pytest.mark.requirement("UI-50", "CON-112")
async def test_without_a_shared_worker_one_tab_hears_for_all(
    lived: House, page_for: PageFor
) -> None:
    first = await lived.page(page_for, lived.world.acme["alice"])
    await first.context.add_init_script("delete window.SharedWorker")
    pages = [first, *[await first.context.new_page() for _ in range(2)]]
    for page in pages:
        await page.goto(PATH)
    for page in pages:
        await up(page)
    assert lived.control.opened() == 1
    await say(lived, "a")
    for page in pages:
        await shows(page, "a")
    await first.close()
    await say(lived, "b")
    for page in pages[1:]:
        await shows(page, "a", "b")
    await until(lambda: lived.control.opened() == 1)


@pytest.mark.requirement("CON-16")
async def test_twelve_tabs_are_one_stream(lived: House, page_for: PageFor) -> None:
    pages = await opened(lived, page_for, 12)
    assert lived.control.opened() == 1
    await say(lived, "a")
    for page in pages:
        await shows(page, "a")
    await pages[-1].locator("#text").fill("posted")
    await pages[-1].locator("#text").press("Enter")
    await shows(pages[-1], "a", "posted")


@pytest.mark.requirement("UI-36", "CON-10", "CON-12", "CON-113")
async def test_growing_text_is_right_whatever_comes_twice_or_not_at_all(
    lived: House, page_for: PageFor
) -> None:
    [page] = await opened(lived, page_for)
    text = page.locator("#thought-1-text")
    lived.control.stream("split")
    await _grow(lived, 0, "想😀")  # three UTF-16 units
    await expect(text).to_have_text("想😀")
    await _grow(lived, 0, "想😀")
    await _grow(lived, 1, "😀<b>bold")
    await expect(text).to_have_text("想😀<b>bold")
    await _grow(lived, 20, "after a hole")
    await expect(text).to_have_text("想😀<b>bold … after a hole")
    await expect(text.locator("b")).to_have_count(0)

    await page.evaluate(HIDE.replace("HIDDEN", "true"))
    await _grow(lived, 32, " and on")
    end = '<pre id="thought-1-text">the whole thought</pre>'
    await asyncio.to_thread(lived.emit, [("#thought-1-text", "outerHTML", end)])
    await _grow(lived, 39, " late")
    await say(lived, "a")
    await page.evaluate(HIDE.replace("HIDDEN", "false"))
    await shows(page, "a")
    await expect(text).to_have_text("the whole thought")

    await page.reload()  # in the middle of one: what comes goes on, what is missing shows
    await up(page)
    await _grow(lived, 5, "rest")
    await expect(text).to_have_text("… rest")


@pytest.mark.requirement("UI-49", "CON-92", "CON-93", "CON-94", "CON-97", "CON-82")
async def test_title_announcements_and_notifications_follow(
    lived: House, page_for: PageFor
) -> None:
    first = await lived.page(page_for, lived.world.acme["alice"])
    await first.context.add_init_script(
        """globalThis.shown = []; globalThis.asked = 0;
        globalThis.Notification = class {
          static permission = 'granted';
          static requestPermission = async () => (globalThis.asked++, 'granted');
          constructor(text, {tag}) { shown.push(`${tag}: ${text}`); globalThis.last = this; }
          close() {}
        };"""
    )
    pages = [first, *[await first.context.new_page() for _ in range(2)]]
    for page in pages:
        await page.goto(PATH)
    for page in pages:
        await up(page)
        assert await page.evaluate("asked") == 0, "nobody is asked on load"
    badge = '<span class="count" id="badge-approvals" data-count="COUNT">COUNT</span>'
    for count, title in ((3, "(3) Board · Assent"), (0, "Board · Assent")):
        html = badge.replace("COUNT", str(count))
        await asyncio.to_thread(lived.emit, [("#badge-approvals", "outerHTML", html)])
        await expect(first).to_have_title(title)
        icon = await first.locator("link[rel=icon]").get_attribute("href")
        assert ("dot" in (icon or "")) is bool(count)

    await first.evaluate("localStorage.notify = 'on'")
    for page in pages:
        await page.evaluate(HIDE.replace("HIDDEN", "true"))
    await asyncio.to_thread(lived.emit, [("#notices", "beforeend", _notice("m1", "/welcome", 1))])
    await until_any(pages, "shown.length")
    seen = [each for page in pages for each in await page.evaluate("shown")]
    assert seen == ["m1: something new"], "one, without what was said"
    [shower] = [page for page in pages if await page.evaluate("shown.length")]
    await shower.evaluate("last.onclick()")
    await shower.wait_for_url("**/welcome")

    speaking = pages[0] if shower is not pages[0] else pages[1]
    for number in range(5):
        notice = _notice(f"n{number}", "/welcome", number, desktop=False)
        await asyncio.to_thread(lived.emit, [("#notices", "beforeend", notice)])
    await expect(speaking.locator("#status p")).to_have_text(
        [f"said {number}" for number in range(5)]
    )
    for number in range(3):
        notice = _notice("same", "/welcome", number, desktop=False)
        await asyncio.to_thread(lived.emit, [("#notices", "beforeend", notice)])
    await expect(speaking.locator("#status p")).to_have_text(["3 of them"])


def _notice(tag: str, path: str, number: int, *, desktop: bool = True) -> str:
    shown = ' data-desktop="something new"' if desktop else " data-speak"
    return (
        f'<p data-tag="{tag}" data-path="{path}" data-many="{{}} of them"{shown}>said {number}</p>'
    )


async def until_any(pages: list[Page], script: str) -> None:
    async with asyncio.timeout(10):
        while not [1 for page in pages if await page.evaluate(script)]:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def _grow(lived: House, at: int, text: str) -> None:
    """On the server's own loop, as an engine does it."""
    alice = lived.world.acme["alice"]
    loop = lived.control.loop
    told: Awaitable[None] = asyncio.wrap_future(
        asyncio.run_coroutine_threadsafe(_append(alice.tenant_id, alice.id, at, text), loop)
    )
    await told


async def _append(tenant_id: str, user_id: str, at: int, text: str) -> None:
    deltas.append(tenant_id, user_id, "thought-1-text", at, text)


def _sign_out(work: Work, user: User) -> None:
    row = work.session.get_one(User, (user.tenant_id, user.id))
    sessions.end_all(work, None, row, "signed_out")
