"""Signatures of what leaves the house, by Standard Webhooks: secrets, their seals, the headers."""

import base64
import hashlib
import hmac
from collections.abc import Sequence

from app.kernel import sealing

PREFIX = "whsec_"


def new_secret() -> str:
    """A fresh secret as its receiver gets it, once: `whsec_` and 32 random bytes."""
    return PREFIX + base64.b64encode(sealing.new_key()).decode()


def seal(secret: str, tenant_id: str, receiver_id: str) -> bytes:
    """A secret as it is stored (SEC-80)."""
    return sealing.seal(secret.encode(), _purpose(tenant_id, receiver_id))


def unseal(sealed: bytes, tenant_id: str, receiver_id: str) -> str:
    """The secret that was sealed for this receiver.

    Raises:
        CannotUnseal: it was not, or under another master key.
    """
    return sealing.unseal(sealed, _purpose(tenant_id, receiver_id)).decode()


def headers(secrets: Sequence[str], id: str, timestamp_s: int, body: bytes) -> dict[str, str]:
    """The three headers of one message; each secret makes a signature of its own."""
    return {
        "webhook-id": id,
        "webhook-timestamp": str(timestamp_s),
        "webhook-signature": " ".join(sign(secret, id, timestamp_s, body) for secret in secrets),
    }


def sign(secret: str, id: str, timestamp_s: int, body: bytes) -> str:
    """`v1,` and the HMAC-SHA256 over `id.timestamp.body`, in base64."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    made = hmac.new(key, f"{id}.{timestamp_s}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(made).decode()}"


def _purpose(tenant_id: str, receiver_id: str) -> str:
    return f"webhook_secret:{tenant_id}:{receiver_id}"
