"""The way in: pages for somebody who is not signed in yet, and what follows once they are.

Such a page is drawn for nobody in particular, even if the browser has a session: its form carries
the token of the browser and not of the session (SEC-35).
"""

from typing import Annotated

from fastapi import Depends
from fastapi.responses import Response
from starlette.requests import Request

from app.console import flash, signed_in
from app.console.held import Held
from app.console.view import render
from app.console.viewer import anonymous
from app.identity import cookies, sessions
from app.identity.deps import BeforeSession, browser_of, signed_of
from app.identity.errors import AmbiguousCredentials, HumanSessionRequired
from app.identity.sign_in import Arrival
from app.kernel import db


async def stranger(request: Request, mark: BeforeSession) -> str:
    """What marks this browser before it is signed in; its page is drawn for nobody.

    Raises:
        AmbiguousCredentials, HumanSessionRequired: the request carries a token (SEC-1, SEC-2).
    """
    if "authorization" in request.headers:
        raise AmbiguousCredentials if await signed_of(request) else HumanSessionRequired
    request.state.viewer = anonymous(request)
    return mark


Stranger = Annotated[str, Depends(stranger)]


async def arrival(request: Request, time_zone: str = "") -> Arrival:
    """The browser a session is about to begin in."""
    return Arrival(browser_of(request), time_zone, await signed_of(request))


async def replay_as(request: Request, secret: str, kept: Held) -> Response:
    """The same, for a session that has only just begun."""
    request.state.signed = await db.read(sessions.find, secret)
    request.state.viewer = await signed_in.load(request)
    return replay(request, kept)


def welcome(request: Request, secret: str) -> Response:
    """The first answer of a first session."""
    cookies.give_session(request, secret)
    return flash.see_other("/welcome")


def replay(request: Request, kept: Held) -> Response:
    """The page that sends a held form again, on the person's click."""
    response = render(request, "entry/replay.html", held=kept)
    response.headers["Cache-Control"] = "no-store"
    return response
