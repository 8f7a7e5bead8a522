"""The stream of one browser session, in frames (§3.3)."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from contextlib import closing
from functools import partial

from app.access.following import Following, Told
from app.console.live import attendance, drawing, families
from app.console.live.rendering import Hearer
from app.console.live.waiting import Waiting
from app.identity.principal import Principal
from app.kernel import clock, deltas, events, streams
from app.kernel.asgi.event_stream import CHUNK, HEARTBEAT
from app.kernel.event_log import Gap
from app.kernel.events import Event
from app.kernel.feed import News
from app.kernel.streams import BUFFER, Passing, Stream

KIND = "live"
AT_MOST = 500  # frames that are told again; behind that a page is drawn anew sooner (UI-39)
LIFE_S = 30 * 60.0


def follow(person: Principal, after: str) -> Following:
    """A place in the log for the stream of `person`; `close` it.

    Raises:
        TooManyStreams: the user has eight.
    """
    return Following(person, KIND, after, concerns=families.found().draw, at_most=AT_MOST)


async def frames(
    following: Following, language: str, time_zone: str
) -> AsyncGenerator[bytes, None]:
    """What the browser gets, until its rights end, it is too slow, or half an hour is over.

    As long as they flow, the person is there.
    """
    place = await attendance.come(following.principal)
    try:
        yield HEARTBEAT
        following.has_spoken()
        ends_at_s = clock.monotonic_s() + LIFE_S
        if gap := await following.begin():
            yield drawing.frame(gap.at, "resync", "1")
        draw = partial(_drawn, following, language, time_zone)
        with closing(Waiting(draw, following.stream.wake)) as waiting:
            async for batch in following.batches():
                waiting.add(batch)
                is_more = True
                while is_more:
                    chunk = await _chunk(following, waiting)
                    if chunk or following.is_due:
                        yield chunk or HEARTBEAT
                        following.has_spoken()
                    is_quiet = not batch and not chunk and not waiting
                    if is_quiet and clock.monotonic_s() >= ends_at_s:
                        return
                    is_more = len(chunk) >= CHUNK or await _is_full(waiting)
        if following.stream.is_left:
            return
        is_slow = following.stream.is_overflown and not following.stream.is_ended
        yield drawing.frame(None, "overflow" if is_slow else "signed-out", "1")
    finally:
        await attendance.go(following.principal, place)


async def _chunk(following: Following, waiting: Waiting) -> bytes:
    """What can be sent now, as far as it is sent together."""
    chunk = b""
    for item, drawn in waiting.take():
        if drawn and await following.may_tell(item):
            chunk += drawn
        if len(chunk) >= CHUNK:
            break
    return chunk


async def _is_full(waiting: Waiting) -> bool:
    """Whether nothing more may join what waits; then the first of it is drawn by now."""
    if len(waiting) < BUFFER:
        return False
    await waiting.first()
    return True


def _drawn(
    following: Following, language: str, time_zone: str, item: Told
) -> bytes | Awaitable[bytes]:
    if isinstance(item, Gap):
        return drawing.frame(item.at, "resync", "1")
    if isinstance(item, Passing) and deltas.NAME in item.drawn:
        delta: bytes = item.drawn[deltas.NAME]
        return delta
    aid = following.rights.aid if following.rights else None
    hearer = Hearer(following.principal, language, time_zone, aid)
    if (found := drawing.found(item, hearer)) is not None:
        return found
    if isinstance(item, News):
        return drawing.of_news(item, hearer)
    return drawing.of_passing(item, hearer)


def listen() -> Callable[[], None]:
    """Pass on what passes; returns a function that ends it."""
    ends = [events.subscribe(kind, _pass_on) for kind in families.found().passes]
    return lambda: _end(ends)


def _end(ends: Collection[Callable[[], None]]) -> None:
    for end in ends:
        end()


def _pass_on(event: Event) -> None:
    passing = Passing(event)
    for stream in _watching(event):
        stream.offer_from_anywhere(passing)


def _watching(event: Event) -> Sequence[Stream]:
    """The streams of the one whom it is for, or of everybody: drawing then finds out for whom."""
    is_for = families.found().passes[type(event)].is_for
    if is_for is None:
        return streams.of_process().of_kind(event.tenant_id, KIND)
    of_user = streams.of_process().of_user(event.tenant_id, is_for(event))
    return [stream for stream in of_user if stream.kind == KIND]
