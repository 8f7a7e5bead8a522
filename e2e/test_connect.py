"""Linking an outside client, and shutting one out: with nothing but forms, as everywhere."""

import sqlite3
from contextlib import closing

from playwright.async_api import expect

from e2e import workspace
from e2e.conftest import Axe, PageFor
from tests.server import RunningServer

OTTO = "otto.assent.localhost"


async def test_a_client_is_linked_let_go_and_shut_out(
    server: RunningServer, page_for: PageFor, axe: Axe
) -> None:
    page = await page_for(server.base_url, javascript=False)
    look = await page_for(server.base_url, width=320)
    await workspace.set_up(page, server)
    await workspace.sign_in(look)
    arrive(server)

    await page.goto("/connect")
    await page.get_by_role("button", name="Make a code").click()
    await expect(page.get_by_text("connect.assent.localhost")).to_be_visible()
    prove(server)
    await page.get_by_role("link", name="Look again").click()
    await page.get_by_role("link", name="Check and link").click()
    await expect(page.get_by_text(OTTO)).to_be_visible()
    await page.get_by_role("button", name="Link").click()
    await expect(page.get_by_role("status").first).to_contain_text("linked")

    for path in ("/connect", f"/connect/links/{OTTO}/removal"):
        await look.goto(path)
        await expect(look.get_by_text(OTTO).first).to_be_visible()
        assert await axe(look) == []
    for path in ("", f"/contacts/{OTTO}", f"/contacts/{OTTO}/block"):
        await look.goto(f"/admin/aun{path}")
        await expect(look.get_by_text(OTTO).first).to_be_visible()
        assert await axe(look) == []

    await page.get_by_role("link", name="End the link").click()
    await page.get_by_role("button", name="End the link").click()
    await expect(page.get_by_text("No client is linked to you")).to_be_visible()
    await page.goto(f"/admin/aun/contacts/{OTTO}/block")
    await page.get_by_role("button", name="Shut out").click()
    await expect(page.get_by_text("Blocked")).to_be_visible()
    await page.get_by_role("link", name="Let in again").click()
    await page.get_by_role("button", name="Let in").click()
    await expect(page.get_by_text("Active")).to_be_visible()


def arrive(server: RunningServer) -> None:
    """A client registered: as its row, since no client runs here."""
    run(
        server,
        "INSERT INTO aun_identity (tenant_id, aid, kind, status, created_at) "
        "SELECT id, ?, 'outside', 'active', created_at FROM tenant",
        OTTO,
    )


def prove(server: RunningServer) -> None:
    """It sent the code."""
    run(server, "UPDATE aun_link_code SET proved_aid = ?, proved_at = created_at", OTTO)


def run(server: RunningServer, statement: str, *values: str) -> None:
    """Write beside the server."""
    with closing(sqlite3.connect(server.data / "assent.db", timeout=20)) as connection, connection:
        connection.execute(statement, values)
