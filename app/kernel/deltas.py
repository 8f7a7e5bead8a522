"""Text that is still growing, to the streams of the user who watches it; never logged (UI-36).

Whoever misses a piece misses nothing: a logged event ends the text and brings it whole.
"""

import asyncio
import os
from contextlib import suppress
from dataclasses import dataclass, replace
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


Key = tuple[str, str, str]  # tenant, user, node
Piece = tuple[int, str]  # where it begins, and what it says

_waiting: dict[Key, list[Piece]] = {}  # until the time of a node's last frame is over
_sending: set[asyncio.Task[None]] = set()


def append(tenant_id: str, user_id: str, node: str, at: int, text: str) -> None:
    """Show a user that the text in `node` grew; on the event loop that makes it grow."""
    key = (tenant_id, user_id, node)
    if (waiting := _waiting.get(key)) is not None:
        waiting.append((at, text))
        return
    _waiting[key] = []
    _send(key, [(at, text)])
    asyncio.get_running_loop().call_later(EVERY_S, _let_go, key)


def listen() -> None:
    """Pass on what grows in other processes; once in each."""
    global _is_listening
    if not _is_listening:
        _is_listening = True
        events.subscribe(Grew, _hear)


_is_listening = False


def units(text: str) -> int:
    """How long a text is for a browser."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


@cache
def _origin(pid: int) -> str:
    """Which process this is; a forked one is another."""
    return f"{ids.ulid()}.{pid}"


def _let_go(key: Key) -> None:
    grown = _waiting.pop(key)
    if grown:
        _waiting[key] = []
        _send(key, _joined(grown))
        asyncio.get_running_loop().call_later(EVERY_S, _let_go, key)


def _joined(grown: list[Piece]) -> list[Piece]:
    """What follows upon each other, in one."""
    joined: list[tuple[int, list[str]]] = []
    end: int | None = None
    for at, text in grown:
        if at == end:
            joined[-1][1].append(text)
        else:
            joined.append((at, [text]))
        end = at + units(text)
    return [(at, "".join(texts)) for at, texts in joined]


def _send(key: Key, grown: list[Piece]) -> None:
    tenant_id, user_id, node = key
    said = [
        Grew(
            tenant_id=tenant_id,
            user_id=user_id,
            node=node,
            at=at,
            text=text,
            origin=_origin(os.getpid()),
        )
        for at, text in grown
    ]
    for grew in said:
        _offer(grew)
    if not db.is_sqlite():  # there may be other processes
        task = asyncio.ensure_future(_tell_others(said))
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
            work.announce(replace(grew, at=at, text=piece))
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
