"""A person's consent at an outside server: found, asked for, exchanged and renewed (OAuth 2.1).

Code with PKCE, one resource, one issuer. What servers publish of themselves is data: every address
passes the guard, an issuer that is not the one that was asked is refused, and nothing but https is
ever shown to a browser. The SDK has a client of its own; it waits in one process for a person, and
a person may come back to another.
"""

import base64
import hashlib
import re
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx2

from app.commands import webhooks
from app.kernel import http, ids, json, settings
from app.outside.results import Lost

NAME = "Assent"
PROBE = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
ACCEPT = "application/json, text/event-stream"
LONGEST = 1_000  # characters of an address, or of scopes
ANSWERED = re.compile(r'(\w+)="([^"]*)"')
LONGEST_TOKEN = 8_000  # characters
LONGEST_LIFE_S = 366 * 86_400  # of a token
NAMES = 200  # in a list of a document
TOTAL_S = 10.0


@dataclass(frozen=True, slots=True)
class Found:
    """Where consent is asked for, as the documents of a server and its issuer say.

    Attributes:
        methods: how the token endpoint wants to know us.
        names_issuer: an answer without `iss` is none (RFC 9207).
    """

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: str
    resource: str
    scope: str
    methods: tuple[str, ...]
    names_issuer: bool

    def data(self) -> dict[str, Any]:
        """As it is stored."""
        return {**asdict(self), "methods": list(self.methods)}

    @classmethod
    def of(cls, stored: dict[str, Any]) -> "Found":
        """The same, read again."""
        return cls(**{**stored, "methods": tuple(stored["methods"])})


@dataclass(frozen=True, slots=True)
class Tokens:
    """What an exchange gave."""

    access: str
    refresh: str
    scope: str
    lives_s: int | None


@dataclass(frozen=True, slots=True)
class Client:
    """How we are known to an issuer."""

    id: str
    secret: str = ""


@dataclass(frozen=True, slots=True)
class Known:
    """Who was asked, and how we are known there: what one consent is made of, and renewed with."""

    at: Found
    client: Client


async def found(url: str) -> Found:
    """What a server says of how to get consent.

    Raises:
        Lost: it says nothing that can be used.
    """
    async with _client() as client:
        where, scope = await _asked(client, url)
        resource = await _first(client, _resource_documents(url, where))
        said = _url(resource.get("resource") or url)
        if not _covers(said, url):
            raise Lost("oauth_resource")
        issuers = _names(resource.get("authorization_servers"))
        issuer = _url(issuers[0]) if issuers else _origin(url)
        about = await _first(client, _issuer_documents(issuer))
    if str(about.get("issuer", "")).rstrip("/") != issuer.rstrip("/"):
        raise Lost("oauth_issuer")
    if "S256" not in _names(about.get("code_challenge_methods_supported")):
        raise Lost("oauth_no_pkce")
    supported = _names(resource.get("scopes_supported"))
    methods = _names(about.get("token_endpoint_auth_methods_supported"))
    return Found(
        issuer=str(about["issuer"]),
        authorization_endpoint=_address(about, "authorization_endpoint"),
        token_endpoint=_address(about, "token_endpoint"),
        registration_endpoint=_address(about, "registration_endpoint", is_needed=False),
        resource=said,
        scope=(scope or " ".join(supported))[:LONGEST],
        methods=methods or ("client_secret_basic",),
        names_issuer=bool(about.get("authorization_response_iss_parameter_supported")),
    )


async def registered(at: Found) -> Client:
    """Make us known to an issuer.

    Raises:
        Lost: it does not register applications, or not us.
    """
    if not at.registration_endpoint:
        raise Lost("oauth_no_registration")
    wanted = {
        "client_name": NAME,
        "application_type": "web",
        "redirect_uris": [callback()],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none"
        if "none" in at.methods
        else next((each for each in at.methods if each.startswith("client_secret")), "none"),
    }
    async with _client() as client:
        status, answer = await _sent(client, at.registration_endpoint, json=wanted)
    id, secret = _text(answer.get("client_id"), 500), _text(answer.get("client_secret"))
    if status not in (200, 201) or not id:
        raise Lost("oauth_no_registration")
    return Client(id, secret)


def asking(at: Found, client: Client, state: str, verifier: str) -> str:
    """The address at which a person is asked."""
    digest = hashlib.sha256(verifier.encode()).digest()
    query = {
        "response_type": "code",
        "client_id": client.id,
        "redirect_uri": callback(),
        "state": state,
        "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
        "code_challenge_method": "S256",
        "resource": at.resource,
        **({"scope": at.scope} if at.scope else {}),
    }
    joint = "&" if "?" in at.authorization_endpoint else "?"
    return at.authorization_endpoint + joint + urlencode(query)


def check_issuer(at: Found, iss: str | None) -> None:
    """Return where an answer is of the issuer that was asked (RFC 9207).

    Raises:
        Lost: it is another's.
    """
    if iss is None and not at.names_issuer:
        return
    if iss != at.issuer:
        raise Lost("oauth_issuer")


async def exchanged(at: Found, client: Client, code: str, verifier: str) -> Tokens:
    """Tokens for a code.

    Raises:
        Lost: it gives none.
    """
    return await _tokens(
        at,
        client,
        {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": callback(),
            "code_verifier": verifier,
        },
    )


