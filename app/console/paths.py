"""Where a redirect may lead: a path of ours, or the start page (SEC-46)."""

import re
from urllib.parse import urljoin, urlsplit

from starlette.requests import Request

from app.kernel import settings

OWN = re.compile(r"/(?![/\\])")
STRANGE = re.compile(r"[\x00-\x20\x7f\\]")  # browsers drop some of these, and turn others round
DOTS = re.compile(r"/\.{1,2}(?:[/?#]|$)")  # steps up and down have no place in a path of ours
LONGEST = 2_000  # characters
START = "/"


def own(path: str | None) -> str:
    """`path`, if a browser that follows it stays on our origin; else the start page."""
    if (
        not path
        or len(path) > LONGEST
        or not OWN.match(path)
        or STRANGE.search(path)
        or DOTS.search(path)
    ):
        return START
    origin = settings.current().origin
    try:
        resolved = urlsplit(urljoin(f"{origin}/", path))
    except ValueError:
        return START
    is_ours = (resolved.scheme, resolved.netloc) == tuple(urlsplit(origin)[:2])
    return path if is_ours and not resolved.path.startswith("//") else START


def of_request(request: Request) -> str:
    """The path and query of this request, to come back to."""
    query = f"?{request.url.query}" if request.url.query else ""
    return own(f"{request.url.path}{query}")
