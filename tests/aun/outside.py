"""Outside AIDs as a client holds them: a key, a certificate, and the steps to get both."""

import base64
import json
from dataclasses import dataclass, field
from typing import Any

from cryptography import x509

from app.aun import rpc
from app.aun.caller import Stranger
from app.aun.pki import keys
from app.aun.pki.keys import PrivateKey
from app.kernel import clock

STRANGER = Stranger("192.0.2.7", "nonce")


@dataclass
class Outside:
    """A party whose key this server never sees."""

    aid: str
    key: PrivateKey = field(default_factory=keys.generate)
    pem: str = ""
    tokens: dict[str, Any] = field(default_factory=dict)

    @property
    def public_key(self) -> str:
        """Its public key, as parameters hold it."""
        return base64.b64encode(keys.spki(self.key.public_key())).decode()

    @property
    def certificate(self) -> x509.Certificate:
        """What it got."""
        return x509.load_pem_x509_certificate(self.pem.encode())

    async def register(self) -> dict[str, Any]:
        """Get a certificate."""
        params = {"aid": self.aid, "public_key": self.public_key, "curve": "P-256"}
        told = await call("auth.create_aid", params)
        self.pem = told["cert"]
        return told

    async def begin(self) -> dict[str, Any]:
        """The first step of whatever needs a proof."""
        params = {"aid": self.aid, "cert": self.pem, "client_nonce": "MTIzNDU2Nzg5MDEy"}
        return await call("auth.aid_login1", params)

    def proof(self, begun: dict[str, Any], signed: str) -> dict[str, Any]:
        """What the second step brings."""
        return {
            "aid": self.aid,
            "request_id": begun["request_id"],
            "nonce": begun["nonce"],
            "signature": keys.sign(self.key, signed),
        }

    async def finish(self, begun: dict[str, Any]) -> dict[str, Any]:
        """The second step of a login."""
        at = repr(clock.now().timestamp())
        params = {**self.proof(begun, f"{begun['nonce']}:{at}"), "client_time": at}
        self.tokens = await call("auth.aid_login2", params)
        return self.tokens

    async def login(self) -> dict[str, Any]:
        """Both steps."""
        return await self.finish(await self.begin())


async def call(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """What a socket that has not authenticated gets of a method."""
    told = await rpc.call_before(STRANGER, method, params)
    return dict(json.loads(json.dumps(told)))
