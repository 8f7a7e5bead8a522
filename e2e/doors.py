"""Signed-in browsers of the demo workspace, in any theme, language and width."""

import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from playwright.async_api import Browser, BrowserContext, Page

from e2e import every_page
from e2e.conftest import WIDTHS
from e2e.every_page import Demo
from tests import session
from tests.server import RunningServer


@contextmanager
def demo_in(folder: Path, **settings: str) -> Iterator[Demo]:
    """The demo workspace, served from `folder`: a copy of the one that a run makes once."""
    with session.run():
        shutil.copytree(_made(), folder, dirs_exist_ok=True)
        with RunningServer(folder / "data", env=settings) as server:
            yield Demo(server, folder / "credentials.json")


def _made() -> str:
    note = session.once("demo.folder")
    with note.making() as known:
        if known is None:
            folder = session.folder() / "demo"
            arguments = ("--demo", "--credentials", str(folder / "credentials.json"))
            with RunningServer(folder / "data", arguments=arguments):
                pass
            known = note.write(str(folder))
    return known


class Doors:
    """Signed-in browsers: one for each person and look, made when first asked for."""

    def __init__(self, demo: Demo, browser: Browser) -> None:
        self.demo, self.browser = demo, browser
        self.states: dict[str, Path] = {}
        self.contexts: dict[tuple[str, str, str, int], BrowserContext] = {}
        self.kept: dict[tuple[str, str, str, int], Page] = {}

    async def page(self, who: str, theme: str, lang: str, width: int) -> Page:
        """A new page of that person, in that look."""
        key = (who, theme, lang, width)
        if key not in self.contexts:
            self.contexts[key] = await self._context(*key)
        return await self.contexts[key].new_page()

    async def same_page(self, who: str, theme: str, lang: str, width: int) -> Page:
        """The one page of that person in that look that is only led from place to place.

        A new one costs a process of the browser, which compiles every script again.
        """
        key = (who, theme, lang, width)
        if key not in self.kept:
            self.kept[key] = await self.page(*key)
        return self.kept[key]

    async def _context(self, who: str, theme: str, lang: str, width: int) -> BrowserContext:
        state = await self.state_of(who) if who else None
        context = await self.browser.new_context(
            base_url=self.demo.server.base_url,
            locale=lang,
            color_scheme="dark" if theme == "dark" else "light",
            viewport={"width": width, "height": WIDTHS[width]},
            timezone_id="Asia/Shanghai",
            reduced_motion="reduce",
            storage_state=state,
        )
        await context.add_cookies(
            [
                {"name": name, "value": value, "url": self.demo.server.base_url}
                for name, value in (("theme", theme), ("lang", lang))
            ]
        )
        return context

    async def state_of(self, who: str) -> Path:
        """The cookies of somebody who signed in, in a file."""
        if who not in self.states:
            context = await self.browser.new_context(
                base_url=self.demo.server.base_url, locale="en"
            )
            page = await context.new_page()
            await page.goto("/sign-in")
            await page.locator("input[name=tenant]").fill("acme")
            await page.locator("input[name=login]").fill(who)
            await page.locator("input[name=password]").fill(self.demo.password(who))
            await page.locator("#with-password button.primary").click()
            await page.wait_for_url(re.compile("/(welcome|conversations)"))
            if who == every_page.OWNER:
                await _register_an_application(page)
            stay_fresh(self.demo.server)
            self.states[who] = self.demo.credentials.with_name(f"{who}.json")
            await context.storage_state(path=self.states[who])
            await context.close()
        return self.states[who]

    async def close(self) -> None:
        """Close every browser."""
        for context in self.contexts.values():
            await context.close()


def stay_fresh(server: RunningServer) -> None:
    """Ask nobody who is signed in to confirm who they are, however long tests take."""
    with closing(sqlite3.connect(server.data / "assent.db", timeout=10)) as connection:
        connection.execute(
            "UPDATE session SET auth_time = datetime('now', '+30 minutes') || '.000000'"
        )
        connection.commit()


async def _register_an_application(page: Page) -> None:
    await page.goto("/admin/clients/new")
    await page.locator("input[name=name]").fill("Ledger reports 台账")
    await page.locator("[name=redirect_uris]").fill("http://127.0.0.1/callback")
    await page.locator("main form button.primary").click()
    await page.wait_for_url("**/admin/clients/**")
