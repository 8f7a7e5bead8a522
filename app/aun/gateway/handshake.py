"""`auth.connect`: a socket becomes a connection of an AID (aun.md, 3)."""

from dataclasses import dataclass
from typing import Any

from pydantic import Field
from sqlmodel import Session

from app.aun import queries, tokens
from app.aun.caller import Caller, Stranger, slot_key
from app.aun.errors import BadNonce, BadToken, NotAdmitted, ProtocolVersion
from app.aun.models import IdentityKind, IdentityStatus
from app.aun.outgoing import Live
from app.aun.wire import DeviceId, Params
from app.kernel import clock, ids

VERSION = (1, 0)


class Auth(Params):
    """The credential."""

    method: str = "kite_token"
    token: str = Field(max_length=8_192)


class Protocol(Params):
    """The versions a client speaks."""

    min: str = Field(default="1.0", max_length=20)
    max: str = Field(default="1.0", max_length=20)


class Device(Params):
    """The client's folder, which keeps its id."""

    id: DeviceId = ""


class Client(Params):
    """The client's slot."""

    slot_id: DeviceId = "default"


class DeliveryMode(Params):
    """To all connections of the AID, or to one of them."""

    mode: str = Field(default="fanout", max_length=20)
    routing: str = Field(default="round_robin", max_length=20)


class Options(Params):
    """Long or short."""

    kind: str = Field(default="long", max_length=20)


class Connect(Params):
    """`auth.connect`."""

    nonce: str = Field(max_length=200)
    auth: Auth
    protocol: Protocol = Protocol()
    device: Device = Device()
    client: Client = Client()
    delivery_mode: DeliveryMode = DeliveryMode()
    capabilities: dict[str, Any] = Field(default_factory=dict)
    options: Options = Options()


@dataclass(frozen=True, slots=True)
class Admitted:
    """Who is at the other end from now on."""

    caller: Caller
    live: Live


def admitted(session: Session, stranger: Stranger, params: Connect) -> Admitted:
    """The connection that a token opens.

    Raises:
        BadNonce, BadToken, NotAdmitted, ProtocolVersion: the socket stays open, its nonce valid.
    """
    if params.nonce != stranger.nonce:
        raise BadNonce("nonce is not of this connection")
    if not _speaks_ours(params.protocol):
        raise ProtocolVersion("protocol version 1.0 is spoken here")
    if params.auth.method != "kite_token":
        raise BadToken("unknown auth method")
    tenant_id, aid = tokens.verify(session, params.auth.token)
    found = queries.identity(session, tenant_id, aid)
    if found is None or found.kind != IdentityKind.OUTSIDE:
        raise BadToken("unknown aid")
    if found.status == IdentityStatus.BLOCKED:
        raise NotAdmitted("aid is blocked")
    live = Live(
        id=ids.ulid(),
        tenant_id=tenant_id,
        aid=aid,
        device_id=params.device.id,
        slot_key=slot_key(params.client.slot_id),
        is_long=params.options.kind != "short",
        is_peer_dialect=params.capabilities.get("p2p_peer_pull_v1") is True,
        is_queue=params.delivery_mode.mode == "queue",
        is_affine=params.delivery_mode.routing == "sender_affinity",
    )
    caller = Caller(
        tenant_id=tenant_id,
        aid=aid,
        kind=IdentityKind(found.kind),
        device_id=live.device_id,
        slot_key=live.slot_key,
        connection_id=live.id,
        is_peer_dialect=live.is_peer_dialect,
    )
    return Admitted(caller, live)


def hello(live: Live) -> dict[str, Any]:
    """What a client learns when it is connected; without `p2p_peer_pull_v1` it goes away."""
    return {
        "status": "ok",
        "authenticated": True,
        "protocol": "1.0",
        "server_time": clock.now().timestamp(),
        "identity": {"module_id": "", "role": "member", "aid": live.aid},
        "connection": {
            "id": live.id,
            "device_id": live.device_id,
            "kind": "long" if live.is_long else "short",
        },
        "capabilities": {
            "p2p_peer_pull_v1": True,
            "inline_realtime_payload_v1": True,
            "e2ee": True,
            "group_e2ee": True,
            "namespaces": ["auth", "meta", "message", "group"],
            "features": {},
        },
    }


def _speaks_ours(protocol: Protocol) -> bool:
    try:
        return _number(protocol.min) <= VERSION <= _number(protocol.max)
    except ValueError:
        return False


def _number(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))
