"""Matrix Synapse on SQLite, its limits lifted, and clients that write in it (performance.md, M2).

It runs in an environment of its own. Each client writes to a room it shares with the next one, who
waits for news in `/sync` as Matrix clients do.
"""

import asyncio
import itertools
import json
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from tests.bench import peers
from tests.server import free_port

SYNAPSE_IS = "matrix-synapse==1.163.2"
START_LIMIT_S, WAIT_MS = 120, 10_000
PASSWORD = "a long password of the bench"
FILTER = json.dumps(
    {
        "room": {"timeline": {"types": ["m.room.message"]}, "ephemeral": {"types": []}},
        "presence": {"types": []},
    }
)
FREE = {"per_second": 1_000_000, "burst_count": 1_000_000}


@dataclass(frozen=True, slots=True)
class Exchange:
    """What clients wrote in a window, and how long each message took to its reader."""

    seconds: float
    delivered_s: list[float]

    @property
    def per_s(self) -> float:
        """Messages a second, from the first to the last that was read."""
        return len(self.delivered_s) / self.seconds


@dataclass
class Client:
    """A user of the server, with the room they write to."""

    http: httpx2.AsyncClient
    name: str
    token: str
    room: str = ""
    since: str = ""

    async def call(self, method: str, path: str, **more: Any) -> Any:
        """The JSON of an answer."""
        answer = await self.http.request(
            method, f"/_matrix/client/v3{path}", headers=self._headers(), **more
        )
        answer.raise_for_status()
        return answer.json()

    async def news(self, wait_ms: int = WAIT_MS) -> list[str]:
        """The texts that came since the last look, which waits for some."""
        asked = {"timeout": wait_ms, "filter": FILTER, "set_presence": "offline"}
        if self.since:
            asked["since"] = self.since
        told = await self.call("GET", "/sync", params=asked)
        self.since = told["next_batch"]
        rooms = told.get("rooms", {}).get("join", {}).values()
        events = itertools.chain.from_iterable(room["timeline"]["events"] for room in rooms)
        return [event["content"]["body"] for event in events if event["sender"] != self.name]

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


def python() -> str | None:
    """The interpreter of its environment; None where it cannot be had."""
    return peers.python_of("synapse", SYNAPSE_IS)


@asynccontextmanager
async def served(python: str, folder: Path, count: int) -> AsyncIterator[list[Client]]:
    """A fresh server with so many users in a ring of rooms."""
    port = free_port()
    command = await asyncio.to_thread(_made, python, folder, port)
    with (folder / "output").open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *command, cwd=folder, stdout=output, stderr=output
        )
        try:
            async with httpx2.AsyncClient(
                base_url=f"http://127.0.0.1:{port}",
                timeout=60,
                limits=httpx2.Limits(max_connections=4 * count),
            ) as http:
                await _starts(http)
                yield await _ring(http, count)
        finally:
            process.kill()
            await process.wait()


async def exchange(clients: list[Client], window_s: float, pad: str) -> Exchange:
    """Let each client write to the next one, one message after the other, and read them all."""
    began_at: dict[str, float] = {}
    delivered_s: list[float] = []
    until_s = time.perf_counter() + window_s
    is_written = asyncio.Event()

    async def write(number: int, client: Client) -> None:
        for turn in itertools.count():
            if (at := time.perf_counter()) >= until_s:
                return
            words = f"{number} {turn} {pad}"
            began_at[words] = at
            body = {"msgtype": "m.text", "body": words}
            path = f"/rooms/{client.room}/send/m.room.message/{int(at * 1e6)}-{number}-{turn}"
            await client.call("PUT", path, json=body)

    async def read(client: Client) -> None:
        while not is_written.is_set() or len(delivered_s) < len(began_at):
            found = await client.news(1_000)
            now = time.perf_counter()
            delivered_s.extend(now - began_at[words] for words in found if words in began_at)

    for client in clients:
        await client.news(0)
    began = time.perf_counter()
    readers = [asyncio.create_task(read(client)) for client in clients]
    await asyncio.gather(*(write(number, client) for number, client in enumerate(clients)))
    is_written.set()
    passed = time.perf_counter() - began
    await asyncio.gather(*readers)
    return Exchange(passed, delivered_s)


async def _starts(http: httpx2.AsyncClient) -> None:
    async with asyncio.timeout(START_LIMIT_S):
        while True:
            try:
                answer = await http.get("/_matrix/client/versions")
            except httpx2.TransportError:
                await asyncio.sleep(0.2)
                continue
            answer.raise_for_status()
            return


async def _ring(http: httpx2.AsyncClient, count: int) -> list[Client]:
    clients = []
    for number in range(count):
        asked = {
            "auth": {"type": "m.login.dummy"},
            "username": f"bench{number}",
            "password": PASSWORD,
        }
        made = await Client(http, "", "").call("POST", "/register", json=asked)
        clients.append(Client(http, made["user_id"], made["access_token"]))
    for client, other in zip(clients, [*clients[1:], clients[0]], strict=True):
        asked = {"preset": "trusted_private_chat", "invite": [other.name]}
        client.room = (await client.call("POST", "/createRoom", json=asked))["room_id"]
        await other.call("POST", f"/join/{client.room}", json={})
    return clients


def _made(python: str, folder: Path, port: int) -> list[str]:
    """A new server in a folder: the command that starts it."""
    folder.mkdir(parents=True)
    config = folder / "homeserver.yaml"
    config.write_text(json.dumps(_configured(folder, port)))  # JSON is YAML
    (folder / "log.yaml").write_text(json.dumps({"version": 1, "root": {"level": "ERROR"}}))
    command = [python, "-m", "synapse.app.homeserver", "-c", str(config)]
    keys = [*command, "--generate-keys"]
    subprocess.run(keys, cwd=folder, check=True, capture_output=True, timeout=120)
    return command


def _configured(folder: Path, port: int) -> dict[str, Any]:
    resources = [{"names": ["client"], "compress": False}]
    return {
        "server_name": "bench.localhost",
        "report_stats": False,
        "pid_file": str(folder / "pid"),
        "log_config": str(folder / "log.yaml"),
        "media_store_path": str(folder / "media"),
        "signing_key_path": str(folder / "signing.key"),
        "macaroon_secret_key": "bench",
        "form_secret": "bench",
        "trusted_key_servers": [],
        "enable_registration": True,
        "enable_registration_without_verification": True,
        "presence": {"enabled": False},
        "bcrypt_rounds": 4,
        "database": {"name": "sqlite3", "args": {"database": str(folder / "homeserver.db")}},
        "listeners": [
            {"port": port, "type": "http", "bind_addresses": ["127.0.0.1"], "resources": resources}
        ],
        "rc_message": FREE,
        "rc_registration": FREE,
        "rc_login": {"address": FREE, "account": FREE, "failed_attempts": FREE},
        "rc_joins": {"local": FREE, "remote": FREE},
        "rc_joins_per_room": FREE,
        "rc_invites": {"per_room": FREE, "per_user": FREE, "per_issuer": FREE},
        "rc_room_creation": FREE,
    }
