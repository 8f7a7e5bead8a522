"""/live: the one stream of a browser session, and regions that a tab draws again."""

from collections.abc import AsyncGenerator
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import HTMLResponse, Response
from sse_starlette import EventSourceResponse
from starlette.types import Receive, Scope, Send

from app.access.following import Following
from app.console import viewer
from app.console.live import regions, stream
from app.console.live.handles import handle_of
from app.identity.deps import Person
from app.identity.principal import Principal
from app.kernel import db
from app.kernel.asgi import event_stream
from app.kernel.errors import Conflict
from app.kernel.i18n import N_

router = APIRouter(prefix="/live")

HEADERS = {"Cache-Control": "no-store, no-transform", "X-Accel-Buffering": "no"}
Handle = Annotated[str, Query(max_length=64)]
Place = Annotated[str, Query(max_length=64)]


class OtherSession(Conflict):
    """The page was drawn for another browser session than the cookie's: somebody signed in anew."""

    reason = "other_session"
    says = N_("Someone signed in anew in this browser. Load the page again.")


class LiveStream(EventSourceResponse):
    """The answer that a browser's frames make."""

    def __init__(self, following: Following, frames: AsyncGenerator[bytes, None]) -> None:
        super().__init__(frames, headers=HEADERS)
        self._following = following
        self._frames = frames

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream until either side ends it, or the browser stops reading."""
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


@router.get("/stream", response_class=EventSourceResponse)
async def read_stream(
    request: Request,
    person: Person,
    session: Handle = "",
    after: Place = "",
    last_event_id: Annotated[str, Header(max_length=64)] = "",
) -> Response:
    """Everything live, for all tabs of this browser session (UI-32, UI-33)."""
    _same_session(person, session)
    following = stream.follow(person, after or last_event_id)
    try:
        await following.authorise()
    except BaseException:
        following.close()
        raise
    reader = viewer.of(request)
    return LiveStream(following, stream.frames(following, reader.language, reader.time_zone))


@router.get("/regions")
async def read_regions(
    request: Request,
    person: Person,
    session: Handle = "",
    region: Annotated[tuple[str, ...], Query(max_length=regions.AT_MOST)] = (),
) -> HTMLResponse:
    """The regions of a page as they are now, with the cursor to go on from."""
    _same_session(person, session)
    wanted = regions.asked(person, region)
    cursor, html = await db.read(regions.draw, viewer.of(request), wanted)
    return HTMLResponse(html, headers={"Live-Cursor": str(cursor), "Cache-Control": "no-store"})


def _same_session(person: Principal, handle: str) -> None:
    if handle != handle_of(person.session_id or ""):
        raise OtherSession
