"""Person or agent: decided by the kind of credential alone, before anything is read (SEC-34).

The table of the rule, as one function without a database or a web framework; first match wins.
"""

from collections.abc import Iterable
from enum import Enum, auto

from app.identity.errors import (
    AmbiguousCredentials,
    CrossSite,
    CsrfToken,
    HumanSessionRequired,
    SignInRequired,
)
from app.kernel.errors import AppError

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
SINGLE = frozenset({"authorization", "origin", "sec-fetch-site", "x-csrf-token"})


class Repeated(AppError):
    """A header that decides came twice."""

    reason = "repeated_header"
    status = 400


class Token(Enum):
    """What is known of the form's token when the table is asked."""

    RIGHT = auto()
    WRONG = auto()


def check(
    headers: Iterable[tuple[str, str]],
    *,
    has_session: bool,
    method: str,
    origin: str,
    token: Token,
) -> None:
    """Let a request of a person pass.

    `has_session`: a live session belongs to the cookie. `origin`: the configured public origin.

    Raises:
        Repeated, AmbiguousCredentials, HumanSessionRequired, SignInRequired, CrossSite, CsrfToken:
            the row of the table that applies.
    """
    seen = _single(headers)
    if "authorization" in seen:
        raise AmbiguousCredentials if has_session else HumanSessionRequired
    if not has_session:
        raise SignInRequired
    if method in SAFE_METHODS:
        return  # GET changes nothing, so a link from a mail or a chat may open a page
    check_origin(headers, origin)
    if token is not Token.RIGHT:
        raise CsrfToken


def check_origin(headers: Iterable[tuple[str, str]], origin: str) -> None:
    """Let an unsafe request pass that a page of ours made.

    Another port of localhost is `same-site`, and its requests carry even `SameSite=Strict`
    cookies: only the same origin will do.

    Raises:
        CrossSite: another page made it, or nobody says which.
        Repeated: a header came twice.
    """
    seen = _single(headers)
    if "sec-fetch-site" in seen:
        if seen["sec-fetch-site"] != "same-origin":
            raise CrossSite
    elif seen.get("origin") != origin:
        raise CrossSite


def _single(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    seen: dict[str, str] = {}
    for name, value in headers:
        if (key := name.lower()) in SINGLE:
            if key in seen:
                raise Repeated
            seen[key] = value
    return seen
