"""An agent here writes first to a stock client that was never there, is coming, and has come."""

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import httpx2

from tests.aun import stock
from tests.aun.chatting import started
from tests.aun.stock import Instance

COMING = [f"coming {number}" for number in range(6)]


def test_first_words_from_here_reach_a_stock_client_sealed_whenever_it_comes(
    tmp_path: Path,
) -> None:
    receiver = f"newcomer.{stock.DOMAIN}"
    with (
        stock.instance(tmp_path / "server", demo=tmp_path / "credentials.json") as instance,
        started(instance, tmp_path, "newcomer", "later") as newcomer,
    ):
        agent = ("--user", "acme/alice", "--agent", "expenses", "--audience", "aun")
        token = instance.server.command("token", *agent).strip()
        newcomer.told("registered")
        assert say(instance, token, receiver, "before") == "sent"
        newcomer.line()
        for words in COMING:
            say(instance, token, receiver, words)
        newcomer.told("ready")
        assert say(instance, token, receiver, "after") == "delivered"
        heard = [newcomer.told("heard") for _ in range(len(COMING) + 2)]
        sealed = _sealed(instance, receiver)

    assert [each["heard"]["text"] for each in heard] == ["before", *COMING, "after"]
    assert all(each["encrypted"] is True for each in heard)
    assert sealed == [True] * len(heard)


def say(instance: Instance, token: str, to: str, words: str) -> str:
    """Write as the agent; what became of it."""
    params = {"to": to, "payload": {"type": "text", "text": words}}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "message.send", "params": params}
    url = f"{instance.server.base_url}/aun/rpc"
    answer = httpx2.post(url, json=asked, headers={"Authorization": f"Bearer {token}"}, timeout=30)
    told: dict[str, Any] = answer.json()
    return str(told["result"]["status"])


def _sealed(instance: Instance, receiver: str) -> list[bool]:
    """Of each message to a receiver, whether it left as an envelope."""
    asked = "SELECT envelope IS NOT NULL FROM message WHERE receiver_aid = ?"
    with contextlib.closing(sqlite3.connect(instance.server.data / "assent.db")) as database:
        return [bool(row[0]) for row in database.execute(asked, [receiver])]
