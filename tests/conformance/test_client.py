"""Our client of outside servers against the official suite (SEC-67).

It links as a person would, whose browser the suite's authorization server answers at once, and then
calls every tool. The suite's servers are on loopback, which the guard of the product refuses.
"""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Container, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from app.commands import webhooks
from app.kernel import http
from app.outside import oauth
from app.outside.connection import Connection
from app.outside.endpoint import Endpoint
from app.outside.oauth import Client, Found
from app.outside.results import Answer, Lost
from tests import node
from tests.conformance import suite

pytestmark = pytest.mark.anyio

ASKING = Path(__file__).parent / "asking.py"
LOOPBACK = {"localhost", "127.0.0.1", "::1"}
TIMES = 3  # a person links anew as often as this
LIMIT_S = 240
PASSED = {
    "auth/metadata-default", "auth/metadata-var1", "auth/metadata-var2", "auth/metadata-var3",
    "auth/basic-cimd", "auth/scope-from-www-authenticate", "auth/scope-from-scopes-supported",
    "auth/scope-omitted-when-undefined", "auth/scope-step-up", "auth/scope-retry-limit",
    "auth/token-endpoint-auth-basic", "auth/token-endpoint-auth-post",
    "auth/token-endpoint-auth-none", "auth/pre-registration", "auth/resource-mismatch",
    "auth/offline-access-scope", "auth/offline-access-not-supported",
    "auth/authorization-server-migration", "auth/iss-supported", "auth/iss-not-advertised",
    "auth/iss-supported-missing", "auth/iss-wrong-issuer", "auth/iss-unexpected",
    "auth/iss-normalized", "auth/metadata-issuer-mismatch", "json-schema-ref-no-deref",
    "request-metadata", "http-standard-headers", "http-invalid-tool-headers",
}  # fmt: skip
# A server that asks for input gets none (SEC-68), so there is no retry in which to look at this.
NEVER_RETRIED = {
    "sep-2322-client-request-state-echoed",
    "sep-2322-client-jsonrpc-id-different",
    "sep-2322-client-no-state-omitted",
}


class Loopback(Container[Any]):
    """The pairs of host and port that the operator exempts: every one of this machine."""

    def __contains__(self, pair: object) -> bool:
        return isinstance(pair, tuple) and pair[0] in LOOPBACK


@pytest.fixture(autouse=True)
def _exempt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "pairs", lambda _: Loopback())
    monkeypatch.setattr(webhooks, "fault_of", lambda _: "")


@pytest.mark.requirement("SEC-67", "SEC-68", "SEC-80")
async def test_every_scenario_of_authorization_passes(tmp_path: Path) -> None:
    async with _answering() as path:
        await _run(path, tmp_path)

    failed = dict(_failed(tmp_path))
    assert PASSED - set(_ran(tmp_path)) == set(), "each was run"
    assert {name: ids for name, ids in failed.items() if name in PASSED} == {}
    assert failed["sep-2322-client-request-state"] == NEVER_RETRIED


async def _run(path: str, out: Path) -> None:
    asking = f"{sys.executable} -S {ASKING} {path}"
    try:
        command = await asyncio.to_thread(
            suite.command, "client", "--command", asking, "--requirements", "2026-07-28",
            "--timeout", "120000", "-o", str(out),
        )  # fmt: skip
    except node.NotInstallable as problem:
        pytest.skip(str(problem))
    process = await asyncio.create_subprocess_exec(
        *command,
        stdout=asyncio.subprocess.DEVNULL,
        env=dict(os.environ),
    )
    async with asyncio.timeout(LIMIT_S):
        await process.wait()


def _checks(out: Path) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for file in out.rglob("checks.json"):
        name, _, _ = str(file.parent.relative_to(out)).partition("-20")
        yield name, json.loads(file.read_text())


def _ran(out: Path) -> list[str]:
    return [name for name, _ in _checks(out)]


def _failed(out: Path) -> Iterator[tuple[str, set[str]]]:
    for name, checks in _checks(out):
        if ids := {each["id"] for each in checks if each["status"] == "FAILURE"}:
            yield name, ids


@asynccontextmanager
async def _answering() -> AsyncIterator[str]:
    """Use the servers that the suite names, one after the other as it comes."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/asked"
        alone = asyncio.Lock()  # dozens at once would run into the limits of our client
        async with await asyncio.start_unix_server(partial(_answer, alone), path):
            yield path


async def _answer(
    alone: asyncio.Lock, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    asked = json.loads(await reader.readline())
    status = 0
    async with alone:
        try:
            await _go_on(asked["url"], json.loads(asked["known"]))
        except (Lost, AssertionError, KeyError):
            status = 1  # some scenarios want us to stop
    writer.write(f"{status}\n".encode())
    writer.close()


async def _go_on(url: str, known: dict[str, Any]) -> None:
    """Use a server as long as it wants another consent."""
    endpoint = Endpoint(url)
    for _ in range(TIMES):
        answers = await _use(endpoint)
        if answers is not None and all(each.reason != "link_needed" for each in answers):
            return
        endpoint = Endpoint(url, token=await _linked(url, known))
    raise Lost("link_needed")


async def _use(endpoint: Endpoint) -> list[Answer] | None:
    """What every tool answers; None where there is no way in."""
    connection = Connection(endpoint)
    try:
        await connection.ready()
        return [await connection.call(name, {}) for name in connection.offers]
    except Lost:
        return None
    finally:
        await connection.close()


async def _linked(url: str, known: dict[str, Any]) -> str:
    at = await oauth.found(url)
    client = await _client(at, known)
    state, verifier = oauth.new_secret(), oauth.new_secret()
    async with httpx2.AsyncClient(follow_redirects=False) as browser:
        answered = await browser.get(oauth.asking(at, client, state, verifier))
    back = parse_qs(urlsplit(answered.headers["location"]).query)
    assert back["state"] == [state]
    oauth.check_issuer(at, back.get("iss", [None])[0])
    return (await oauth.exchanged(at, client, back["code"][0], verifier)).access


async def _client(at: Found, known: dict[str, Any]) -> Client:
    if "client_id" in known:
        return Client(known["client_id"], known.get("client_secret", ""))
    return await oauth.registered(at)
