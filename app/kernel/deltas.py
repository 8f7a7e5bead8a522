"""Text that is still growing, to the streams of the user who watches it; never logged (UI-36).

Whoever misses a piece misses nothing: a logged event ends the text and brings it whole.
"""

import asyncio
import os
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

from app.kernel import db, events, ids, json, streams
from app.kernel.db import Work
from app.kernel.events import Broadcast
from app.kernel.streams import Passing

EVERY_S = 0.05  # at most one frame of a node in so long
LONGEST = 1_000  # characters of one notice between processes
NAME = "delta"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grew(Broadcast):
    """A text grew by `text`; `at` counts what came before, in UTF-16 code units."""

    user_id: str
    node: str
    at: int
    text: str
    origin: str


class _Node:
    """One text: what waits until the time of its last frame is over."""

    def __init__(self) -> None:
        self.waiting: list[Grew] = []


_nodes: dict[tuple[str, str, str], _Node] = {}
_sending: set[asyncio.Task[None]] = set()


def append(tenant_id: str, user_id: str, node: str, at: int, text: str) -> None:
    """Show a user that the text in `node` grew; on the event loop that makes it grow."""
    grew = Grew(
        tenant_id=tenant_id,
        user_id=user_id,
        node=node,
        at=at,
        text=text,
        origin=_origin(os.getpid()),
    )
    key = (tenant_id, user_id, node)
    if (waits := _nodes.get(key)) is None:
        _nodes[key] = _Node()
        _send([grew])
        asyncio.get_running_loop().call_later(EVERY_S, _let_go, key)
    else:
        waits.waiting.append(grew)


def listen() -> None:
    """Pass on what grows in other processes; once in each."""
    global _is_listening
    if not _is_listening:
        _is_listening = True
        events.subscribe(Grew, _hear)


_is_listening = False


def units(text: str) -> int:
    """How long a text is for a browser."""
    return len(text.encode("utf-16-le")) // 2


@cache
def _origin(pid: int) -> str:
    """Which process this is; a forked one is another."""
    return f"{ids.ulid()}.{pid}"


def _let_go(key: tuple[str, str, str]) -> None:
    node = _nodes[key]
    if not node.waiting:
        del _nodes[key]
        return
    grown, node.waiting = node.waiting, []
    _send(_joined(grown))
    asyncio.get_running_loop().call_later(EVERY_S, _let_go, key)


def _joined(grown: list[Grew]) -> list[Grew]:
    """What follows upon each other, in one."""
    joined: list[Grew] = []
    text, at, end = "", grown[0].at, grown[0].at
    for each in grown:
        if each.at != end:
            joined.append(_with(each, at, text))
            text, at, end = "", each.at, each.at
        text += each.text
        end += units(each.text)
    return [*joined, _with(grown[-1], at, text)]


def _with(grew: Grew, at: int, text: str) -> Grew:
    return Grew(
        tenant_id=grew.tenant_id,
        user_id=grew.user_id,
        node=grew.node,
        at=at,
        text=text,
        origin=_origin(os.getpid()),
    )


def _send(grown: list[Grew]) -> None:
    for grew in grown:
        _offer(grew)
    if not db.is_sqlite():  # there may be other processes
        task = asyncio.ensure_future(_tell_others(grown))
        _sending.add(task)
        task.add_done_callback(_sending.discard)


async def _tell_others(grown: list[Grew]) -> None:
    with suppress(Exception):  # it was never promised
        await db.transaction(_announce, grown)


def _announce(work: Work, grown: list[Grew]) -> None:
    for grew in grown:
        at = grew.at
        for start in range(0, len(grew.text), LONGEST):
            piece = grew.text[start : start + LONGEST]
            work.announce(_with(grew, at, piece))
            at += units(piece)


def _hear(grew: Grew) -> None:
    if grew.origin != _origin(os.getpid()):
        _offer(grew)


def _offer(grew: Grew) -> None:
    watching = streams.of_process().of_user(grew.tenant_id, grew.user_id)
    if watching:
        body = json.dumps({"to": grew.node, "at": grew.at, "text": grew.text})
        frame = f"event: {NAME}\r\ndata: ".encode() + body + b"\r\n\r\n"
        for stream in watching:
            stream.offer_from_anywhere(Passing(grew, {NAME: frame}, len(frame)))
