"""Whose name a request came to: AIDs are virtual hosts of one application (aun.md, 2)."""

from starlette.requests import Request

from app.aun.pki import issuers
from app.kernel.errors import NotFound


def name(request: Request) -> str:
    """The host name that was asked for, without a port and in small letters."""
    host: str = request.headers.get("host", "")
    return host.partition(":")[0].lower()


def port(request: Request) -> str:
    """The port that was asked for with its colon, empty for the usual one."""
    _, colon, number = request.headers.get("host", "").partition(":")
    return colon + number if number.isdecimal() else ""


def tenant(request: Request) -> str:
    """The tenant whose name it is; the first one at a name that is no AID's.

    Raises:
        NotFound: there is no tenant yet.
    """
    found = issuers.tenant_of(name(request)) or issuers.first()
    if found is None:
        raise NotFound
    return found
