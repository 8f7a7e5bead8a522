"""Which language and which theme a reader gets before we know who it is (UI-96).

Order: the user's setting, the cookie set before sign-in, `Accept-Language`, the tenant, English.
"""

from typing import Literal

from starlette.requests import Request
from starlette.responses import Response

from app.kernel.i18n import DEFAULT, LANGUAGES, best_match

Theme = Literal["system", "light", "dark"]
THEMES: tuple[Theme, ...] = ("system", "light", "dark")
LANGUAGE_COOKIE = "lang"
THEME_COOKIE = "theme"
YEAR_S = 31_536_000


def choose(
    *,
    user: str | None = None,
    cookie: str | None = None,
    accept: str = "",
    tenant: str | None = None,
) -> str:
    """The first of the five that names a language of ours."""
    for tag in (user, cookie, best_match(accept), tenant):
        if tag in LANGUAGES:
            return tag
    return DEFAULT


def of_request(request: Request, *, user: str | None = None, tenant: str | None = None) -> str:
    """The language of this request; `user` and `tenant` are settings, where they are known."""
    return choose(
        user=user,
        cookie=request.cookies.get(LANGUAGE_COOKIE),
        accept=request.headers.get("accept-language", ""),
        tenant=tenant,
    )


def theme_of(request: Request, *, user: str | None = None) -> Theme:
    """The theme to render: the user's setting, else the cookie, else what the system prefers."""
    for theme in (user, request.cookies.get(THEME_COOKIE)):
        if theme in THEMES:
            return theme
    return "system"


def remember(response: Response, *, language: str | None = None, theme: str | None = None) -> None:
    """Keep a choice in this browser for a year, so that the sign-in page already follows it."""
    for name, value, known in (
        (LANGUAGE_COOKIE, language, tuple(LANGUAGES)),
        (THEME_COOKIE, theme, THEMES),
    ):
        if value in known:
            response.set_cookie(name, str(value), max_age=YEAR_S, httponly=True, samesite="lax")
