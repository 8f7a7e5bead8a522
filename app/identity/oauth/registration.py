"""Clients that register themselves (RFC 7591); off unless the operator wants it (SEC-13)."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app.identity.models import AuthMethod
from app.identity.oauth import clients
from app.identity.oauth.adapter import NO_STORE, Answer
from app.kernel import json as strict_json
from app.kernel.db import Work
from app.kernel.errors import AppError, Invalid

LARGEST = 64 * 1024
Grant = Literal[
    "authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"
]


class Registration(BaseModel):
    """What a client may say about itself; what else it says is not kept."""

    model_config = ConfigDict(extra="ignore")

    client_name: Annotated[str, Field(min_length=1, max_length=200)] = "Unnamed application"
    redirect_uris: Annotated[list[str], Field(max_length=clients.REDIRECTS_AT_MOST)] = []
    grant_types: Annotated[list[Grant], Field(min_length=1)] = ["authorization_code"]
    response_types: list[Literal["code"]] = ["code"]
    token_endpoint_auth_method: AuthMethod = AuthMethod.CLIENT_SECRET_BASIC


def read(body: bytes) -> Registration | Answer:
    """What was sent, or the refusal."""
    try:
        return Registration.model_validate(strict_json.loads(body, max_bytes=LARGEST))
    except (ValidationError, AppError, ValueError):
        return _refused("invalid_client_metadata")


def register(work: Work, wanted: Registration) -> Answer:
    """The unit of `POST /oauth/register`."""
    try:
        client, secret = clients.register(
            work,
            name=wanted.client_name,
            redirect_uris=wanted.redirect_uris,
            grant_types=wanted.grant_types,
            auth_method=wanted.token_endpoint_auth_method,
        )
    except Invalid as refused:
        pointers = {error.pointer for error in refused.errors}
        is_redirect = "redirect_uris" in pointers
        return _refused("invalid_redirect_uri" if is_redirect else "invalid_client_metadata")
    body: dict[str, Any] = {
        "client_id": client.id,
        "client_id_issued_at": int(client.created_at.timestamp()),
        "client_name": client.name,
        "redirect_uris": client.redirect_uris,
        "grant_types": client.grant_types,
        "response_types": wanted.response_types,
        "token_endpoint_auth_method": client.auth_method,
    }
    if secret is not None:
        body |= {"client_secret": secret, "client_secret_expires_at": 0}
    return Answer(201, body, list(NO_STORE))


def _refused(error: str) -> Answer:
    return Answer(400, {"error": error}, list(NO_STORE))
