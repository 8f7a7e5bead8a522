"""The steps of an OAuth flow over HTTP, for the tests of the authorization server."""

import base64
import hashlib
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import httpx2
import orjson
from joserfc import jws
from sqlmodel import Session, col, select

from app.audit.models import AuditEntry
from app.identity import signing_keys
from app.identity.models import (
    Agent,
    AuthMethod,
    Delegation,
    KeyUse,
    OAuthClient,
    RefreshToken,
    TokenFamily,
    User,
)
from app.identity.oauth import clients
from app.identity.principal import Principal
from app.kernel import db, settings
from app.kernel.db import Work
from tests.people import World

CALLBACK = "http://127.0.0.1:7777/callback"
READS = "catalog.read commands.read"
OFFLINE = "catalog.read commands.read commands.invoke offline_access"
DEVICE = clients.DEVICE
EXCHANGE = clients.EXCHANGE
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"


@dataclass(frozen=True)
class Pkce:
    """A verifier and its challenge."""

    verifier: str
    challenge: str

    @classmethod
    def new(cls) -> "Pkce":
        verifier = secrets.token_urlsafe(32)
        digest = hashlib.sha256(verifier.encode()).digest()
        return cls(verifier, base64.urlsafe_b64encode(digest).rstrip(b"=").decode())


class Flow:
    """One authorization server; `alice` is the person unless another one is named."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.origin = settings.current().origin
        self.alice = world.acme["alice"]
        self.http = httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app=world.app, raise_app_exceptions=False),
            base_url=self.origin,
        )

    def resource(self, door: str = "mcp") -> str:
        return f"{self.origin}/{door}"

    def register(
        self,
        *,
        name: str = "Desk",
        redirect_uris: Sequence[str] = (CALLBACK,),
        grant_types: Sequence[str] = (clients.CODE, clients.REFRESH),
        secret: bool = False,
        owner: User | None = None,
        client_id: str = "",
    ) -> tuple[str, str | None]:
        """A pre-registered client: its id, and its secret."""
        method = AuthMethod.CLIENT_SECRET_BASIC if secret else AuthMethod.NONE
        made, shown = db.transact_now(
            _create,
            self.world.person(owner or self.world.acme["ada"]),
            name=name,
            redirect_uris=redirect_uris,
            grant_types=grant_types,
            auth_method=method,
            client_id=client_id,
        )
        return made.id, shown

    def request(self, client_id: str, pkce: Pkce, /, **more: str | None) -> dict[str, str]:
        """The parameters of a sound authorization request, changed as told; None leaves one out."""
        parameters: dict[str, str | None] = {
            "response_type": "code",
            "client_id": client_id,
            "redirect_uri": CALLBACK,
            "scope": READS,
            "state": "s-1",
            "resource": self.resource(),
            "code_challenge": pkce.challenge,
            "code_challenge_method": "S256",
            **more,
        }
        return {name: value for name, value in parameters.items() if value is not None}

    async def authorize(
        self, parameters: Any, browser: httpx2.AsyncClient | None = None
    ) -> httpx2.Response:
        browser = browser or self.world.client(self.alice)
        return await browser.get("/oauth/authorize", params=parameters)

    async def consent(
        self, page: httpx2.Response, browser: httpx2.AsyncClient, decision: str = "allow"
    ) -> httpx2.Response:
        return await browser.post(
            "/oauth/consent", data={"request": request_id(page), "decision": decision}
        )

    async def code(
        self, client_id: str, pkce: Pkce, *, user: User | None = None, **more: str | None
    ) -> str:
        """A code, by way of the page."""
        browser = self.world.client(user or self.alice)
        page = await self.authorize(self.request(client_id, pkce, **more), browser)
        assert page.status_code == 200, page.text
        answered = await self.consent(page, browser)
        assert answered.status_code == 303, answered.text
        return answer_of(answered)["code"]

    async def redeem(
        self, client_id: str, code: str, pkce: Pkce, *, secret: str | None = None, **more: Any
    ) -> httpx2.Response:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": CALLBACK,
            "client_id": client_id,
            "code_verifier": pkce.verifier,
            **more,
        }
        return await self.token(form, auth=(client_id, secret) if secret else None)

    async def token(
        self, form: dict[str, Any], auth: tuple[str, str] | None = None, **more: Any
    ) -> httpx2.Response:
        sent = {name: value for name, value in form.items() if value is not None}
        if auth:
            more["auth"] = auth
        return await self.http.post("/oauth/token", data=sent, **more)

    async def refresh(
        self, client_id: str, token: str, *, secret: str | None = None, **more: Any
    ) -> httpx2.Response:
        form = {"grant_type": "refresh_token", "refresh_token": token, "client_id": client_id}
        return await self.token({**form, **more}, auth=(client_id, secret) if secret else None)

    async def tokens(
        self, client_id: str, *, user: User | None = None, secret: str | None = None, **more: Any
    ) -> dict[str, Any]:
        """The answer to a whole code flow."""
        pkce = Pkce.new()
        code = await self.code(client_id, pkce, user=user, **more)
        redirect = {"redirect_uri": more["redirect_uri"]} if "redirect_uri" in more else {}
        answered = await self.redeem(client_id, code, pkce, secret=secret, **redirect)
        assert answered.status_code == 200, answered.text
        found: dict[str, Any] = answered.json()
        return found

    async def access_token(self, door: str = "v1", **more: Any) -> str:
        """One access token of Alice's for a door."""
        client_id, _ = self.register()
        answered = await self.tokens(client_id, resource=self.resource(door), **more)
        return str(answered["access_token"])

    async def me(self, token: str) -> httpx2.Response:
        """What `/v1/me` says to a bearer."""
        header = f"Bearer {token}".encode("latin-1")
        return await self.http.get("/v1/me", headers={b"Authorization": header})


