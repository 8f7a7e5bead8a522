"""Keys for messages between two: a device's own is put, a peer's are fetched (aun.md, 8.1)."""

from typing import Any, Literal

from sqlmodel import Session

from app.aun import method, queries
from app.aun.caller import Caller
from app.aun.e2ee import directory, keys, prekeys
from app.aun.e2ee.prekeys import Prekey
from app.aun.errors import BadParams
from app.aun.names import Aid
from app.aun.pki import certificates, chain, issuers
from app.aun.wire import Params
from app.kernel.db import Work


class PutPeerKey(Prekey):
    """The prekey of the caller's device."""

    peer_aid: Aid
    key_source: Literal["peer_device_prekey"] = "peer_device_prekey"


class Bootstrap(Params):
    """Whom somebody is about to write to."""

    peer_aid: Aid


async def _verified(caller: Caller, params: PutPeerKey) -> PutPeerKey:
    if params.peer_aid != caller.aid:
        raise BadParams("peer_aid is not the caller")
    await prekeys.verified(caller, params)
    return params


def _put_peer_key(work: Work, caller: Caller, params: PutPeerKey) -> dict[str, Any]:
    prekeys.put(work, caller, params)
    return {"success": True, "spk_id": params.spk_id}


def _bootstrap(session: Session, caller: Caller, params: Bootstrap) -> dict[str, Any]:
    peer = queries.party(session, caller.tenant_id, params.peer_aid)
    rows = directory.devices(session, caller.tenant_id, {peer.aid, caller.aid})
    of_peer = [row for row in rows if row.aid == peer.aid]
    of_self = [row for row in rows if row.aid == caller.aid and not row.is_virtual]
    return {
        "peer_devices": [row.to_wire() for row in of_peer],
        "self_devices": [] if caller.is_hosted else [row.to_wire() for row in of_self],
        "audit_recipients": [],
        "e2ee_wrap_policy": directory.policy(of_peer),
        "certs": _certs(session, caller.tenant_id, peer.aid),
    }


def _certs(session: Session, tenant_id: str, aid: str) -> dict[str, Any]:
    key = keys.current(session, tenant_id, {aid}).get(aid)
    if key is None:
        return {}
    issuer = issuers.one(session, tenant_id)
    return {
        aid: {
            "cert_pem": certificates.pem(key.certificate),
            "cert_fingerprint": keys.PREFIX + key.certificate_fingerprint,
            "ca_chain": [
                certificates.pem(issuer.certificate),
                chain.root_pem(session, tenant_id),
            ],
        }
    }


WRITES = {"message.v2.put_peer_pk": method.write(_put_peer_key, prepare=_verified)}
READS = {"message.v2.bootstrap": method.read(_bootstrap)}
