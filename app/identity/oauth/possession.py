"""What a client may do with its own tokens: end them (RFC 7009), and ask about them (RFC 7662)."""

from typing import Any

from authlib.oauth2.rfc6749.errors import InvalidRequestError, OAuth2Error

from app.identity import tokens
from app.identity.doors import Door
from app.identity.models import RefreshToken, TokenFamily
from app.identity.oauth import families, server, standing
from app.identity.oauth.adapter import METHODS, Answer, Client, PlainRequest, Server
from app.identity.oauth.standing import Origin
from app.identity.tokens import BearerRefused, Claims
from app.kernel import clock, settings
from app.kernel.db import Work

INACTIVE = {"active": False}


def revoke(work: Work, request: PlainRequest) -> Answer:
    """The unit of `POST /oauth/revoke`: ends the family of a token, if it is the client's own.

    Whether it was is not said: a token of somebody else and none at all look alike.
    """
    made = server.of(work)
    try:
        client, token = _sent(made, request)
    except OAuth2Error as error:
        return made.handle_error_response(request, error)
    if (family := _family_of(work, token)) and family.client_id == client.row.id:
        families.end(work, family.tenant_id, family.id, "client")
    return made.handle_response(200, {}, [])


def introspect(work: Work, request: PlainRequest) -> Answer:
    """The unit of `POST /oauth/introspect`: what a token of this client says, if it is live."""
    made = server.of(work)
    try:
        client, token = _sent(made, request)
    except OAuth2Error as error:
        return made.handle_error_response(request, error)
    if found := families.find_refresh(work.session, token):
        return made.handle_response(200, _of_refresh(work, client, *found), [])
    return made.handle_response(200, _of_access(work, client, token), [])


def _sent(made: Server, request: PlainRequest) -> tuple[Client, str]:
    request.payload.refuse_repeated()
    client = made.authenticate_client(request, METHODS)
    token = request.payload.data.get("token")
    if not token:
        raise InvalidRequestError("The token is missing.")
    return client, token


def _family_of(work: Work, token: str) -> TokenFamily | None:
    if found := families.find_refresh(work.session, token):
        return found[1]
    claims = _read(token)
    if claims is None or claims.fam is None:
        return None
    return families.one(work.session, claims.tid, claims.fam)


def _of_access(work: Work, client: Client, token: str) -> dict[str, Any]:
    claims = _read(token)
    if claims is None or claims.client_id != client.row.id:
        return INACTIVE
    try:
        tokens.principal(work.session, claims)
    except tokens.DelegationPaused:
        pass  # it lives on, and says so at the doors
    except BearerRefused:
        return INACTIVE
    said = claims.model_dump(
        include={"iss", "aud", "sub", "act", "client_id", "scope", "iat", "exp", "jti"},
        exclude_none=True,
    )
    return {"active": True, "token_type": "Bearer", **said}


def _of_refresh(
    work: Work, client: Client, token: RefreshToken, family: TokenFamily
) -> dict[str, Any]:
    is_live = (
        family.client_id == client.row.id
        and family.revoked_at is None
        and token.used_at is None
        and token.expires_at > clock.now()
        and standing.now(
            work.session,
            tenant_id=family.tenant_id,
            delegation_id=family.delegation_id,
            client_id=family.client_id,
            origin=Origin(auth_time=family.auth_time, amr=family.amr),
            family_id=family.id,
        )
    )
    if not is_live:
        return INACTIVE
    return {
        "active": True,
        "token_type": "refresh_token",
        "iss": settings.current().origin,
        "client_id": family.client_id,
        "sub": family.user_id,
        "scope": family.scope,
        "exp": int(token.expires_at.timestamp()),
        "iat": int(token.issued_at.timestamp()),
    }


def _read(token: str) -> Claims | None:
    try:
        return tokens.read(token, frozenset(door.resource for door in Door))
    except BearerRefused:
        return None
