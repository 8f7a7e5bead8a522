"""Scenarios of the stock client, run by its own interpreter: one line of JSON for each.

The test restarts and stops nothing by itself: this script asks for it (`{"ask": "restart"}`) and
reads a line when it is done.
"""

import asyncio
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from aun_core import AIDStore, AUNClient
from aun_core.errors import AUNError, RateLimitError, ValidationError

DOMAIN = os.environ["AUN_DOMAIN"]
PATIENCE_S = 20
HEARD = (
    "message.received",
    "message.undecryptable",
    "message.recalled",
    "group.message_created",
    "group.message_undecryptable",
    "group.changed",
)


class Party:
    """One AID, its client, and what the client told its application."""

    def __init__(self, name: str, folder: Path, kind: str = "human") -> None:
        self.aid, self.kind = f"{name}.{DOMAIN}", kind
        self.store = AIDStore(folder / name, f"seed-{name}", root_ca_path=os.environ["AUN_ROOT_CA"])
        self.heard: dict[str, list[dict[str, Any]]] = {name: [] for name in HEARD}
        self.client: Any = None

    async def register(self) -> "Party":
        done = await self.store.register(self.aid, type=self.kind)
        assert done.ok, done.error
        return self

    def load(self, slot: str = "default") -> "Party":
        loaded = self.store.load(self.aid)
        assert loaded.ok, loaded.error
        assert loaded.data is not None
        self.client = AUNClient(replace(loaded.data["aid"], slot_id=slot))
        for name, sink in self.heard.items():
            self.client.on(name, sink.append)
        return self

    def joined(self, store: Any, slot: str) -> "Party":
        """Another slot of the same keys."""
        self.store = store
        return self.load(slot)

    async def connect(self, **options: Any) -> "Party":
        await self.client.connect({"auto_reconnect": True, **options})
        return self

    async def call(self, method: str, **params: Any) -> Any:
        return await self.client.call(method, params)

    async def send(self, to: "Party", words: str, **params: Any) -> Any:
        return await self.call(
            "message.send", to=to.aid, payload={"type": "text", "text": words}, **params
        )

    async def hears(self, words: str, event: str = "message.received") -> None:
        await until(lambda: words in self.texts(event))

    def texts(self, event: str = "message.received") -> list[Any]:
        return [row.get("payload", {}).get("text") for row in self.heard[event]]

    @property
    def lost(self) -> list[dict[str, Any]]:
        return self.heard["message.undecryptable"] + self.heard["group.message_undecryptable"]


