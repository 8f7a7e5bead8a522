"""`meta.*`: for people who want to know whether they are connected."""

from typing import Any

from sqlmodel import Session

from app.aun.caller import Caller
from app.aun.method import Method, read
from app.aun.models import LiveConnection
from app.aun.wire import Params
from app.kernel import clock

PROTOCOL = "1.0"


class Anything(Params):
    """Whatever a client says with it."""


def ping(_session: Session, _caller: Caller, _params: Anything) -> dict[str, Any]:
    """Tell that the server is there."""
    return {"pong": True, "timestamp": clock.epoch_s()}


def status(session: Session, caller: Caller, _params: Anything) -> dict[str, Any]:
    """Tell the caller how it is known. The mode of behaviour is a description (AUN-7)."""
    row = session.get(LiveConnection, (caller.tenant_id, caller.connection_id or ""))
    told: dict[str, Any] = {
        "mode": "gateway",
        "aid": caller.aid,
        "role": "member",
        "protocol_version": PROTOCOL,
        "behavior_mode": "autonomous",
    }
    if row is not None:
        told["connected_at"] = int(row.connected_at.timestamp() * 1_000)
    return told


WRITES: dict[str, Method] = {}
READS = {"meta.ping": read(ping), "meta.status": read(status)}
