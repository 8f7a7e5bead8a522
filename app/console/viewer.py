"""Who looks at a page, and what drawing it needs to know: language, zone, theme, permissions.

Every request has a viewer; one nobody signed in for is anonymous. The current one also fixes the
language of all words, so that a filter in a macro and a refusal at the edge speak alike.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from app.console import language
from app.console.language import Theme
from app.kernel.i18n import DEFAULT, speaking


@dataclass(frozen=True, slots=True)
class Viewer:
    """One reader of pages. `csrf` is the token of the browser session; empty draws no field."""

    user_id: str = ""
    tenant_id: str = ""
    display_name: str = ""
    tenant_name: str = ""
    language: str = DEFAULT
    theme: Theme = "system"
    time_zone: str = "UTC"
    csrf: str = ""
    permissions: frozenset[str] = frozenset()
    is_person: bool = False
    badges: Mapping[str, int] = field(default_factory=dict)  # counts beside entries of the rail
    live: str = ""  # the handle of the browser session; empty: nothing on the page is live
    cursor: str = ""  # of the event log, read before anything else of the page (UI-38)

    def may(self, permission: str | tuple[str, ...] | None) -> bool:
        """Whether a link to what needs `permission` is worth showing; it is no guard.

        Of several, one will do.
        """
        if permission is None:
            return True
        wanted = (permission,) if isinstance(permission, str) else permission
        return not self.permissions.isdisjoint(wanted)


Load = Callable[[Request], Awaitable[Viewer | None]]

_current: ContextVar[Viewer | None] = ContextVar("viewer", default=None)


def of(request: Request) -> Viewer:
    """The viewer of this request: the one set as `request.state.viewer`, else an anonymous one."""
    viewer = getattr(request.state, "viewer", None)
    return viewer if isinstance(viewer, Viewer) else anonymous(request)


def anonymous(request: Request) -> Viewer:
    """A reader who has not signed in; a page with a form leaves its token in `state.csrf`."""
    return Viewer(
        language=language.of_request(request),
        theme=language.theme_of(request),
        csrf=getattr(request.state, "csrf", ""),
    )


def current() -> Viewer:
    """The viewer something is being drawn for."""
    return _current.get() or Viewer()


@contextmanager
def viewing(viewer: Viewer) -> Iterator[None]:
    """Draw for `viewer` inside the block, in the viewer's language."""
    token = _current.set(viewer)
    try:
        with speaking(viewer.language):
            yield
    finally:
        _current.reset(token)


class Viewing:
    """Plain ASGI layer: finds the viewer once for each page and speaks that language throughout.

    `load` gives the signed-in viewer or None; it is asked only where `is_page` says so.
    """

    def __init__(self, app: ASGIApp, load: Load, is_page: Callable[[Request], bool]) -> None:
        self.app = app
        self.load = load
        self.is_page = is_page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, with its viewer."""
        if scope["type"] != "http" or not self.is_page(request := Request(scope)):
            await self.app(scope, receive, send)
            return
        if viewer := await self.load(request):
            request.state.viewer = viewer
        with viewing(of(request)):
            await self.app(scope, receive, send)
