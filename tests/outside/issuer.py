"""An outside server behind its own authorization server, both on one port of loopback."""

import base64
import hashlib
import itertools
import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.outside.servers import Outsider

_numbers = itertools.count(1)


@dataclass
class Guarded(Outsider):
    """A server that wants a token which only its issuer gives.

    Attributes:
        changed: what its documents say otherwise than they should.
        lives_s: how long its tokens live.
    """

    changed: dict[str, Any] = field(default_factory=dict)
    lives_s: int = 3_600
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    refreshes: set[str] = field(default_factory=set)
    asked: list[dict[str, str]] = field(default_factory=list)

    @property
    def origin(self) -> str:
        """Its own address."""
        return f"http://{self.pair}"

    def consent(self, address: str) -> dict[str, str]:
        """A person says yes there; what the browser comes back with."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        code = f"code-{next(_numbers)}"
        self.codes[code] = query
        return {"state": query["state"], "code": code, "iss": self.origin}

    def document(self, path: str) -> dict[str, Any] | None:
        """What it publishes of itself."""
        made: dict[str, Any]
        match path:
            case "/.well-known/oauth-protected-resource/mcp":
                made = {
                    "resource": self.url,
                    "authorization_servers": [self.origin],
                    "scopes_supported": ["tools"],
                }
            case "/.well-known/oauth-authorization-server":
                made = {
                    "issuer": self.origin,
                    "authorization_endpoint": f"{self.origin}/authorize",
                    "token_endpoint": f"{self.origin}/token",
                    "registration_endpoint": f"{self.origin}/register",
                    "code_challenge_methods_supported": ["S256"],
                    "token_endpoint_auth_methods_supported": ["none"],
                    "authorization_response_iss_parameter_supported": True,
                }
            case _:
                return None
        return {**made, **{name: self.changed[name] for name in made if name in self.changed}}

    def post(self, path: str, body: bytes) -> tuple[int, dict[str, Any]]:
        """What it answers to a registration, or for tokens."""
        if path == "/register":
            wanted = json.loads(body)
            return 201, {"client_id": f"client-{next(_numbers)}", **wanted}
        sent = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        self.asked.append(sent)
        if sent["grant_type"] == "refresh_token":
            if sent["refresh_token"] not in self.refreshes:
                return 400, {"error": "invalid_grant"}
            self.refreshes.discard(sent["refresh_token"])
            return 200, self._tokens()
        query = self.codes.pop(sent["code"], None)
        digest = hashlib.sha256(sent["code_verifier"].encode()).digest()
        proof = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        is_right = query is not None and (
            (query["code_challenge"], query["redirect_uri"], query["client_id"], query["resource"])
            == (proof, sent["redirect_uri"], sent["client_id"], sent["resource"])
        )
        return (200, self._tokens()) if is_right else (400, {"error": "invalid_grant"})

    def _tokens(self) -> dict[str, Any]:
        self.token, refresh = f"token-{next(_numbers)}", f"refresh-{next(_numbers)}"
        self.refreshes.add(refresh)
        return {
            "access_token": self.token,
            "token_type": "Bearer",
            "expires_in": self.lives_s,
            "refresh_token": refresh,
        }

    def get(self, path: str) -> tuple[int, Any]:
        """A document."""
        found = self.document(urlsplit(path).path)
        return (404, {}) if found is None else (200, found)
