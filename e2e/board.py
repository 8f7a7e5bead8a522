"""A page with everything live that a conversation has, for the tests of the live layer alone.

The application is the real one, in the test process, so that a test may look at what it counts and
provoke faults in front of it; `board` is what the page shows and the stream tells.
"""

import asyncio
import html
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response
from jinja2 import ChoiceLoader, FileSystemLoader
from markupsafe import Markup
from playwright.async_api import Page
from sqlmodel import Session

from app.console import view
from app.console.live import families
from app.console.live.rendering import Asked, Hearer, Partial, Render
from app.identity import cookies
from app.identity.deps import Person
from app.identity.models import User
from app.kernel import clock, db, settings
from app.kernel.models import LoggedEvent
from e2e.conftest import PageFor
from e2e.control import MARKER, Control
from tests import people
from tests.edge_server import serving
from tests.people import World

HEARTBEAT_S = 0.4
PATH = "/e2e/board"

Partials = list[tuple[str, str, str]]


@dataclass
class Board:
    """Rows by id: place, version, text; and how often each client id was stored."""

    rows: dict[str, tuple[int, int, str]] = field(default_factory=dict)
    posts: dict[str, int] = field(default_factory=dict)
    seq: int = 0

    def row(self, id: str, client: str = "") -> str:
        """A row as page, region, frame and answer draw it."""
        seq, rev, text = self.rows[id]
        mine = f' data-client="{client}"' if client else ""
        return (
            f'<li id="message-{id}" data-seq="{seq}" data-rev="{rev}"{mine}>'
            f'<span class="said">{html.escape(text)}</span>'
            f'<details id="message-{id}-more"><summary>more</summary>whole</details></li>'
        )

    def all_rows(self) -> str:
        """The list."""
        ordered = sorted(self.rows, key=lambda id: self.rows[id][0])
        return "".join(self.row(id) for id in ordered)

    def put(self, id: str, text: str) -> None:
        """Write a row, anew or again."""
        seq, rev, _ = self.rows.get(id, (0, 0, ""))
        if not seq:
            self.seq += 1
        self.rows[id] = (seq or self.seq, rev + 1, text)


@dataclass
class House:
    """The running application, who is in it, and its controls."""

    world: World
    control: Control
    board: Board
    base_url: str

    async def page(self, page_for: PageFor, user: User, **look: Any) -> Page:
        """A page of a browser of its own in which `user` is signed in."""
        page = await page_for(self.base_url, **look)
        await self.sign_in(page, user)
        return page

    async def sign_in(self, page: Page, user: User) -> None:
        """Let `user` be the one of this browser from now on."""
        client = self.world.client(user)
        [secret] = [each.value for each in client.cookies.jar]
        await page.context.add_cookies(
            [
                {
                    "name": cookies.session_name(),
                    "value": str(secret),
                    "domain": "localhost",
                    "path": "/",
                    "secure": True,
                    "httpOnly": True,
                    "sameSite": "Lax",
                }
            ]
        )

    def emit(self, partials: Partials, user: User | None = None) -> int:
        """Tell everybody of Acme, or one of them."""
        return self.control.emit(self.world.acme.id, partials, user.id if user else None)

    def say(self, id: str, text: str) -> None:
        """Write a row and tell everybody."""
        self.board.put(id, text)
        self.emit([("#messages", "beforeend", self.board.row(id))])


@contextmanager
def house(folder: Path, monkeypatch: Any) -> Iterator[House]:
    """The application on a fresh database, with the board in it."""
    with people.peopled("sqlite", folder) as url:
        db.open(url)
        try:
            with people.world(url=url) as world:
                yield from _served(world, monkeypatch)
        finally:
            db.close()


def _served(world: World, monkeypatch: Any) -> Iterator[House]:
    from app import main

    board = Board()
    families.found.cache_clear()
    families.found().renders[MARKER] = [Render(_draw)]
    families.found().regions["board"] = lambda session, asked: _region(board, asked)
    own = FileSystemLoader(Path(__file__).parent / "styleguide_templates")
    monkeypatch.setattr(
        view.environment, "loader", ChoiceLoader([FileSystemLoader(view.TEMPLATES), own])
    )
    late: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await late[0](scope, receive, send)

    control = Control(app)

    async def told(id: str) -> None:
        partials = [("#messages", "beforeend", board.row(id))]
        await asyncio.to_thread(control.emit, world.acme.id, partials)
        await asyncio.sleep(0.5)  # for the browser to draw it first

    with serving(control, lifespan="off") as port:
        monkeypatch.setenv("ASSENT_PORT", str(port))
        monkeypatch.setenv("ASSENT_HEARTBEAT_S", str(HEARTBEAT_S))
        settings.current.cache_clear()
        made = main.create_app()
        made.include_router(_router(board, told))
        late.append(made)
        world.app = made  # of this port
        try:
            yield House(world, control, board, f"http://localhost:{port}")
        finally:
            families.found.cache_clear()
            settings.current.cache_clear()


def _draw(session: Session, event: LoggedEvent, hearer: Hearer) -> Iterable[Partial]:
    return [Partial(*each) for each in event.data["partials"]]


def _region(board: Board, asked: Asked) -> str | None:
    return board.all_rows()


def _router(board: Board, told: Callable[[str], Awaitable[None]]) -> APIRouter:
    router = APIRouter(prefix=PATH)

    @router.get("")
    async def show(request: Request, person: Person) -> HTMLResponse:
        rows, now = Markup(board.all_rows()), clock.now()  # noqa: S704 - ours
        return view.render(request, "board.html", board=rows, user_id=person.user_id, now=now)

    @router.post("/messages")
    async def send(request: Request, person: Person) -> Response:
        form = await request.form()
        client, text = str(form["client_id"]), str(form["text"])
        board.posts[client] = board.posts.get(client, 0) + 1
        if board.posts[client] == 1:
            board.put(client, text)
        row = Partial("#messages", "beforeend", board.row(client, client))
        if text.startswith("late"):  # the stream is told of a newer state before this is answered
            board.put(client, "done")
            await told(client)
        return HTMLResponse(str(row))

    return router
