"""A sign-in provider on loopback, honest until a test changes what it says."""

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import uvicorn
from joserfc import jws
from joserfc.jwk import ECKey, KeySet, OctKey, OKPKey, RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from app.kernel import clock, ids
from tests.server import free_port

CLIENT_ID, CLIENT_SECRET = "assent-client", "a secret:of/ours"


class _Anything(jws.JWSRegistry):
    """Signs whatever header a test thinks of."""

    def __init__(self, algorithm: str) -> None:
        super().__init__(algorithms=[algorithm])

    def check_header(self, header: Any) -> None:
        pass

    def get_alg(self, name: str) -> Any:
        return self.algorithms[name]


@cache
def own_keys() -> dict[str, Any]:
    """The keys of every honest provider of this run."""
    return {
        "RS256": RSAKey.generate_key(2048, {"kid": "rsa"}),
        "ES256": ECKey.generate_key("P-256", {"kid": "ec"}),
        "EdDSA": OKPKey.generate_key("Ed25519", {"kid": "okp"}),
        "HS256": OctKey.import_key(CLIENT_SECRET, {"kid": "oct"}),
    }


@dataclass
class Provider:
    """`metadata`, `claims`, `header` hold what differs from an honest answer; None leaves out."""

    port: int = field(default_factory=free_port)
    subject: str = "subject-1"
    metadata: dict[str, Any] = field(default_factory=dict)
    claims: dict[str, Any] = field(default_factory=dict)
    header: dict[str, Any] = field(default_factory=dict)
    algorithm: str = "RS256"
    answers: dict[str, Any] = field(default_factory=dict)
    says_iss: bool = True
    token_status: int = 200
    keys: dict[str, Any] = field(default_factory=dict)
    log: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.keys = self.keys or own_keys()
        self.published = ["RS256", "ES256", "EdDSA"]

    @property
    def issuer(self) -> str:
        return f"http://localhost:{self.port}"

    def approve(self, address: str) -> dict[str, str]:
        """What the provider adds to the way back after its user said yes at `address`."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        code = ids.random_token()
        self.codes[code] = asked
        back = {"code": code, "state": asked["state"]}
        return back | ({"iss": self.issuer} if self.says_iss else {})

    def calls(self, path: str) -> list[dict[str, Any]]:
        """What was sent to `path` so far."""
        return [sent for each, sent in self.log if each == path]

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/.well-known/openid-configuration", self._metadata),
                Route("/authorize", self._authorize),
                Route("/token", self._token, methods=["POST"]),
                Route("/jwks", self._jwks),
            ]
        )

    async def _metadata(self, request: Request) -> Response:
        self.log.append(("metadata", dict(request.headers)))
        document = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/jwks",
            "id_token_signing_alg_values_supported": ["RS256", "ES256", "EdDSA", "HS256", "none"],
            "authorization_response_iss_parameter_supported": True,
        } | self.metadata
        said = {name: value for name, value in document.items() if value is not None}
        return JSONResponse(said)

    async def _authorize(self, request: Request) -> Response:
        back = self.approve(str(request.url))
        return RedirectResponse(
            f"{request.query_params['redirect_uri']}?{urlencode(back)}", status_code=303
        )

    async def _jwks(self, request: Request) -> Response:
        self.log.append(("jwks", {}))
        public = [own_keys()[name].as_dict(private=False) for name in self.published]
        return JSONResponse({"keys": public})

    async def _token(self, request: Request) -> Response:
        sent = {name: str(value) for name, value in (await request.form()).items()}
        self.log.append(("token", sent | {"authorization": request.headers.get("authorization")}))
        asked = self.codes.get(sent.get("code", ""))  # twice, too: we must not rely on it
        pair = base64.b64encode(b"assent-client:a%20secret%3Aof%2Fours").decode()
        proof = hashlib.sha256(sent.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(proof).rstrip(b"=").decode()
        if (
            asked is None
            or request.headers.get("authorization") != f"Basic {pair}"
            or challenge != asked["code_challenge"]
            or sent["redirect_uri"] != asked["redirect_uri"]
        ):
            return JSONResponse({"error": "invalid_grant"}, status_code=400)
        access_token = "access-canary-" + ids.random_token()
        answer = {
            "access_token": access_token,
            "refresh_token": "refresh-canary-" + ids.random_token(),
            "token_type": "Bearer",
            "id_token": self.id_token(asked, access_token),
        } | self.answers
        return JSONResponse(
            {name: value for name, value in answer.items() if value is not None},
            status_code=self.token_status,
        )

    def id_token(self, asked: dict[str, str], access_token: str) -> str:
        now = clock.epoch_s()
        digest = hashlib.sha512 if self.algorithm == "EdDSA" else hashlib.sha256
        half = digest(access_token.encode()).digest()
        claims = {
            "iss": self.issuer,
            "sub": self.subject,
            "aud": CLIENT_ID,
            "iat": now,
            "exp": now + 300,
            "auth_time": now,
            "nonce": asked["nonce"],
            "at_hash": base64.urlsafe_b64encode(half[: len(half) // 2]).rstrip(b"=").decode(),
            "name": "Carol Example",
            "preferred_username": "carol",
            "email": "carol@example.com",
            "email_verified": True,
        } | self.claims
        said = {name: value for name, value in claims.items() if value is not None}
        if self.algorithm == "none":
            parts = [{"alg": "none"}, said]
            head, body = (
                base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()
                for part in parts
            )
            return f"{head}.{body}."
        key = self.keys[self.algorithm]
        header = {"alg": self.algorithm, "kid": key.kid, "typ": "JWT"} | self.header
        return jws.serialize_compact(
            {name: value for name, value in header.items() if value is not None},
            json.dumps(said).encode(),
            key if "kid" in self.header else KeySet([key]),
            registry=_Anything(self.algorithm),
        )


@contextmanager
def serving(provider: Provider | None = None) -> Iterator[Provider]:
    """A provider that answers on its port of localhost."""
    made = provider or Provider()
    config = uvicorn.Config(
        made.app(), host="127.0.0.1", port=made.port, log_config=None, lifespan="off"
    )
    server = uvicorn.Server(config)
    started = threading.Event()
    original = server.startup

    async def startup(sockets: Any = None) -> None:
        await original(sockets)
        started.set()

    server.startup = startup  # type: ignore[method-assign]
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    assert started.wait(20), "the provider did not start"
    try:
        yield made
    finally:
        server.should_exit = True
        thread.join(20)
