"""/sign-out: ends the session on the server; the cookie goes with the attributes it came with."""

from fastapi import APIRouter, Request
from fastapi.responses import Response

from app.console import flash
from app.identity import cookies, deps, sessions
from app.kernel import db
from app.kernel.i18n import N_

router = APIRouter(prefix="/sign-out")

SIGNED_OUT = flash.notice(N_("You are signed out."))


@router.post("")
async def sign_out(request: Request) -> Response:
    """End this session; whoever has none is signed out already."""
    if await deps.signed_of(request) is not None or "authorization" in request.headers:
        person = await deps.person(request)
        await db.transaction(sessions.end, person, str(person.session_id), "signed_out")
    cookies.take_session(request)
    return flash.see_other("/sign-in", SIGNED_OUT)
