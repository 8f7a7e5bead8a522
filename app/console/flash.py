"""One sentence that survives a redirect: "Saved." on the page that follows a POST.

The cookie carries only the key of a sentence that a page wrote down at import, never text: whoever
can set cookies for this host (every local server can) puts no word into our mouth.
"""

import hashlib
from dataclasses import dataclass
from typing import Literal

from fastapi.responses import RedirectResponse
from starlette.requests import Request
from starlette.responses import Response

COOKIE = "flash"
SHOWN_WITHIN_S = 60

Tone = Literal["ok", "warn"]


@dataclass(frozen=True, slots=True)
class Notice:
    """A sentence (marked by N_) and how it looks."""

    key: str
    says: str
    tone: Tone = "ok"


_notices: dict[str, Notice] = {}


def notice(says: str, tone: Tone = "ok") -> Notice:
    """Write a sentence down, at import: `SAVED = flash.notice(N_("Saved."))`."""
    key = hashlib.sha256(says.encode()).hexdigest()[:12]
    return _notices.setdefault(key, Notice(key, says, tone))


def see_other(path: str, said: Notice | None = None) -> RedirectResponse:
    """The answer to a POST that did its work: 303 to a page of ours, which then shows `said`.

    Raises:
        ValueError: `path` is not a path of this origin.
    """
    if not path.startswith("/") or path[1:2] in {"/", "\\"}:
        raise ValueError(f"not a path of ours: {path}")
    response = RedirectResponse(path, status_code=303)
    if said:
        response.set_cookie(COOKIE, said.key, max_age=SHOWN_WITHIN_S, httponly=True, samesite="lax")
    return response


def waiting(request: Request) -> Notice | None:
    """What the page before wanted said, if it is a sentence of ours."""
    return _notices.get(request.cookies.get(COOKIE, ""))


def shown(request: Request, response: Response) -> None:
    """Take the cookie back, so that a reload does not say it again."""
    if COOKIE in request.cookies:
        response.delete_cookie(COOKIE, httponly=True, samesite="lax")
