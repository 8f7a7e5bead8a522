"""Draws events for those who hear of them: once for each audience, language and zone (UI-41).

What was drawn stays with the event as long as somebody's buffer holds it, as bytes; who comes while
it is being drawn waits for the same.
"""

import asyncio
from collections.abc import Collection, Sequence
from typing import Any

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

log = structlog.get_logger(__name__)

Drawn = dict[Any, Any]  # key → bytes, or a future of them


async def of_news(news: News, hearer: Hearer) -> bytes:
    """The one frame of an event for this person (UI-34); empty where nothing of it is theirs."""
    event = news.event
    renders = families.found().renders.get(event.kind, [])
    key = (
        *(render.audience(event, hearer) for render in renders),
        hearer.language,
        hearer.time_zone,
    )
    found = news.drawn.get(key)
    if isinstance(found, bytes):
        return found
    drawn: bytes = await _once(news.drawn, key, _news, news, renders, hearer)
    return drawn


async def of_passing(passing: Passing, hearer: Hearer) -> bytes:
    """The frame of what passes, for this person; empty where it is not for them."""
    drawing = families.found().passes.get(type(passing.event))
    if drawing is None:
        return b""
    if drawing.is_for is None:
        users = await _once(passing.drawn, WHO, _who, drawing, passing)
    else:
        users = (drawing.is_for(passing.event),)
    if hearer.user_id not in users:
        return b""
    key = (hearer.language, hearer.time_zone)
    drawn: bytes = await _once(passing.drawn, key, _passing, drawing, passing, hearer)
    return drawn


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


async def _who(drawing: Pass, passing: Passing) -> Collection[str]:
    return frozenset(await db.read(drawing.hears, passing.event)) if drawing.hears else frozenset()


async def _passing(drawing: Pass, passing: Passing, hearer: Hearer) -> bytes:
    html = await db.read(_passed, drawing, passing, hearer)
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
