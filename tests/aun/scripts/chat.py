"""A stock client that somebody types into: lines of JSON in to act, and out for what is heard.

Every message goes out as the client sends it by itself: encrypted. Arguments: the AID, its type
(`human`), and `later` where it is to connect after the first line.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

from aun_core import AIDStore, AUNClient

AID, KIND, WHEN = (*sys.argv[1:], *("human", "now")[len(sys.argv) - 2 :])


def say(**told):
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


def heard(message):
    say(
        heard=message["payload"],
        encrypted=bool(message.get("encrypted")),
        by=message["from"],
        message_id=message["message_id"],
    )


async def main():
    store = AIDStore(Path.home() / "keys", "seed", root_ca_path=os.environ["AUN_ROOT_CA"])
    made = await store.register(AID, type=KIND)
    assert made.ok, made.error
    if WHEN == "later":
        say(registered=AID)
        await asyncio.to_thread(sys.stdin.readline)
    client = AUNClient(store.load(AID).data["aid"])
    client.on("message.received", heard)
    client.on("message.undecryptable", lambda message: say(undecryptable=str(message)[:300]))
    await client.connect({"auto_reconnect": True})
    say(ready=AID)
    while line := await asyncio.to_thread(sys.stdin.readline):
        act = json.loads(line)
        sent = await client.call("message.send", {"to": act["to"], "payload": act["payload"]})
        say(sent=sent["message_id"], status=sent["status"])
    await client.close()


asyncio.run(main())
