"""`GET /v1/events`: what happens in the tenant, as server-sent events that can be resumed.

The same log and the same rights as the console's stream, as JSON (UI-42). Text that is still
growing is asked for by `?deltas=1`; it is no part of the log.
"""

from collections.abc import AsyncGenerator
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from sse_starlette import EventSourceResponse
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.access.following import Following, Told
from app.api.strict import Strict
from app.identity import bearer
from app.identity.deps import Caller
from app.identity.doors import Door
from app.identity.principal import Scope as TokenScope
from app.kernel import deltas, json
from app.kernel.asgi import event_stream
from app.kernel.asgi.event_stream import CHUNK, HEARTBEAT
from app.kernel.event_log import Gap, Position
from app.kernel.feed import News
from app.kernel.streams import Passing

KIND = "events"

router = APIRouter(prefix="/v1", tags=["events"], route_class=Strict)


class EventStream(EventSourceResponse):
    """The answer that a client's frames make."""

    def __init__(self, following: Following, frames: AsyncGenerator[bytes, None]) -> None:
        super().__init__(frames)
        self._following = following
        self._frames = frames

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream until either side ends it, or the client stops reading."""
        following = self._following
        await event_stream.answer(
            following.stream,
            self._frames,
            following.close,
            self.raw_headers,
            scope,
            receive,
            send,
        )


_STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events as they happen; `data` is JSON, `id` is for `Last-Event-ID`.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}


@router.get("/events", response_class=EventSourceResponse, responses=_STREAM)
async def events(
    caller: Caller,
    last_event_id: Annotated[str, Header()] = "",
    with_deltas: Annotated[bool, Query(alias="deltas")] = False,
) -> Response:
    """Every event the caller may hear of, from now on or after `Last-Event-ID`.

    `ready` says where the stream begins; `gap` that events before its id cannot be told any more:
    look at everything anew; `overflow` that the client was too slow: come back with the last id.
    With `deltas=1` text that is still being written comes as `delta`, without an id.
    """
    bearer.require(caller, TokenScope.EVENTS_READ, Door.V1)
    following = Following(caller, KIND, last_event_id)
    try:
        await following.authorise()
        gap = await following.begin()  # whoever sees the answer begin misses nothing from there on
    except BaseException:
        following.close()
        raise
    return EventStream(following, _frames(following, gap, with_deltas=with_deltas))


async def _frames(
    following: Following, gap: Gap | None, *, with_deltas: bool
) -> AsyncGenerator[bytes, None]:
    """What the client gets, until its rights end or it is too slow."""
    yield _frame("gap", gap.at, {}) if gap else _frame("ready", following.position, {})
    async for batch in following.batches():
        chunk = b""
        for item in batch:
            if isinstance(item, Passing) and not with_deltas:
                continue
            if await following.may_tell(item):
                chunk += _drawn(item)
            if len(chunk) >= CHUNK:
                yield chunk
                following.has_spoken()
                chunk = b""
        if chunk or following.is_due:
            yield chunk or HEARTBEAT
            following.has_spoken()
    if following.stream.is_overflown and not following.stream.is_over:
        yield _frame("overflow", None, {})


def _drawn(item: Told) -> bytes:
    if isinstance(item, Passing):
        frame: bytes = item.drawn.get(deltas.NAME, b"")
        return frame
    if isinstance(item, Gap):
        return _frame("gap", item.at, {})
    return _of_event(item)


def _of_event(news: News) -> bytes:
    frame: bytes | None = news.drawn.get(KIND)
    if frame is None:
        event = news.event
        data = {"seq": event.seq, "at": event.at, "subject": event.subject, "data": event.data}
        frame = news.drawn[KIND] = _frame(event.kind, news.position, data)
    return frame


def _frame(name: str, position: Position | None, data: dict[str, object]) -> bytes:
    id_line = f"id: {position}\r\n" if position is not None else ""
    head = f"{id_line}event: {name}\r\ndata: ".encode()
    return head + json.dumps(data) + b"\r\n\r\n"
