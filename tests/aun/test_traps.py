"""What breaks stock clients, tried with stock clients (aun.md, 12 and 13).

Traps by their number, and the tests that hold them; scenarios are those of the script run here:

| trap | held by |
|---|---|
| 1 | `test_frames`, `test_fuzz`, `test_gateway` (unsafe frames) |
| 2, 3 | `test_driver`, `test_gateway` (first frame), `whoever_comes_hears_mail_...` |
| 4 | `test_auth` (a stranger gets a certificate and tokens) |
| 5 | `cached_tokens_outlive_a_restart`, `test_auth` (restart) |
| 6 | `test_delivery` (numbers in their order), `test_kills` |
| 7, 11, 13 | `test_message_inbox` (pages, shapes, acknowledgements) |
| 8 | `a_token_nobody_knows_...`, `test_gateway` (a refused connect keeps socket and nonce) |
| 9 | `test_gateway` (a reader that stops), `test_standing_still` |
| 10, 17, 19 | `test_endpoints` (certificates, cards, authoritative answers) |
| 12 | `test_message_pushes` (every device hears the row itself) |
| 14 | `a_group_talks_sealed`, `test_envelopes` (each device gets its own row) |
| 15 | `a_first_word_reaches_who_never_connected`, `test_first_words` |
| 16 | `a_rekey_loses_no_message`, `test_envelopes` (stale keys), `test_hosted` |
| 18 | `a_large_message_arrives`, `mail_waits_for_who_is_away` |
| 20 | `test_issuers` (key identifiers in each) |
| 21 | the locked requirements: client and server share one environment |
| 22 | `test_frames` (refused with the request's id) |

Regressions by their letter: a, b, d, e `test_message_inbox`; c, f, l, n `test_message_pushes`,
`test_message`; g, h `test_group`; i, s `test_endpoints`; j `test_group_members`; k `test_volatile`;
m `test_group_messages`; o `test_hosted`; p `test_group`; q `test_group_joining`;
r `a_retry_is_delivered_once`; t `test_message_legacy`.

The order of mail is the client's own to choose: for an AID whose card says `human`, and more than a
page of mail, it may ask for the newest page first (`window_mode: "tail"`; `_peer_pull_pages` in
`aun_core/_client/delivery.py`, 898-904 of 0.5.25), each page in its order. Every other AID gets all
of it in order. In a queue it pulls what the other connections got as soon as it hears of a later
message, for it takes what it was not told of as a gap.
"""

import contextlib
import json
import sqlite3
import subprocess
import threading
from pathlib import Path
from typing import Any

from tests.aun import stock

SCRIPT = Path(__file__).parent / "scripts" / "traps.py"
LONGEST_S = 240
FOUND = {
    "a_retry_is_delivered_once": {"same": True, "status": "duplicate", "times": 1},
    "a_rekey_loses_no_message": {"lost": 0},
    "a_first_word_reaches_who_never_connected": {"lost": 0},
    "a_recall_is_heard": {"recalled": 1},
    "a_hundred_at_once_arrive_once_each": {"times": 1},
    "what_is_volatile_arrives": {"storage": "volatile"},
    "a_large_message_arrives": {},
    "a_group_talks_sealed": {"lost": 0},
    "mail_waits_for_who_is_away": {
        "different": 250,
        "pages_in_order": True,
        "newest_page": True,
    },
    "mail_for_an_agent_waits_in_its_order": {"in_order": True},
    "whoever_comes_hears_mail_and_nothing_else": {"in_order": True, "others": 0},
    "a_queue_loses_nothing": {
        "conflict": "delivery_mode_conflict",
        "modes": ["queue"],
        "in_order": True,
    },
    "what_is_volatile_has_an_end": {
        "full": "too many volatile messages wait for this receiver",
        "sent": 18,
    },
    "cached_tokens_outlive_a_restart": {},
    "a_token_nobody_knows_is_replaced_on_the_way_back": {},
}


def test_the_stock_client_falls_into_no_trap(tmp_path: Path) -> None:
    with stock.instance(tmp_path / "server") as instance:
        told = _run(instance, tmp_path)
        readable = _readable(instance, f"carol.{stock.DOMAIN}")

    assert {line["scenario"]: line.get("found", line.get("error")) for line in told} == FOUND
    assert readable == [False]


def _run(instance: stock.Instance, folder: Path) -> list[dict[str, Any]]:
    """What the script tells; when it asks for it, the server is stopped and started again."""
    told = []
    with (
        (folder / "client.log").open("wb") as log,
        subprocess.Popen(
            [stock.python(), str(SCRIPT)],
            env=instance.environment(folder / "home"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as client,
    ):
        too_long = threading.Timer(LONGEST_S, client.kill)
        too_long.start()
        assert client.stdin is not None
        assert client.stdout is not None
        for line in client.stdout:
            said = json.loads(line)
            if "ask" in said:
                instance.server.stop()
                instance.server.start()
                client.stdin.write("done\n")
                client.stdin.flush()
            else:
                told.append(said)
        too_long.cancel()
    return told


def _readable(instance: stock.Instance, receiver: str) -> list[bool]:
    """Of each message to a receiver, whether the server keeps its text."""
    asked = "SELECT payload IS NOT NULL FROM message WHERE receiver_aid = ?"
    with contextlib.closing(sqlite3.connect(instance.server.data / "assent.db")) as database:
        return [bool(row[0]) for row in database.execute(asked, [receiver])]