async def renewed(at: Found, client: Client, refresh: str) -> Tokens:
    """Tokens for a refresh token; where it gives no new one, the old one stays.

    Raises:
        Lost: `link_needed`, the consent is over; anything else may pass.
    """
    tokens = await _tokens(at, client, {"grant_type": "refresh_token", "refresh_token": refresh})
    return (
        tokens if tokens.refresh else Tokens(tokens.access, refresh, tokens.scope, tokens.lives_s)
    )


def callback() -> str:
    """Where people come back to."""
    return f"{settings.current().origin}/outside/callback"


def new_secret() -> str:
    """A state, or a verifier."""
    return ids.random_token()


async def _tokens(at: Found, client: Client, asked: dict[str, str]) -> Tokens:
    body = {**asked, "resource": at.resource, "client_id": client.id}
    auth = None
    if client.secret and "client_secret_basic" in at.methods:
        auth = httpx2.BasicAuth(client.id, client.secret)
    elif client.secret:
        body["client_secret"] = client.secret
    async with _client() as outgoing:
        status, answer = await _sent(outgoing, at.token_endpoint, data=body, auth=auth)
    if status in (400, 401) and asked["grant_type"] == "refresh_token":
        raise Lost("link_needed")
    access = _text(answer.get("access_token"), LONGEST_TOKEN)
    is_bearer = str(answer.get("token_type", "")).lower() == "bearer"
    if status != 200 or not access or not is_bearer:
        raise Lost("oauth_no_token")
    lives = answer.get("expires_in")
    return Tokens(
        access,
        _text(answer.get("refresh_token"), LONGEST_TOKEN),
        _text(answer.get("scope")) or at.scope,
        int(min(lives, LONGEST_LIFE_S)) if isinstance(lives, int | float) and lives > 0 else None,
    )


async def _asked(client: httpx2.AsyncClient, url: str) -> tuple[str, str]:
    """What the server's own refusal says: where its document is, and which scopes it wants."""
    try:
        _, headers, _ = await http.fetch(
            client, "POST", url, json=PROBE, headers={"accept": ACCEPT}, total_s=TOTAL_S
        )
    except (http.Refused, http.Unreachable) as fault:
        raise Lost(fault.rule) from None
    said = dict(ANSWERED.findall(headers.get("www-authenticate", "")[:4_000]))
    return _url(said.get("resource_metadata", "")), said.get("scope", "")[:LONGEST]


async def _first(client: httpx2.AsyncClient, urls: list[str]) -> dict[str, Any]:
    """The first document that is there; an empty one where there is none."""
    for url in urls:
        try:
            status, headers, body = await http.fetch(client, "GET", url, total_s=TOTAL_S)
        except (http.Refused, http.Unreachable):
            continue
        if status == 200 and isinstance(document := _json(body), dict):
            del headers
            return document
    return {}


async def _sent(client: httpx2.AsyncClient, url: str, **more: Any) -> tuple[int, dict[str, Any]]:
    more = {name: value for name, value in more.items() if value is not None}
    try:
        status, _, body = await http.fetch(
            client, "POST", url, headers={"accept": "application/json"}, total_s=TOTAL_S, **more
        )
    except (http.Refused, http.Unreachable) as fault:
        raise Lost(fault.rule) from None
    answer = _json(body)
    return status, answer if isinstance(answer, dict) else {}


def _url(value: Any) -> str:
    """An address in a document, which at least can be taken apart."""
    said = _text(value)
    try:
        urlsplit(said)
    except ValueError:
        raise Lost("oauth_documents") from None
    return said


def _text(value: Any, longest: int = LONGEST) -> str:
    """A text in a document; nothing is an empty one."""
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > longest or not value.isascii():
        raise Lost("oauth_documents")
    if value and not value.isprintable():
        raise Lost("oauth_documents")
    return value


def _names(value: Any) -> tuple[str, ...]:
    """A list of texts in a document; nothing is an empty one."""
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > NAMES:
        raise Lost("oauth_documents")
    return tuple(map(_text, value))


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except json.BadJSON:
        return None


def _resource_documents(url: str, said: str) -> list[str]:
    parts = urlsplit(url)
    known = f"{_origin(url)}/.well-known/oauth-protected-resource"
    path = parts.path.rstrip("/")
    return [each for each in (said, f"{known}{path}" if path else "", known) if each]


def _issuer_documents(issuer: str) -> list[str]:
    origin, path = _origin(issuer), urlsplit(issuer).path.rstrip("/")
    names = ("oauth-authorization-server", "openid-configuration")
    found = [f"{origin}/.well-known/{name}{path}" for name in names]
    return [*found, f"{origin}{path}/.well-known/openid-configuration"] if path else found


def _address(about: dict[str, Any], name: str, *, is_needed: bool = True) -> str:
    """An endpoint that may be called, and shown to a browser: https, or exempt by the operator."""
    said = _url(about.get(name))
    if not said and not is_needed:
        return ""
    if webhooks.fault_of(said):
        raise Lost("oauth_endpoint")
    return said


def _covers(resource: str, url: str) -> bool:
    """Whether a resource is the server, or what it is below."""
    one, other = urlsplit(resource), urlsplit(url)
    if _origin(resource) != _origin(url):
        return False
    path = one.path.rstrip("/")
    return other.path.rstrip("/") == path or other.path.startswith(f"{path}/")


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower()


def _client() -> httpx2.AsyncClient:
    return http.client(http.pairs(",".join(settings.current().outbound_allow)))