def request_id(page: httpx2.Response) -> str:
    """The id of the stored request in a consent page."""
    found = re.search(r'name="request" value="([0-9A-Z]{26})"', page.text)
    assert found, page.text
    return found[1]


def answer_of(response: httpx2.Response) -> dict[str, str]:
    """The answer in the query of a redirect to a client."""
    pairs = parse_qsl(urlsplit(response.headers["location"]).query, keep_blank_values=True)
    assert len(dict(pairs)) == len(pairs), "each stands there once"
    return dict(pairs)


def claims_of(token: str) -> dict[str, Any]:
    """What a token says, unchecked."""
    payload = token.split(".")[1]
    found: dict[str, Any] = orjson.loads(base64.urlsafe_b64decode(payload + "=="))
    return found


def header_of(token: str) -> dict[str, Any]:
    """Its header, unchecked."""
    found: dict[str, Any] = orjson.loads(base64.urlsafe_b64decode(token.split(".")[0] + "=="))
    return found


def signed(claims: dict[str, Any], **header: Any) -> str:
    """A token our own active key signed, whatever it says."""
    return db.transact_now(_signed, claims, header)


def families(session: Session) -> Sequence[TokenFamily]:
    return session.exec(select(TokenFamily).order_by(col(TokenFamily.id))).all()


def refresh_tokens(session: Session) -> Sequence[RefreshToken]:
    return session.exec(select(RefreshToken)).all()


def agents(session: Session) -> Sequence[Agent]:
    return session.exec(select(Agent).where(col(Agent.client_id).is_not(None))).all()


def delegations(session: Session) -> Sequence[Delegation]:
    return session.exec(select(Delegation)).all()


def actions(session: Session) -> list[str]:
    """What the trail holds, in order."""
    query = select(AuditEntry.command).order_by(col(AuditEntry.tenant_id), col(AuditEntry.seq))
    return list(session.exec(query))


def client_row(session: Session, client_id: str) -> OAuthClient:
    return session.get_one(OAuthClient, client_id)


def query_of(url: str) -> dict[str, list[str]]:
    return parse_qs(urlsplit(url).query)


def _create(work: Work, actor: Principal, /, **more: Any) -> tuple[OAuthClient, str | None]:
    return clients.create(work, actor, **more)


def _signed(work: Work, claims: dict[str, Any], header: dict[str, Any]) -> str:
    key = signing_keys.signs_with(work.session, KeyUse.ACCESS_TOKEN)
    full = {"typ": "at+jwt", "alg": "ES256", "kid": key.kid, **header}
    full = {name: value for name, value in full.items() if value is not None}
    return compact(full, orjson.dumps(claims), key, "ES256")


def compact(header: dict[str, Any], payload: bytes, key: Any, algorithm: str) -> str:
    """A JWS without any check of its header, as only an attacker makes one."""
    message = f"{_b64(orjson.dumps(header))}.{_b64(payload)}".encode()
    signature = jws.JWSRegistry.algorithms[algorithm].sign(message, key)
    return f"{message.decode()}.{_b64(signature)}"


def _b64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