async def until(is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, "it did not come"
        await asyncio.sleep(0.02)


def _numbers(party: Party, word: str) -> list[int]:
    """The numbers behind a word, as they were heard."""
    texts = [str(each).split() for each in party.texts()]
    return [int(each[1]) for each in texts if each[0] == word]


@contextmanager
def _busy() -> Iterator[None]:
    """Two threads that compute all the time."""
    is_over = threading.Event()

    def compute() -> None:
        while not is_over.is_set():
            sum(range(2_000))

    threads = [threading.Thread(target=compute) for _ in range(2)]
    for each in threads:
        each.start()
    try:
        yield
    finally:
        is_over.set()
        for each in threads:
            each.join()


def tell(what: dict[str, Any]) -> None:
    """One line for the test."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def ask(what: str) -> str:
    """Let the test do something to the server, and wait until it is done."""
    tell({"ask": what})
    return sys.stdin.readline().strip()


async def cached_tokens_outlive_a_restart(
    alice: Party, bobby: Party, folder: Path
) -> dict[str, Any]:
    await asyncio.to_thread(ask, "restart")
    await until(lambda: alice.client.state == "ready" and bobby.client.state == "ready")
    await alice.send(bobby, "after the restart", encrypt=False)
    await bobby.hears("after the restart")
    return {}


async def a_token_nobody_knows_is_replaced_on_the_way_back(
    alice: Party, bobby: Party, folder: Path
) -> dict[str, Any]:
    client = bobby.client
    unknown = {"access_token": "nobody.knows.it"}
    client._token_store.update_instance_state(
        bobby.aid, client._device_id, client._slot_id, lambda state: {**state, **unknown}
    )
    client._session_params |= unknown
    client._identity |= unknown
    await asyncio.to_thread(ask, "restart")
    await until(lambda: alice.client.state == "ready" and client.state == "ready")
    await alice.send(bobby, "with a new token", encrypt=False)
    await bobby.hears("with a new token")
    return {}


async def a_rekey_loses_no_message(alice: Party, bobby: Party, folder: Path) -> dict[str, Any]:
    await alice.send(bobby, "with the old key", encrypt=True)
    await bobby.hears("with the old key")
    await bobby.client.disconnect()
    done = await bobby.store.rekey(bobby.aid)
    assert done.ok, done.error
    await bobby.client.close()
    await bobby.load().connect()
    await alice.send(bobby, "with the new key", encrypt=True)
    await bobby.hears("with the new key")
    await bobby.send(alice, "an answer with it", encrypt=True)
    await alice.hears("an answer with it")
    return {"lost": len(alice.lost + bobby.lost)}


async def a_first_word_reaches_who_never_connected(
    alice: Party, bobby: Party, folder: Path
) -> dict[str, Any]:
    carol = await Party("carol", folder).register()
    await alice.send(carol, "a first word", encrypt=True)
    await carol.load().connect()
    await carol.hears("a first word")
    await carol.client.close()
    return {"lost": len(carol.lost)}


async def a_recall_is_heard(alice: Party, bobby: Party, folder: Path) -> dict[str, Any]:
    sent = await alice.send(bobby, "taken back", encrypt=False)
    await bobby.hears("taken back")
    done = await alice.call("message.recall", message_ids=[sent["message_id"]])
    await until(lambda: bobby.heard["message.recalled"])
    return {"recalled": done["recalled"]}


async def a_retry_is_delivered_once(alice: Party, bobby: Party, folder: Path) -> dict[str, Any]:
    first = await alice.send(bobby, "once", message_id="m-once-1", encrypt=False)
    again = await alice.send(bobby, "once", message_id="m-once-1", encrypt=False)
    await alice.send(bobby, "the next", encrypt=False)
    await bobby.hears("the next")
    return {
        "same": first["seq"] == again["seq"],
        "status": again["status"],
        "times": bobby.texts().count("once"),
    }


async def a_hundred_at_once_arrive_once_each(
    alice: Party, bobby: Party, folder: Path
) -> dict[str, Any]:
    words = [f"burst {number}" for number in range(100)]
    await asyncio.gather(*(alice.send(bobby, each, encrypt=False) for each in words))
    await until(lambda: set(words) <= set(bobby.texts()))
    return {"times": max(bobby.texts().count(each) for each in words)}


async def what_is_volatile_arrives(alice: Party, bobby: Party, folder: Path) -> dict[str, Any]:
    done = await alice.send(bobby, "gone in a minute", ttl=60, encrypt=False)
    await bobby.hears("gone in a minute")
    return {"storage": done.get("storage")}


async def a_large_message_arrives(alice: Party, bobby: Party, folder: Path) -> dict[str, Any]:
    words = "x" * 600_000
    await alice.send(bobby, words, encrypt=False)
    await bobby.hears(words)
    return {}


async def a_group_talks_sealed(alice: Party, bobby: Party, folder: Path) -> dict[str, Any]:
    made = await alice.call("group.create", name="sealed", join_mode="invite_only")
    group = made["group"]["group_id"]
    await alice.call("group.add_member", group_id=group, aid=bobby.aid)
    await until(lambda: bobby.heard["group.changed"])
    for who, other, words in ((alice, bobby, "to all"), (bobby, alice, "back to all")):
        payload = {"type": "text", "text": words}
        await who.call("group.send", group_id=group, payload=payload)
        await other.hears(words, "group.message_created")
    return {"lost": len(alice.lost + bobby.lost)}


async def mail_waits_for_who_is_away(alice: Party, bobby: Party, folder: Path) -> dict[str, Any]:
    """For a person whose mail fills more than a page, the client asks for the newest page first."""
    await bobby.client.disconnect()
    for number in range(250):
        await alice.send(bobby, f"waits {number}", encrypt=False)
    await bobby.connect()
    await until(lambda: len(_numbers(bobby, "waits")) >= 250)
    got = _numbers(bobby, "waits")
    first = got.index(0)  # of the older page
    return {
        "different": len(set(got)),
        "pages_in_order": got[first:] + got[:first] == list(range(250)),
        "newest_page": first in {0, 200},
    }


async def mail_for_an_agent_waits_in_its_order(
    alice: Party, bobby: Party, folder: Path
) -> dict[str, Any]:
    dora = await Party("dora", folder, "agent").register()
    await dora.load().connect()
    await dora.client.disconnect()
    for number in range(250):
        await alice.send(dora, f"waits {number}", encrypt=False)
    coming = asyncio.create_task(dora.connect())
    for number in range(250, 270):
        await alice.send(dora, f"waits {number}", encrypt=False)
    await coming
    await until(lambda: len(_numbers(dora, "waits")) >= 270)
    await dora.client.close()
    return {"in_order": _numbers(dora, "waits") == list(range(270))}


async def whoever_comes_hears_mail_and_nothing_else(
    alice: Party, bobby: Party, folder: Path
) -> dict[str, Any]:
    """Also where their machine is busy, so that frames are read before `connect` goes on."""
    others, in_order = 0, True
    for name in ("erin", "frank", "gina", "hugo"):
        who = await Party(name, folder).register()
        await alice.send(who, "comes 0", encrypt=False)
        with _busy():
            coming = asyncio.create_task(who.load().connect())
            for number in range(1, 10):
                await alice.send(who, f"comes {number}", encrypt=False)
            await coming
            await until(lambda who=who: len(_numbers(who, "comes")) >= 10)
        in_order = in_order and _numbers(who, "comes") == list(range(10))
        others += len(who.heard["message.received"]) - 10
        await who.client.close()
    return {"in_order": in_order, "others": others}


async def a_queue_loses_nothing(alice: Party, bobby: Party, folder: Path) -> dict[str, Any]:
    """Two workers of one AID share what comes; what waited and what one left, the other has."""
    queue = {"delivery_mode": {"mode": "queue"}}
    first = await Party("ivan", folder, "agent").register()
    second = Party("ivan", folder)
    for number in range(220):  # a queue kept in memory would have held 200
        await alice.send(first, f"work {number}", encrypt=False)
    for who, slot in ((first, "first"), (second, "second")):
        await who.joined(first.store, slot).connect(**queue)
    try:
        await Party("ivan", folder).joined(first.store, "third").connect()
        conflict = ""
    except ValidationError as error:
        conflict = str(error)
    modes = set()
    for number in range(220, 240):
        sent = await alice.send(first, f"work {number}", encrypt=False)
        modes.add(sent["delivery_mode"])
        if number == 230:
            await first.client.close()
    await until(lambda: set(_numbers(second, "work")) >= set(range(240)))
    got = _numbers(second, "work")
    await second.client.close()
    return {"conflict": conflict, "modes": sorted(modes), "in_order": got == list(range(240))}


async def what_is_volatile_has_an_end(alice: Party, bobby: Party, folder: Path) -> dict[str, Any]:
    """Sixteen megabytes wait for one receiver; beyond, the sender is told to come back."""
    judy = await Party("judy", folder).register()
    sent = 0
    try:
        while True:
            await alice.send(judy, "x" * 900_000, ttl=300, encrypt=False)
            sent += 1
    except RateLimitError as error:
        full = str(error)
    await judy.load().connect()
    await until(lambda: len(judy.heard["message.received"]) >= sent)
    await alice.send(judy, "there is room again", ttl=300, encrypt=False)
    await judy.hears("there is room again")
    await judy.client.close()
    return {"full": full, "sent": sent}


SCENARIOS = (
    a_retry_is_delivered_once,
    a_rekey_loses_no_message,
    a_first_word_reaches_who_never_connected,
    a_recall_is_heard,
    a_hundred_at_once_arrive_once_each,
    what_is_volatile_arrives,
    a_large_message_arrives,
    a_group_talks_sealed,
    mail_waits_for_who_is_away,
    mail_for_an_agent_waits_in_its_order,
    whoever_comes_hears_mail_and_nothing_else,
    a_queue_loses_nothing,
    what_is_volatile_has_an_end,
    cached_tokens_outlive_a_restart,
    a_token_nobody_knows_is_replaced_on_the_way_back,
)


async def main() -> None:
    folder = Path(os.environ["HOME"])
    alice = await Party("alice", folder).register()
    bobby = await Party("bobby", folder).register()
    for who in (alice, bobby):
        await who.load().connect()
    for scenario in SCENARIOS:
        told: dict[str, Any] = {"scenario": scenario.__name__}
        began = time.monotonic()
        try:
            told["found"] = await scenario(alice, bobby, folder)
        except (AssertionError, AUNError, OSError, TimeoutError) as error:
            told["error"] = f"{type(error).__name__}: {error}"[:500]
        told["took"] = round(time.monotonic() - began, 2)
        tell(told)
    for who in (alice, bobby):
        await who.client.close()


asyncio.run(main())
