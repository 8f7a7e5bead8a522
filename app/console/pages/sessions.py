"""/settings/sessions: the browsers a person is signed in with; any of them can be ended."""

from fastapi import APIRouter, Request
from fastapi.responses import Response

from app.console import flash
from app.console.params import Id
from app.console.view import render
from app.identity import cookies, sessions, users
from app.identity.deps import Person
from app.identity.principal import Principal
from app.kernel import db
from app.kernel.db import Work
from app.kernel.i18n import N_

router = APIRouter(prefix="/settings/sessions")

HERE = "/settings/sessions"
ENDED = flash.notice(N_("The browser session has ended."))
OTHERS_ENDED = flash.notice(N_("All other browser sessions have ended."))
HERE_ENDED = flash.notice(N_("You are signed out."))
ALL_ENDED = flash.notice(N_("You are signed out everywhere."))


@router.get("")
async def show(request: Request, person: Person) -> Response:
    """The page."""
    rows = await db.read(sessions.of_user, person.tenant_id, person.user_id)
    return render(request, "settings/sessions.html", rows=rows, here=person.session_id)


@router.post("/others/end")
async def end_others(person: Person) -> Response:
    """End every session but this one."""
    await db.transaction(_end_all, person, besides=person.session_id)
    return flash.see_other(HERE, OTHERS_ENDED)


@router.post("/all/end")
async def end_all(request: Request, person: Person) -> Response:
    """Sign out everywhere, here too."""
    await db.transaction(_end_all, person, besides=None)
    cookies.take_session(request)
    return flash.see_other("/sign-in", ALL_ENDED)


@router.post("/{session_id}/end")
async def end(request: Request, person: Person, session_id: Id) -> Response:
    """End one session."""
    await db.transaction(sessions.end, person, session_id, "ended_by_user")
    if session_id == person.session_id:
        cookies.take_session(request)
        return flash.see_other("/sign-in", HERE_ENDED)
    return flash.see_other(HERE, ENDED)


def _end_all(work: Work, person: Principal, *, besides: str | None) -> None:
    user = users.one(work.session, person.tenant_id, person.user_id)
    sessions.end_all(work, person, user, "ended_by_user", besides=besides)
