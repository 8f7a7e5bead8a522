"""A detour: sign in, or confirm who you are, and then go on where you were.

A page that was asked for is asked for again afterwards. A form that was sent is kept, and sent
again by the person's click (`held.py`); a fragment and a script are told, and nothing else.
"""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.console import paths, refusals
from app.console.view import url
from app.identity import guard

FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


def by_reading(request: Request, page: str) -> Response | None:
    """The way to `page` and back for someone who opened a page; None for every other request."""
    if request.method not in guard.SAFE_METHODS or refusals.is_htmx(request):
        return None
    back = paths.of_request(request)
    address = url(page, next=back if back != paths.START else None)
    return RedirectResponse(address, status_code=303, headers={"Cache-Control": "no-store"})


def is_form(request: Request) -> bool:
    """Whether this request sent a form of a page."""
    sent = request.headers.get("content-type", "")
    is_unsafe = request.method not in guard.SAFE_METHODS
    return is_unsafe and sent.startswith(FORMS) and not refusals.is_htmx(request)
