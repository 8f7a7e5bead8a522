"""Killed while 64 clients send: what was acknowledged arrives once, in its sender's order.

`ASSENT_TEST_MESSAGES=20000` sends more than the 4,000 of a run.
"""

import asyncio
import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import websockets

from tests.aun.serving import Party, Raw, text
from tests.server import RunningServer

pytestmark = pytest.mark.anyio

CLIENTS, KILLS = 64, 5
MESSAGES = int(os.environ.get("ASSENT_TEST_MESSAGES", "4000"))
EACH = MESSAGES // CLIENTS + 1
DOMAIN = "assent.localhost"
PAGE = 200
GONE = (OSError, ConnectionError, websockets.WebSocketException, TimeoutError)


@dataclass
class Sender:
    """A client that sends its messages one after the other until each is acknowledged."""

    party: Party
    to: str
    acknowledged: list[str] = field(default_factory=list)

    async def send_all(self, counted: "Counted") -> None:
        """Send every message, over as many connections as it takes."""
        while len(self.acknowledged) < EACH:
            try:
                async with asyncio.timeout(60), self.party.connected() as socket:
                    await self._send_some(socket, counted)
            except GONE:
                await counted.server_is_up()

    async def _send_some(self, socket: Raw, counted: "Counted") -> None:
        while len(self.acknowledged) < EACH:
            number = len(self.acknowledged)
            message_id = f"m-{self.party.aid}-{number}"
            answer = await socket.call(
                "message.send", to=self.to, message_id=message_id, payload=text(str(number))
            )
            assert answer["status"] in {"delivered", "sent", "duplicate"}
            self.acknowledged.append(message_id)
            await counted.one_more()

    async def read_all(self, sender: str) -> list[tuple[int, str]]:
        """Everything of one sender, from the first message on."""
        found: list[tuple[int, str]] = []
        async with self.party.connected() as socket:
            after, has_more = 0, True
            while has_more:
                page = await socket.call(
                    "message.v2.pull",
                    cursor_scope="peer",
                    sender_aid=sender,
                    after_seq=after,
                    limit=PAGE,
                    device_id=self.party.device,
                    slot_id="default",
                )
                found += [(row["seq"], row["message_id"]) for row in page["messages"]]
                after, has_more = page["covered_through_seq"], page["has_more"]
        return found


class Counted:
    """Acknowledged messages, and a server that is killed whenever enough more of them are."""

    def __init__(self, server: RunningServer) -> None:
        self._server = server
        self._count = 0
        self._kills = 0
        self._up = asyncio.Event()
        self._up.set()

    @property
    def kills(self) -> int:
        """How often it was killed."""
        return self._kills

    async def server_is_up(self) -> None:
        """Return when there is a server to come back to."""
        await self._up.wait()

    async def one_more(self) -> None:
        """Another one was acknowledged."""
        self._count += 1
        if self._up.is_set() and self._count >= MESSAGES * (self._kills + 1) // (KILLS + 1):
            if self._kills == KILLS:
                return
            self._kills += 1
            self._up.clear()
            await asyncio.to_thread(self._server.kill)
            await asyncio.to_thread(self._server.start)
            self._up.set()


async def test_no_acknowledged_message_is_lost_doubled_or_out_of_order(
    database: str, tmp_path: Path
) -> None:
    env = {"ASSENT_AUN_REGISTRATION": "open", "ASSENT_RATE_AUN_AUTH": "60000/minute"}
    server = RunningServer(tmp_path, database, env=env)
    server.command("migrate")
    server.command("tenant", "add", "acme", "--name", "Acme", "--owner", "olga")
    server.start()
    try:
        parties = [Party(f"client{number:02}.{DOMAIN}", server.port) for number in range(CLIENTS)]
        await asyncio.gather(*(party.ready() for party in parties))
        senders = [
            Sender(party, to=parties[(number + 1) % CLIENTS].aid)
            for number, party in enumerate(parties)
        ]
        counted = Counted(server)

        await asyncio.gather(*(sender.send_all(counted) for sender in senders))

        assert counted.kills == KILLS
        found = await asyncio.gather(
            *(
                senders[(number + 1) % CLIENTS].read_all(sender.party.aid)
                for number, sender in enumerate(senders)
            )
        )
    finally:
        server.stop()
    for sender, rows in zip(senders, found, strict=True):
        assert [message_id for _, message_id in rows] == sender.acknowledged
        seqs = [seq for seq, _ in rows]
        assert seqs == sorted(set(seqs))
    assert sum(len(rows) for rows in found) >= MESSAGES
