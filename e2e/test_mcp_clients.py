"""Clients of the official SDKs: let in by a person in the browser, who assents there as well."""

import asyncio
import json
import os
import shutil
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest
from mcp.client.auth import OAuthClientProvider
from mcp.client.client import Client
from mcp.client.session import ClientRequestContext
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from mcp.types import ElicitResult
from playwright.async_api import Browser, Page, expect
from pydantic import AnyUrl

from e2e.doors import Doors, demo_in
from e2e.every_page import Demo
from e2e.test_agent_story import assent
from tests import node

ALICE = "alice"
SUBMIT, LIST, REMIND = "expense.report.submit", "expense.report.list", "expense.report.remind"
PATIENCE_S = 60
SCRIPT = Path(__file__).parent / "mcp_client.mjs"
SDK, VERSION = "@modelcontextprotocol/sdk", "1.32.2"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    folder: Path = tmp_path_factory.mktemp("mcp-clients")
    with demo_in(folder, ASSENT_OAUTH_REGISTRATION="true") as running:
        yield running


@pytest.fixture
async def doors(demo: Demo, browser: Browser) -> AsyncIterator[Doors]:
    made = Doors(demo, browser)
    yield made
    await made.close()


@pytest.fixture
async def page(doors: Doors) -> Page:
    """Alice, signed in."""
    return await doors.page(ALICE, "light", "en", 1280)


class Kept:
    """What a client keeps of its tokens."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


async def let_in(page: Page, address: str, name: str) -> dict[str, str]:
    """The page of consent, and the answer it sends the browser back to the client with."""
    await page.goto(address)
    await expect(page.get_by_role("heading", level=1)).to_contain_text(name)
    async with page.expect_response("**/oauth/consent") as answered:
        await page.get_by_role("button", name="Allow", exact=True).click()
    back = await (await answered.value).header_value("location")
    assert back is not None
    return dict(parse_qsl(urlsplit(back).query))


@asynccontextmanager
async def python_client(demo: Demo, page: Page, opened: list[str]) -> AsyncIterator[Client]:
    """A client of the Python SDK that Alice let in; she opens what it asks her to."""
    redirect = f"http://127.0.0.1:{_free_port()}/callback"
    answers: list[dict[str, str]] = []

    async def lead(address: str) -> None:
        answers.append(await let_in(page, address, "Python desk"))

    async def back() -> AuthorizationCodeResult:
        return AuthorizationCodeResult(**answers[-1])

    async def elicit(context: ClientRequestContext, params: Any) -> ElicitResult:
        if params.mode != "url":
            return ElicitResult(action="accept", content=dict.fromkeys(_questions(params), True))
        opened.append(params.url)
        await page.goto(params.url)
        await assent(page)
        await expect(page.get_by_text("Approved").first).to_be_visible()
        return ElicitResult(action="accept")

    url = f"{demo.server.base_url}/mcp"
    provider = OAuthClientProvider(
        url,
        OAuthClientMetadata(
            client_name="Python desk",
            redirect_uris=[AnyUrl(redirect)],
            scope="catalog.read commands.read commands.invoke offline_access",
        ),
        Kept(),
        redirect_handler=lead,
        callback_handler=back,
    )
    async with httpx2.AsyncClient(auth=provider, timeout=PATIENCE_S) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, elicitation_callback=elicit) as client:
            yield client


def _questions(asked: Any) -> list[str]:
    return list(asked.requested_schema["properties"])


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def submitted_report(demo: Demo) -> tuple[str, str]:
    """Id and number of a report of Alice's that somebody has to look at."""
    (row, *_) = demo.rows(
        "SELECT r.id, r.number FROM expense_report r JOIN user u ON u.id = r.owner_id "
        "WHERE u.login = ? AND r.state = 'submitted' ORDER BY r.number LIMIT 1",
        ALICE,
    )
    return str(row[0]), str(row[1])


def entries(demo: Demo, call_id: str) -> list[tuple[Any, ...]]:
    """What the trail says of a call: outcome, channel, name of the agent, login of the user."""
    return demo.rows(
        "SELECT e.outcome, e.channel, a.name, u.login FROM audit_entry e "
        "JOIN user u ON u.id = e.user_id LEFT JOIN agent a ON a.id = e.agent_id "
        "WHERE e.call_id = ? ORDER BY e.seq",
        call_id,
    )


