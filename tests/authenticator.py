"""A passkey in software: makes the answers a browser would send for a real one."""

import hashlib
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass, field
from typing import Any

import cbor2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

USER_PRESENT, USER_VERIFIED, ATTESTED = 0x01, 0x04, 0x40


def text(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def raw(text_: str) -> bytes:
    return urlsafe_b64decode(text_ + "=" * (-len(text_) % 4))


@dataclass
class Authenticator:
    """One key pair; `counter` grows with each use, and stands at 0 where it does not count.

    What a test changes is what an attacker could: origin, relying party, flags, challenge, handle.
    """

    origin: str = "http://localhost:8000"
    rp_id: str = "localhost"
    flags: int = USER_PRESENT | USER_VERIFIED
    counter: int = 1
    counts: bool = True
    credential_id: bytes = b"credential-of-a-test-0123456789"
    handle: bytes = b""
    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )

    def create(self, options: dict[str, Any], **changes: Any) -> str:
        """The answer to registration options."""
        self.handle = raw(options["user"]["id"])
        numbers = self.key.public_key().public_numbers()
        public_key = cbor2.dumps(
            {
                1: 2,
                3: -7,
                -1: 1,
                -2: numbers.x.to_bytes(32, "big"),
                -3: numbers.y.to_bytes(32, "big"),
            }
        )
        length = len(self.credential_id).to_bytes(2, "big")
        attested = bytes(16) + length + self.credential_id + public_key
        data = self._authenticator_data(ATTESTED) + attested
        attestation = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})
        client_data = self._client_data("webauthn.create", options["challenge"], changes)
        return self._answer(
            clientDataJSON=text(client_data),
            attestationObject=text(attestation),
            transports=["internal"],
        )

    def get(self, options: dict[str, Any], **changes: Any) -> str:
        """The answer to authentication options."""
        if self.counts:
            self.counter += 1
        data = self._authenticator_data(0)
        client_data = self._client_data("webauthn.get", options["challenge"], changes)
        signed = data + hashlib.sha256(client_data).digest()
        signature = self.key.sign(signed, ec.ECDSA(hashes.SHA256()))
        return self._answer(
            clientDataJSON=text(client_data),
            authenticatorData=text(data),
            signature=text(signature),
            userHandle=text(self.handle),
        )

    def _authenticator_data(self, more: int) -> bytes:
        party = hashlib.sha256(self.rp_id.encode()).digest()
        return party + bytes([self.flags | more]) + self.counter.to_bytes(4, "big")

    def _client_data(self, kind: str, challenge: str, changes: dict[str, Any]) -> bytes:
        said = {"type": kind, "challenge": challenge, "origin": self.origin, "crossOrigin": False}
        return json.dumps(said | changes).encode()

    def _answer(self, **response: Any) -> str:
        identity = text(self.credential_id)
        return json.dumps(
            {
                "id": identity,
                "rawId": identity,
                "type": "public-key",
                "authenticatorAttachment": "platform",
                "clientExtensionResults": {},
                "response": response,
            }
        )
