"""A hundred thousand frames that no client sends: each is refused or answered, and that is all.

Most are tried where frames are read and parameters understood; the rest over sockets against a
server of its own, beside a connection of somebody else who must notice nothing.
"""

import asyncio
import contextlib
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import websockets

from app.aun import frames, rpc
from app.aun.errors import AunError, BadParams
from app.aun.frames import Refusal
from app.kernel.errors import AppError
from tests.aun.group_calls import calls_in
from tests.aun.hostile import Maker
from tests.aun.parties import gather
from tests.aun.serving import Party, Raw, text
from tests.people import World
from tests.server import RunningServer
from tests.sources import ROOT

pytestmark = pytest.mark.anyio

READ, SENT, ATTACKERS = 80_000, 20_000, 40
GUIDED = 10_000  # by coverage, beyond the hundred thousand
BOUNDS = (f"-runs={GUIDED}", "-seed=1", "-max_len=4096", "-timeout=10", "-rss_limit_mb=1024")
EACH = SENT // ATTACKERS
MEMORY_KB = 64 << 10
DOMAIN = "assent.localhost"
CANARY = "c4n4ry-of-somebody-else"
CODES = {-32700, -32600, -32601, -32602, -32000, -32001, -32002, -32003, -32004, -32008, -32009}
CODES |= {-32010, -32011, -32013, -32050, -32051, -32429, 4001, 4010, *range(-33_099, -33_000)}
GONE = (OSError, ConnectionError, websockets.WebSocketException)


def test_eighty_thousand_frames_are_read_or_refused_and_nothing_else_happens() -> None:
    maker, understood = Maker(seed=1, known=[f"tina.{DOMAIN}", f"1.{DOMAIN}", "m-1"]), 0
    codes = set()
    for number in range(READ):
        raw = maker.frame(f"q{number}")
        try:
            request = frames.read(raw)
            found = rpc.table().get(request.method)
            if found is not None:
                rpc.understood(found[0].params, request.params)
                understood += 1
        except Refusal as refused:
            codes.add(refused.error.code)
            json.loads(frames.failure(refused.id, refused.error, "trace"))
        except BadParams as wrong:
            json.loads(frames.failure("q", wrong, "trace"))
    assert understood > READ / 50
    assert codes == {-32700, -32600, -32602}


