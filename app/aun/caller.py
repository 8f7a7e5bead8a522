"""Who calls a method: an AID by its connection, or by the credential of an HTTP request."""

from dataclasses import dataclass
from enum import StrEnum

from app.aun.models import IdentityKind
from app.identity.principal import Principal

HTTP_DEVICE = "http"
CONSOLE_DEVICE = "console"
HOSTED_DEVICE = "hosted"  # where mail to a hosted identity is encrypted to


class Door(StrEnum):
    """How the call came in."""

    SOCKET = "socket"
    HTTP = "http"
    CONSOLE = "console"
    RUN = "run"


@dataclass(frozen=True, slots=True)
class Caller:
    """The party a method runs for; `aid` comes from the credential, never from parameters.

    Attributes:
        slot_key: the isolation of the slot, which cursors count by.
        connection_id: the live connection, None behind the other doors.
        principal: who is behind a hosted AID, None for an outside one.
    """

    tenant_id: str
    aid: str
    kind: IdentityKind
    device_id: str
    slot_key: str = "default"
    connection_id: str | None = None
    door: Door = Door.SOCKET
    principal: Principal | None = None
    is_peer_dialect: bool = True  # declared `p2p_peer_pull_v1`; clients before 0.5.21 do not

    @property
    def is_hosted(self) -> bool:
        """Whether the server holds this AID's key, and so reads and writes its mail."""
        return self.kind in {IdentityKind.USER, IdentityKind.AGENT}


@dataclass(frozen=True, slots=True)
class Stranger:
    """Whoever is at the other end of a socket that has not proved an AID yet.

    Attributes:
        address: of the peer, for limits.
        nonce: of this socket's challenge.
    """

    address: str
    nonce: str


def slot_key(slot_id: str) -> str:
    """What separates slots: the text before the first `/`, `:` or space (aun.md, 3.1)."""
    for stop in "/: ":
        slot_id = slot_id.partition(stop)[0]
    return slot_id or "default"
