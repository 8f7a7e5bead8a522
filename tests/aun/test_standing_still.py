"""A stock client that reads nothing for a while: its queue runs over, and nothing is lost.

The server keeps a bounded queue for each connection and ends the connection that does not read
(aun.md, 10). The client is stopped as a machine that sleeps is, so that its kernel takes no more.
"""

import os
import re
import signal
from pathlib import Path

import httpx2

from tests.aun import stock
from tests.aun.chatting import connected
from tests.aun.stock import Instance

MESSAGES = 420  # with their texts more than the queue and the buffers of two sockets hold
TEXT = "x" * 40_000


def test_a_client_that_stands_still_is_let_go_and_catches_up(tmp_path: Path) -> None:
    with (
        stock.instance(tmp_path / "server") as instance,
        connected(instance, tmp_path, "sender") as sender,
        connected(instance, tmp_path, "sleeper") as sleeper,
    ):
        os.kill(sleeper.process.pid, signal.SIGSTOP)
        told = [sender.send(f"sleeper.{stock.DOMAIN}", f"{n} {TEXT}") for n in range(MESSAGES)]
        let_go = slow_readers(instance)
        os.kill(sleeper.process.pid, signal.SIGCONT)
        heard = [sleeper.told("heard") for _ in range(MESSAGES)]
        sender.send(f"sleeper.{stock.DOMAIN}", "the last")
        last = sleeper.told("heard")

    assert {each["status"] for each in told} <= {"delivered", "sent"}, "no sender waits for it"
    assert let_go == 1
    assert [int(each["heard"]["text"].split()[0]) for each in heard] == list(range(MESSAGES))
    assert all(each["encrypted"] for each in heard)
    assert last["heard"]["text"] == "the last", "and none came twice"


def slow_readers(instance: Instance) -> int:
    """How many connections the server ended because they did not read."""
    answer = httpx2.get(f"{instance.server.base_url}/metrics", timeout=30)
    counted = re.search(r"^assent_aun_slow_readers_total (\d+)", answer.text, re.MULTILINE)
    assert counted is not None
    return int(counted[1])
