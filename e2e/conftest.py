"""A real browser for the journeys: pages in any theme, language and width, watched all the time."""

import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    Response,
    WebError,
    async_playwright,
    expect,
)

from e2e import styleguide
from tests import databases, house
from tests.server import RunningServer

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
AXE = Path(__file__).parent / "vendor/axe.min.js"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
WIDTHS = {320: 740, 720: 900, 1280: 860}  # px: width → height
EXPECTED = "the server responded with a status of 4"  # a refusal is an answer, not a fault

expect.set_options(timeout=20_000)  # ms: a busy machine is late, and what never comes stays away

PAGES = {"traced", "page_for"}  # fixtures whose pages end with them

PageFor = Callable[..., Awaitable[Page]]
Axe = Callable[[Page], Awaitable[list[str]]]


@dataclass
class Watch:
    """What happened in the browser contexts of one test."""

    hosts: set[str] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    contexts: list[BrowserContext] = field(default_factory=list)
    tolerated: tuple[str, ...] = ()
    is_over: bool = False

    def over(self, context: BrowserContext) -> None:
        """Watch every page of `context`."""
        if context in self.contexts:
            return
        self.contexts.append(context)
        for event, hear in self._hears():
            context.on(event, hear)  # type: ignore[call-overload]

    def leave(self) -> None:
        """Hear no more: a context may live on, for another test.

        Taking the listeners off is a call to the browser, which needs a loop: there is none here.
        """
        self.is_over = True

    def tolerate(self, *texts: str) -> None:
        """Let faults pass whose text contains one of `texts`: the test provokes them."""
        self.tolerated += texts

    def _hears(self) -> list[tuple[str, Callable[[Any], None]]]:
        return [
            ("console", self._console),
            ("weberror", self._error),
            ("request", self._request),
            ("response", self._response),
        ]

    def _error(self, error: WebError) -> None:
        self._fault(f"page error: {error.error}")

    def _console(self, message: ConsoleMessage) -> None:
        self.log.append(f"{message.type}: {message.text}")
        if message.type == "error" and EXPECTED not in message.text:
            self._fault(f"console: {message.text}")

    def _request(self, request: Request) -> None:
        address = urlsplit(request.url)
        if address.scheme in {"http", "https", "ws", "wss"} and self.hosts:
            host = f"{address.hostname}:{address.port}"
            if host not in self.hosts:
                self._fault(f"request to another host: {request.url}")

    def _response(self, response: Response) -> None:
        if response.status >= 500:
            self._fault(f"{response.status} of {response.url}")

    def _fault(self, text: str) -> None:
        if not self.is_over and not any(part in text for part in self.tolerated):
            self.faults.append(text)


def executable() -> str | None:
    """The browser to drive: the one named, one of this machine, or Playwright's own (UI-105)."""
    return (
        os.environ.get("ASSENT_E2E_BROWSER")
        or shutil.which("chromium-headless-shell")
        or shutil.which("chromium")
    )


def pytest_configure(config: pytest.Config) -> None:
    house.join(config)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    report = yield
    if report.when == "call":
        item.stash[OUTCOME] = report.failed
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Pages are opened last, so that they close before any server stops: they would reconnect."""
    for item in items:
        names: list[str] = getattr(item, "fixturenames", [])
        names.sort(key=lambda name: name in PAGES)


OUTCOME = pytest.StashKey[bool]()


@pytest.fixture(scope="session")
async def browser(anyio_backend: str) -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(executable_path=executable(), args=FLAGS)
        yield launched
        await launched.close()


@pytest.fixture(autouse=True)
def quiet() -> Iterator[Watch]:
    """The watch over this test: a CSP violation, script error, foreign request or 5xx fails it."""
    watch = Watch()
    yield watch
    watch.leave()
    assert watch.faults == []


@pytest.fixture
async def traced(
    request: pytest.FixtureRequest, browser: Browser, quiet: Watch, tmp_path: Path
) -> AsyncIterator[None]:
    """On failure: a screenshot, the HTML and the console of every open page, in `tmp_path`."""
    yield
    failed = request.node.stash.get(OUTCOME, False) or quiet.faults
    for number, context in enumerate(quiet.contexts):
        for page in context.pages if failed else []:
            await page.screenshot(path=tmp_path / f"{number}.png", full_page=True)
            (tmp_path / f"{number}.html").write_text(await page.content(), encoding="utf-8")
        await context.close()
    quiet.contexts.clear()
    if failed:
        (tmp_path / "console.log").write_text("\n".join(quiet.log), encoding="utf-8")
        request.node.add_report_section("call", "browser", f"see {tmp_path}")


@pytest.fixture
async def page_for(browser: Browser, quiet: Watch, traced: None) -> PageFor:
    """A page in a context of its own: `page_for(base_url, theme=, lang=, width=, javascript=)`."""

    async def open_page(
        base_url: str,
        *,
        theme: str = "light",
        lang: str = "en",
        width: int = 1280,
        javascript: bool = True,
        zone: str = "Asia/Shanghai",
    ) -> Page:
        context = await browser.new_context(
            base_url=base_url,
            locale=lang,
            color_scheme="dark" if theme == "dark" else "light",
            viewport={"width": width, "height": WIDTHS.get(width, 860)},
            java_script_enabled=javascript,
            timezone_id=zone,
            has_touch=width < 720,
            reduced_motion="reduce",
        )
        address = urlsplit(base_url)
        quiet.hosts.add(f"{address.hostname}:{address.port}")
        quiet.over(context)
        await context.add_cookies([{"name": "theme", "value": theme, "url": base_url}])
        return await context.new_page()

    return open_page


@pytest.fixture
def axe() -> Axe:
    """`await axe(page)`: what is wrong by WCAG 2.0 to 2.2, A and AA; nothing, where all is well."""
    source = AXE.read_text(encoding="utf-8")

    async def violations(page: Page) -> list[str]:
        await page.evaluate(source)
        found = await page.evaluate(
            "tags => axe.run(document, {runOnly: tags, resultTypes: ['violations']})"
            ".then(({violations}) => violations)",
            TAGS,
        )
        return [
            f"{violation['id']}: {node['html'][:200]} {node.get('failureSummary', '')}"
            for violation in found
            for node in violation["nodes"]
        ]

    return violations


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    """The real application in its own process on a fresh database; its log is in `tmp_path`.

    Its tables are there: to make them is most of what a start costs.
    """
    folder = tmp_path / "server"
    folder.mkdir()
    with databases.migrated("sqlite", folder), RunningServer(folder) as running:
        yield running


@pytest.fixture(scope="session")
def samples() -> Iterator[str]:
    """The base URL of the sample pages of the look."""
    with styleguide.serving() as base_url:
        yield base_url
