"""The official conformance scenario of authorization servers: 3 of 3 (SEC-67)."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest
import uvicorn

from app.identity import cookies, csrf, signing_keys
from app.identity.oauth import clients
from app.identity.principal import Principal
from app.kernel import db, rates, settings
from app.kernel.db import Work
from tests import node, people
from tests.conformance import suite
from tests.identity.oauth.flow import request_id
from tests.people import World
from tests.server import free_port

CHECKS = {
    "authorization-server-metadata",
    "authorization-server-metadata-cimd",
    "authorization-code-grant",
}
PATIENCE_S = 60


@pytest.fixture
def served(opened: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """The world behind a real server, under the origin it is configured with."""
    monkeypatch.setenv("ASSENT_PORT", str(free_port()))
    settings.current.cache_clear()
    rates.of_process.cache_clear()
    try:
        with people.world() as world:
            signing_keys.prepare()
            with _serving(world):
                yield world
            signing_keys.close()
    finally:
        monkeypatch.undo()
        settings.current.cache_clear()


@pytest.mark.requirement("SEC-67", "SEC-15")
async def test_the_official_suite_passes_three_of_three(served: World, tmp_path: Path) -> None:
    origin, callback_port = settings.current().origin, free_port()
    callback = f"http://127.0.0.1:{callback_port}/callback"
    db.transact_now(_register, served.person(served.acme["ada"]), callback)
    try:
        command = suite.command(
            "authorization", "--url", origin, "--client-id", "conformance",
            "--resource", f"{origin}/mcp", "--port", str(callback_port), "-o", str(tmp_path),
        )  # fmt: skip
    except node.NotInstallable as problem:
        pytest.skip(str(problem))

    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    assert process.stdout is not None
    said = []
    async with asyncio.timeout(PATIENCE_S):
        while line := (await process.stdout.readline()).decode():
            said.append(line)
            if line.startswith(f"{origin}/oauth/authorize?"):
                await _consent(served, line.strip(), callback)
        await process.wait()

    output = "".join(said)
    assert process.returncode == 0, output
    assert _statuses(tmp_path) == dict.fromkeys(CHECKS, "SUCCESS"), output


async def _consent(world: World, url: str, callback: str) -> None:
    """What the person does: read the page, allow, and follow the redirect."""
    async with _browser(world) as browser:
        page = await browser.get(url)
        answered = await browser.post(
            "/oauth/consent", data={"request": request_id(page), "decision": "allow"}
        )
        assert answered.status_code == 303
        assert answered.headers["location"].startswith(f"{callback}?")
        assert (await browser.get(answered.headers["location"])).status_code == 200


def _browser(world: World) -> httpx2.AsyncClient:
    secret, session_id = db.transact_now(people._sign_in, world.acme["alice"], timedelta(0))
    return httpx2.AsyncClient(
        base_url=settings.current().origin,
        headers={
            "Cookie": f"{cookies.session_name()}={secret}",  # as Chromium does on localhost
            "X-CSRF-Token": csrf.of_session(session_id),
            **people.SAME_ORIGIN,
        },
    )


def _statuses(folder: Path) -> dict[str, str]:
    return {
        check["id"]: check["status"]
        for file in folder.rglob("checks.json")
        for check in json.loads(file.read_text())
    }


def _register(work: Work, actor: Principal, callback: str) -> None:
    clients.create(
        work, actor, name="Conformance", redirect_uris=[callback], client_id="conformance"
    )


@contextmanager
def _serving(world: World) -> Iterator[None]:
    server = uvicorn.Server(
        uvicorn.Config(world.app, port=settings.current().port, lifespan="off", log_config=None)
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started and thread.is_alive():
            thread.join(0.01)
        yield
    finally:
        server.should_exit = True
        thread.join()
