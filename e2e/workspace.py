"""A server of one's own, set up by its first owner, for journeys through the way in."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from playwright.async_api import Page

from tests import databases
from tests.server import RunningServer

PASSWORD = "correct horse battery staple"
OWNER = "alice"


@contextmanager
def empty(data: Path, **env: str) -> Iterator[RunningServer]:
    """A server that nobody has set up yet."""
    data.mkdir(parents=True, exist_ok=True)
    with databases.migrated("sqlite", data), RunningServer(data, env=env) as server:
        yield server


def setup_path(server: RunningServer) -> str:
    """The path of the link it printed."""
    found = re.findall(r"http://\S+(/setup/\S+)", server.log())
    assert found, server.log()
    return str(found[-1])


async def set_up(page: Page, server: RunningServer) -> None:
    """Fill in the setup page as the first owner."""
    await page.goto(setup_path(server))
    await page.locator("#field-tenant_name").fill("Example Ltd")
    await page.locator("#field-display_name").fill("Alice Wang")
    await page.locator("#field-login").fill(OWNER)
    await page.locator("#field-password").fill(PASSWORD)
    await page.locator("#field-again").fill(PASSWORD)
    await page.locator("main form button.primary").click()
    await page.wait_for_url("**/welcome")


async def sign_in(page: Page) -> None:
    """Sign in as the owner with the password."""
    await page.goto("/sign-in")
    await page.locator("#field-login").fill(OWNER)
    await page.locator("#field-password").fill(PASSWORD)
    await page.locator("main form button.primary").first.click()


def make_stale(server: RunningServer) -> None:
    """Let an hour pass since everybody's last sign-in."""
    with closing(sqlite3.connect(server.data / "assent.db", timeout=10)) as connection:
        connection.execute("UPDATE session SET auth_time = '2026-01-01 00:00:00.000000'")
        connection.commit()
