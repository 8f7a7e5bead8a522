"""POST /look: language and theme for this browser, before anybody has signed in.

It keeps a cookie and nothing else, so it needs no session, only a page of ours that asks; the
settings page keeps both with the user.
"""

from typing import Annotated, Literal

from fastapi import APIRouter, Form, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict

from app.console import language, paths
from app.console.flash import see_other
from app.console.language import Theme
from app.identity import guard
from app.kernel import settings

router = APIRouter(prefix="/look")


class Look(BaseModel):
    """What to keep, and the page to go back to."""

    model_config = ConfigDict(extra="forbid")

    language: Literal["en", "zh-CN"] | None = None
    theme: Theme | None = None
    back: str = "/"


@router.post("")
async def keep(request: Request, look: Annotated[Look, Form()]) -> Response:
    """Remember the choice in this browser and show the page again.

    Raises:
        CrossSite: another site's page made the request.
    """
    guard.check_origin(request.headers.items(), settings.current().origin)
    response = see_other(paths.own(look.back))
    language.remember(response, language=look.language, theme=look.theme)
    return response