@pytest.mark.requirement("SEC-58", "SEC-59", "SEC-62", "SEC-63")
async def test_the_python_sdk_lists_calls_is_refused_and_waits_for_its_person(
    demo: Demo, page: Page
) -> None:
    report, _ = submitted_report(demo)
    opened: list[str] = []
    async with python_client(demo, page, opened) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        listed = await client.call_tool(LIST, {})
        refused = await client.call_tool(
            SUBMIT, {"targetRecordId": report, "operationType": "UPDATE"}
        )
        done = await client.call_tool(
            REMIND,
            {"targetRecordId": report, "operationType": "UPDATE", "message": "Have a look"},
        )

    hints = tools[REMIND].annotations
    assert hints is not None
    assert hints.destructive_hint is True
    assert listed.structured_content["outcome"] == "done"
    assert refused.is_error
    assert refused.structured_content["stage"] == "state_check"
    assert done.structured_content["outcome"] == "done"
    assert len(opened) == 1
    call_id = str(done.structured_content["callId"])
    assert entries(demo, call_id) == [("done", "mcp", "Python desk", ALICE)]
    await page.goto("/connect")
    row = page.get_by_role("row").filter(has_text="Python desk")
    await expect(row).to_contain_text("MCP")


class Script:
    """The client of the TypeScript SDK, as a process that is told what to do by lines."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def hears(self) -> dict[str, Any]:
        """What it says next."""
        assert self._process.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            line = await self._process.stdout.readline()
        assert line, "it ended"
        said: dict[str, Any] = json.loads(line)
        return said

    async def told(self, what: Any) -> None:
        """Tell it something."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(what).encode() + b"\n")
        await self._process.stdin.drain()

    async def call(self, name: str, arguments: dict[str, Any], **meta: Any) -> dict[str, Any]:
        """What comes of a call."""
        await self.told({"call": name, "arguments": arguments, "meta": meta or None})
        return await self.hears()


@asynccontextmanager
async def script(demo: Demo, redirect: str) -> AsyncIterator[Script]:
    """Run it as long as the block."""
    try:
        folder = await asyncio.to_thread(node.installed, SDK, VERSION)
    except node.NotInstallable as problem:
        pytest.skip(str(problem))
    source = folder / SCRIPT.name  # beside the packages that it imports
    await asyncio.to_thread(shutil.copyfile, SCRIPT, source)
    process = await asyncio.create_subprocess_exec(
        *node.command(str(source), f"{demo.server.base_url}/mcp", redirect),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=dict(os.environ),
    )
    try:
        yield Script(process)
        await Script(process).told("close")
        async with asyncio.timeout(PATIENCE_S):
            await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.mark.requirement("SEC-58", "SEC-62", "SEC-63")
async def test_the_typescript_sdk_is_let_in_refused_and_goes_on_after_an_approval(
    demo: Demo, page: Page
) -> None:
    report, _ = submitted_report(demo)
    target = {"targetRecordId": report, "operationType": "UPDATE"}
    redirect = f"http://127.0.0.1:{_free_port()}/callback"
    async with script(demo, redirect) as client:
        address = (await client.hears())["authorize"]
        answer = await let_in(page, address, "TypeScript desk")
        await client.told({"code": answer["code"]})
        assert "connected" in await client.hears()
        names = [tool["name"] for tool in (await client.hears())["tools"]]
        assert REMIND in names

        refused = (await client.call(SUBMIT, target))["result"]
        assert refused["isError"]
        assert refused["structuredContent"]["stage"] == "state_check"

        asked = (await client.call(REMIND, {**target, "message": "Have a look, please"}))["fault"]
        assert asked["code"] == -32042
        (elicitation,) = asked["data"]["elicitations"]
        await page.goto(elicitation["url"])
        await assent(page)
        await expect(page.get_by_text("Approved").first).to_be_visible()
        done = (await client.call(REMIND, {**target, "message": "Have a look, please"}))["result"]

        assert done["structuredContent"]["outcome"] == "done"
        call_id = done["structuredContent"]["callId"]
        assert entries(demo, call_id)[-1] == ("done", "mcp", "TypeScript desk", ALICE)

        await page.goto("/connect")
        await (
            page.get_by_role("row")
            .filter(has_text="TypeScript desk")
            .get_by_role("link")
            .last.click()
        )
        await page.get_by_role("button", name="End the access").click()
        await expect(page.get_by_role("status").first).to_contain_text("no access")
        gone = await client.call(LIST, {})
        assert "authorize" in gone, "it has to ask again"
