"""Keys and bounds of `requestState`, which a client hands back and may forge (SEC-65)."""

from functools import lru_cache

from mcp.server.request_state import (
    AESGCMRequestStateCodec,
    RequestStateBoundary,
    RequestStateSecurity,
)

from app.identity.doors import Door
from app.kernel import keyring
from app.mcp import rings

TTL_S = 90_000  # longer than any approval lives; its row decides


class RingCodec:
    """Seals under the first key of the ring and opens with each, as the ring is now."""

    def seal(self, payload: bytes) -> str:
        """An opaque text that protects `payload`."""
        return _codec(tuple(keyring.keys(rings.STATES))).seal(payload)

    def unseal(self, token: str) -> bytes:
        """What was sealed.

        Raises:
            InvalidRequestState: it was not, or not under a key that still counts.
        """
        return _codec(tuple(keyring.keys(rings.STATES))).unseal(token)


def boundary() -> RequestStateBoundary:
    """Binds each state to method, tool, arguments and principal, and to this installation."""
    security = RequestStateSecurity(codec=RingCodec(), ttl=TTL_S)
    return RequestStateBoundary(security, default_audience=Door.MCP.resource)


@lru_cache(maxsize=4)
def _codec(keys: tuple[bytes, ...]) -> AESGCMRequestStateCodec:
    return AESGCMRequestStateCodec(keys)
