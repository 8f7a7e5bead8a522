"""Authlib's grants behind plain data: a request read once, run in one unit, answered as data.

A coroutine reads the form, builds a `PlainRequest` and hands it to `db.transaction`; the grants run
in that transaction and never on the event loop. What goes back to a client through the browser is
built here alone, so it always carries `iss` (RFC 9207) and is never a URI nobody registered.
"""

import base64
import binascii
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from authlib.oauth2 import OAuth2Error
from authlib.oauth2.rfc6749 import AuthorizationServer, OAuth2Payload, OAuth2Request
from authlib.oauth2.rfc6749.errors import (
    InvalidClientError,
    InvalidRequestError,
    InvalidScopeError,
)

from app.identity import doors, tokens
from app.identity.models import AuthMethod, OAuthClient
from app.identity.oauth import clients, redirects
from app.identity.principal import Scope
from app.identity.tokens import Standing
from app.kernel import ids, settings
from app.kernel.db import Work

METHODS = [AuthMethod.NONE.value, AuthMethod.CLIENT_SECRET_BASIC.value]
DEFAULT_SCOPE = f"{Scope.CATALOG_READ} {Scope.COMMANDS_READ}"
NO_STORE = [("Cache-Control", "no-store"), ("Pragma", "no-cache")]

Items = Sequence[tuple[str, str]]


class InvalidTarget(OAuth2Error):  # type: ignore[misc]
    """The `resource` is none of ours, or there are several (RFC 8707)."""

    error = "invalid_target"
    description = "The resource is unknown, or not the one that was granted."


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, body and headers; a `location` goes to a client, through the browser."""

    status: int
    body: dict[str, Any]
    headers: list[tuple[str, str]] = field(default_factory=list)
    location: str | None = None


@dataclass(frozen=True, slots=True)
class Grounds:
    """What a token is made on: who stands behind it, for which resource, how far it may reach."""

    standing: Standing
    resource: str
    allowed: frozenset[str]


class Payload(OAuth2Payload):  # type: ignore[misc]
    """The parameters of a request, in the order they came."""

    def __init__(self, items: Items) -> None:
        self._data = dict(reversed(items))  # of several, the first; several are refused anyway
        self._lists: dict[str, list[str]] = {}
        for name, value in items:
            self._lists.setdefault(name, []).append(value)

    @property
    def data(self) -> dict[str, str]:
        """One value each."""
        return self._data

    @property
    def datalist(self) -> dict[str, list[str]]:
        """Every value."""
        return self._lists

    def refuse_repeated(self) -> None:
        """Raises InvalidRequestError where a parameter stands twice; `resource` has a word more."""
        for name, values in self._lists.items():
            if len(values) > 1 and name != "resource":
                raise InvalidRequestError("A parameter stands twice.")


class PlainRequest(OAuth2Request):  # type: ignore[misc]
    """A request as data. The parameters of a POST are its form, never its query (SEC-20)."""

    def __init__(
        self, method: str, path: str, items: Items, *, authorization: str | None = None
    ) -> None:
        super().__init__(method, settings.current().origin + path)
        self.headers = {} if authorization is None else {"Authorization": authorization}
        self.payload = Payload(items)
        self.client: Client | None
        self.user: Any

    @property
    def args(self) -> dict[str, str]:
        """The query of a GET."""
        return self.payload.data if self.method == "GET" else {}

    @property
    def form(self) -> dict[str, str]:
        """The form of a POST."""
        return self.payload.data if self.method == "POST" else {}


class Client:
    """A client row, in the words Authlib asks in."""

    def __init__(self, row: OAuthClient) -> None:
        self.row = row

    def get_client_id(self) -> str:
        """Its id."""
        return self.row.id

    def check_grant_type(self, grant_type: str) -> bool:
        """Whether its settings, which are stored here, have this grant."""
        return grant_type in self.row.grant_types


class Server(AuthorizationServer):  # type: ignore[misc]
    """Authlib's server for one unit of work."""

    def __init__(self, work: Work, grants: Iterable[tuple[type, Sequence[Any]]]) -> None:
        super().__init__(scopes_supported=[scope.value for scope in Scope])
        self.work = work
        for grant, extensions in grants:
            self.register_grant(grant, extensions)

    def create_oauth2_request(self, request: PlainRequest) -> PlainRequest:
        """It is one already."""
        return request

    def create_token_response(self, request: PlainRequest) -> Answer:
        """The answer to a token request; a refusal is an answer, so what it recorded is kept."""
        try:
            request.payload.refuse_repeated()
            if not str(request.payload.grant_type or "").isascii():
                raise InvalidRequestError("The grant type is malformed.")
        except OAuth2Error as error:
            return self.handle_error_response(request, error)
        return super().create_token_response(request)  # type: ignore[no-any-return]

    def query_client(self, client_id: str) -> Client | None:
        """The client, if it may be used now."""
        row = clients.usable(self.work.session, client_id)
        return Client(row) if row else None

    def authenticate_client(
        self, request: PlainRequest, methods: list[str], endpoint: str = "token"
    ) -> Client:
        """The client behind a request; each has exactly one way to say who it is.

        Raises:
            InvalidClientError: it did not use it.
        """
        client, method = (
            _with_secret(request) if "Authorization" in request.headers else _public(request)
        )
        found = self.query_client(client[0]) if client else None
        if client is None or found is None or found.row.auth_method != method:
            raise _unknown_client()
        if method not in methods:
            raise _unknown_client()
        if method != AuthMethod.NONE and not clients.has_secret(found.row, client[1]):
            raise _unknown_client()
        request.auth_method = method.value
        return found

    def generate_token(
        self,
        grant_type: str,
        client: Client,
        user: Grounds | None = None,
        scope: str | None = None,
        expires_in: int | None = None,
        include_refresh_token: bool = True,
    ) -> dict[str, Any]:
        """The token response: ours, as Authlib's generator knows neither `act` nor audience."""
        if user is None:  # pragma: no cover - every grant of ours has grounds
            raise RuntimeError("a token without grounds")
        words = [word for word in (scope or "").split() if word in user.allowed]
        if not set(words) - {Scope.OFFLINE_ACCESS}:
            raise InvalidScopeError()
        made = tokens.make(
            self.work.session, user.standing, scope=" ".join(words), audience=user.resource
        )
        ends_in_s = tokens.LIFE_S
        response = {
            "access_token": made,
            "token_type": "Bearer",
            "expires_in": ends_in_s,
            "scope": " ".join(words),
        }
        if include_refresh_token:
            response["refresh_token"] = ids.secret(user.standing.tenant_id)
        return response

    def send_signal(self, name: str, *args: Any, **kwargs: Any) -> None:
        """Nobody listens."""

    def handle_response(
        self, status: int, body: dict[str, Any] | str, headers: list[tuple[str, str]]
    ) -> Answer:
        """Authlib's answer as data."""
        kept = [(name, value) for name, value in headers if name.lower() == "www-authenticate"]
        return Answer(status, body if isinstance(body, dict) else {}, [*NO_STORE, *kept])

    def handle_error_response(self, request: PlainRequest, error: OAuth2Error) -> Answer:
        """A refusal: to the client's registered URI where the error may go there, else as it is."""
        if error.redirect_uri:
            said = dict(error.get_body())
            return to_client(error.redirect_uri, request.payload.state, **said)
        return self.handle_response(*error())


