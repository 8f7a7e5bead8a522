"""The server with every grant there is; what is not here is not registered at all (SEC-12)."""

from typing import Any

from app.identity.oauth.adapter import Answer, PlainRequest, Server
from app.identity.oauth.exchange import ExchangeGrant
from app.identity.oauth.grants import S256, CodeGrant, DeviceGrant, RefreshGrant
from app.kernel.db import Work

GRANTS: tuple[tuple[type, list[Any]], ...] = (
    (CodeGrant, [S256()]),
    (RefreshGrant, []),
    (DeviceGrant, []),
    (ExchangeGrant, []),
)


def of(work: Work) -> Server:
    """A server for one unit."""
    return Server(work, GRANTS)


def token(work: Work, request: PlainRequest) -> Answer:
    """The unit of `POST /oauth/token`."""
    return of(work).create_token_response(request)


def authorization(server: Server, request: PlainRequest) -> CodeGrant:
    """The code grant of an authorization request, not validated yet."""
    grant = CodeGrant(request, server)
    S256()(grant)
    return grant