def test_what_coverage_leads_to_is_read_or_refused_too(tmp_path: Path) -> None:
    pytest.importorskip("atheris")
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    maker = Maker(seed=2, known=[f"tina.{DOMAIN}", "m-1"])
    for number in range(200):
        (corpus / str(number)).write_bytes(maker.frame(f"q{number}")[:4_000])
    done = subprocess.run(
        [sys.executable, "-m", "tests.aun.scripts.fuzz_frames", *BOUNDS, str(corpus)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4_000:]
    assert f"Done {GUIDED}" in done.stderr


async def test_twenty_thousand_frames_over_sockets_disturb_nobody(tmp_path: Path) -> None:
    env = {"ASSENT_AUN_REGISTRATION": "open", "ASSENT_RATE_AUN_AUTH": "60000/minute"}
    server = RunningServer(tmp_path, env=env)
    server.command("migrate")
    server.command("tenant", "add", "acme", "--name", "Acme", "--owner", "olga")
    server.start()
    try:
        names = [f"attacker{number:02}" for number in range(ATTACKERS)]
        attackers = [Party(f"{name}.{DOMAIN}", server.port) for name in names]
        victim, friend = (Party(f"{name}.{DOMAIN}", server.port) for name in ("victim", "friend"))
        await asyncio.gather(*(party.ready() for party in (*attackers, victim, friend)))
        async with victim.connected() as hears, friend.connected() as says:
            secret = await says.call("message.send", to=victim.aid, payload=text(CANARY))
            known = [secret["message_id"], victim.aid, friend.aid, attackers[0].aid]
            await _attack(attackers[0], known, seed=0)
            before_kb = _resident_kb(server.pid)
            others = [
                _attack(party, known, seed) for seed, party in enumerate(attackers[1:], start=1)
            ]
            attack = asyncio.gather(*others)
            beats = 0
            while not attack.done():
                await hears.call("meta.ping")
                await says.call("message.send", to=victim.aid, payload=text(f"beat {beats}"))
                await hears.event("message.received")
                beats += 1
                await asyncio.wait([attack], timeout=0.25)
            answers = await attack
            after_kb = _resident_kb(server.pid)
            last = await says.call("message.send", to=victim.aid, payload=text("the last"))
            await hears.event("message.received", message_id=last["message_id"])
        log = server.log()
    finally:
        server.stop()

    assert beats > 2
    assert after_kb - before_kb <= MEMORY_KB
    assert "aun_method_failed" not in log, log[log.index("aun_method_failed") - 200 :][:4_000]
    assert sum(answers) > EACH


async def _attack(party: Party, known: list[str], seed: int) -> int:
    """Send frames over as many connections as it takes; how many were answered."""
    maker, answered, sent = Maker(seed, known), 0, 0
    while sent < EACH:
        try:
            async with party.connected() as socket:
                while sent < EACH:
                    many = [maker.frame(f"q{sent + index}") for index in range(20)]
                    sent += len(many)
                    for raw in many:
                        await socket.socket.send(raw)
                    await socket.call("meta.ping") if sent < 300 else await _settled(socket)
                    answered += _checked(socket)
        except GONE:
            continue
    return answered


async def _settled(socket: Raw) -> None:
    """Wait until the server has read everything: it answers a method that costs nothing."""
    await (await socket.socket.ping())


def _checked(socket: Raw) -> int:
    """Look through what came since; the attacker has learnt nothing of others."""
    heard, socket.heard = socket.heard, []
    for frame in heard:
        assert CANARY not in json.dumps(frame)
        if "error" in frame:
            assert frame["error"]["code"] in CODES, frame
            assert "Traceback" not in frame["error"]["message"]
    return sum("method" not in frame for frame in heard)


def _resident_kb(pid: int) -> int:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1])


async def test_no_method_gives_a_tenant_anything_of_another(world: World) -> None:
    calls = calls_in(world)
    group_id = await calls.group("tina", "otto", name=CANARY, description=CANARY)
    await calls.say("tina", group_id, CANARY)
    aids = [calls.parties.tina, calls.parties.otto, calls.parties.alice]
    for to in aids[1:]:
        params = {"to": to, "payload": text(CANARY), "message_id": f"m-{to}"}
        await calls("tina", "message.send", **params, encrypt=False)
    strangers = gather("strangers", "strangers.example")
    maker = Maker(seed=7, known=[group_id, *aids, f"m-{aids[1]}", strangers.tina])

    went_through: set[str] = set()
    for name in sorted(rpc.table()):
        for _ in range(30):
            params = _as_read(name, maker)
            told = await _told(strangers.caller("tina"), name, params, went_through)
            assert CANARY not in told, (name, params, told)
    assert len(went_through) > 15
    for row in (await calls.texts("otto", group_id), await calls.texts("tina", group_id)):
        assert row == [CANARY]


def _as_read(name: str, maker: Maker) -> dict[str, Any]:
    """Parameters that get through the reading of frames."""
    while True:
        asked = {"id": 1, "method": name, "params": maker.call(name)[1]}
        with contextlib.suppress(Refusal):
            return frames.read(json.dumps(asked).encode()).params


async def _told(caller: Any, name: str, params: dict[str, Any], went_through: set[str]) -> str:
    try:
        answer = await rpc.invoke(replace(caller), name, params)
    except AunError as error:
        return f"{error.text} {error.data}"
    except AppError as error:
        return error.reason
    went_through.add(name)
    return json.dumps(answer)