def to_client(redirect_uri: str, state: str | None, **answer: str) -> Answer:
    """The answer to an authorization request: by way of the browser, naming its issuer."""
    parameters = {**answer, "iss": settings.current().origin}
    if state:
        parameters["state"] = state
    location = redirects.answer_at(redirect_uri, parameters)
    return Answer(303, {}, list(NO_STORE), location)


def requested_resource(request: PlainRequest) -> str | None:
    """The one resource a request names, if any.

    Raises:
        InvalidTarget: it is none of ours, or there are several.
    """
    named = request.payload.datalist.get("resource", [])
    if not named:
        return None
    if len(named) > 1 or doors.of(named[0]) is None:
        raise InvalidTarget()
    return str(named[0])


def resource_of(request: PlainRequest) -> str:
    """The resource a first request asks for; none named means `{origin}/mcp` (SEC-17)."""
    return requested_resource(request) or doors.DEFAULT.resource


def same_resource(request: PlainRequest, granted: str) -> str:
    """The resource that was granted, which a later request may repeat but not replace.

    Raises:
        InvalidTarget: it names another one.
    """
    if (named := requested_resource(request)) not in {None, granted}:
        raise InvalidTarget()
    return granted if named is None else named


def requested_scope(request: PlainRequest) -> str:
    """The scopes a request asks for, or those it gets when it names none (SEC-17).

    Raises:
        InvalidScopeError: one of them does not exist.
    """
    words = str(request.payload.scope or "").split()
    if any(word not in set(Scope) for word in words):
        raise InvalidScopeError()
    return " ".join(dict.fromkeys(words)) or DEFAULT_SCOPE


def claimed_client(request: PlainRequest) -> str:
    """The client a request says it is of, not checked: for counting."""
    given, _ = _with_secret(request) if "Authorization" in request.headers else _public(request)
    return given[0] if given else ""


def _with_secret(request: PlainRequest) -> tuple[tuple[str, str] | None, AuthMethod]:
    given = _basic(request.headers["Authorization"])
    named = request.payload.client_id
    if given and named and named != given[0]:
        given = None
    return given, AuthMethod.CLIENT_SECRET_BASIC


def _public(request: PlainRequest) -> tuple[tuple[str, str] | None, AuthMethod]:
    named = request.payload.client_id
    if not named or "client_secret" in request.payload.data:
        return None, AuthMethod.NONE
    return (named, ""), AuthMethod.NONE


def _basic(header: str) -> tuple[str, str] | None:
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        text = base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return None
    client_id, colon, secret = text.partition(":")
    return (unquote(client_id), unquote(secret)) if colon else None


def _unknown_client() -> InvalidClientError:
    return InvalidClientError(status_code=401, description="The client is unknown here.")
