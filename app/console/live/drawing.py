"""Draws events for those who hear of them: once for each audience, language and zone (UI-41).

What was drawn stays with the event as long as somebody's buffer holds it, as bytes; who comes while
it is being drawn waits for the same. Events of the log are drawn few at a time: what passes, pages
and runs do not queue behind hundreds of them.
"""

import asyncio
from collections.abc import Collection, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import structlog
from sqlmodel import Session

from app.console.live import families
from app.console.live.rendering import Hearer, Pass, Render, line_of
from app.console.viewer import viewing
from app.kernel import db
from app.kernel.event_log import Position
from app.kernel.feed import News
from app.kernel.models import LoggedEvent
from app.kernel.streams import Passing

WHO = "who"  # in `drawn`: who hears of what passes
AT_ONCE = 2  # events of the log in the hands of the database's readers

log = structlog.get_logger(__name__)

Drawn = dict[Any, Any]  # key → bytes, or a future of them


def found(item: News | Passing, hearer: Hearer) -> bytes | None:
    """The frame of something for this person, where it needs no drawing any more."""
    if isinstance(item, Passing) and not _may_hear(item, hearer):
        return b""
    drawn = item.drawn.get(_key(item, hearer))
    return drawn if isinstance(drawn, bytes) else None


async def of_news(news: News, hearer: Hearer) -> bytes:
    """The one frame of an event for this person (UI-34); empty where nothing of it is theirs."""
    renders = _renders(news)
    drawn: bytes = await _once(news.drawn, _key(news, hearer), _news, news, renders, hearer)
    return drawn


async def of_passing(passing: Passing, hearer: Hearer) -> bytes:
    """The frame of what passes, for this person; empty where it is not for them."""
    drawing = families.found().passes.get(type(passing.event))
    if drawing is None:
        return b""
    if drawing.is_for is None:
        await _once(passing.drawn, WHO, _who, drawing, passing)
    if not _may_hear(passing, hearer):
        return b""
    key = _key(passing, hearer)
    drawn: bytes = await _once(passing.drawn, key, _passing, drawing, passing, hearer)
    return drawn


def _renders(news: News) -> Sequence[Render]:
    return families.found().renders.get(news.event.kind, [])


def _key(item: News | Passing, hearer: Hearer) -> tuple[str, ...]:
    """What those who share the bytes of something have in common."""
    if isinstance(item, Passing):
        return (hearer.language, hearer.time_zone)
    audiences = (render.audience(item.event, hearer) for render in _renders(item))
    return (*audiences, hearer.language, hearer.time_zone)


def _may_hear(passing: Passing, hearer: Hearer) -> bool:
    """Whether it is for this person, as far as that is known yet."""
    drawing = families.found().passes.get(type(passing.event))
    if drawing is None:
        return False
    if drawing.is_for is not None:
        return hearer.user_id == drawing.is_for(passing.event)
    users = passing.drawn.get(WHO)
    return not isinstance(users, frozenset) or hearer.user_id in users


async def _once(drawn: Drawn, key: Any, make: Any, *arguments: Any) -> Any:
    """What `make` gives, made once for all who ask at the same time."""
    found = drawn.get(key)
    if found is None:
        found = drawn[key] = asyncio.ensure_future(make(*arguments))
        found.add_done_callback(lambda done: _keep(drawn, key, done))
    return await asyncio.shield(found) if isinstance(found, asyncio.Future) else found


def _keep(drawn: Drawn, key: Any, done: "asyncio.Future[Any]") -> None:
    if done.cancelled() or done.exception():
        drawn.pop(key, None)
    else:
        drawn[key] = done.result()


async def _news(news: News, renders: Sequence[Render], hearer: Hearer) -> bytes:
    try:
        async with _turns():
            html = await db.read(_rendered, news.event, renders, hearer)
    except Exception:
        log.exception("live_render_failed", kind=news.event.kind)
        return frame(news.position, "resync", "1")  # the page has to look for itself
    return frame(news.position, "", html) if html else b""


def _rendered(
    session: Session, event: LoggedEvent, renders: Sequence[Render], hearer: Hearer
) -> str:
    with viewing(hearer.viewer):
        partials = [each for render in renders for each in render.draw(session, event, hearer)]
    return "".join(map(str, partials))


def _turns() -> asyncio.Semaphore:
    """Those who draw events of the log on this loop take turns."""
    loop = asyncio.get_running_loop()
    turns = _of_loops.get(loop)
    if turns is None:
        turns = _of_loops[loop] = asyncio.Semaphore(AT_ONCE)
    return turns


_of_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


async def _who(drawing: Pass, passing: Passing) -> Collection[str]:
    if drawing.hears is None:
        return frozenset()
    try:
        return frozenset(await db.read(drawing.hears, passing.event))
    except Exception:
        log.exception("live_pass_failed", kind=type(passing.event).__name__)
        return frozenset()  # who misses it misses nothing


async def _passing(drawing: Pass, passing: Passing, hearer: Hearer) -> bytes:
    try:
        html = await db.read(_passed, drawing, passing, hearer)
    except Exception:
        log.exception("live_pass_failed", kind=type(passing.event).__name__)
        return b""
    return frame(None, "", html) if html else b""


def _passed(session: Session, drawing: Pass, passing: Passing, hearer: Hearer) -> str:
    with viewing(hearer.viewer):
        return "".join(map(str, drawing.draw(session, passing.event, hearer)))


def frame(position: Position | None, name: str, data: str) -> bytes:
    """One event of the stream (§3.3)."""
    lines = [
        f"id: {position}" if position else "",
        f"event: {name}" if name else "",
        *(f"data: {line}" for line in line_of(data).split("\n")),
    ]
    return ("\r\n".join(filter(None, lines)) + "\r\n\r\n").encode()
