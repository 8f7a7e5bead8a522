"""Keys for messages to a group: a member's own is put, those of all members are fetched."""

from typing import Any, Literal

from sqlmodel import Session

from app.aun import method
from app.aun.caller import Caller
from app.aun.e2ee import directory, prekeys, states
from app.aun.e2ee.prekeys import Prekey
from app.aun.groups import membership, told
from app.aun.names import GroupId
from app.aun.wire import Params
from app.kernel.db import Work


class PutGroupKey(Prekey):
    """The prekey of the caller's device in one group."""

    group_id: GroupId
    key_source: Literal["group_device_prekey"] = "group_device_prekey"


class Bootstrap(Params):
    """Which group somebody is about to write to."""

    group_id: GroupId


async def _verified(caller: Caller, params: PutGroupKey) -> PutGroupKey:
    await prekeys.verified(caller, params)
    return params


def _put_group_key(work: Work, caller: Caller, params: PutGroupKey) -> dict[str, Any]:
    group = membership.inside(work.session, caller, params.group_id).group
    prekeys.put(work, caller, params, group.id)
    return {"success": True, "spk_id": params.spk_id, **told.both(group.id)}


def _bootstrap(session: Session, caller: Caller, params: Bootstrap) -> dict[str, Any]:
    group = membership.inside(session, caller, params.group_id).group
    aids = sorted(membership.aids(session, group.tenant_id, group.id))
    state = states.standing(session, group.tenant_id, group.id)
    rows = directory.of_group(session, group.tenant_id, group.id)
    committed, _ = states.people(state.snapshot)
    return {
        **told.both(group.id),
        "devices": [row.to_wire() for row in rows if row.aid != caller.aid or not row.is_virtual],
        "epoch": state.state_version,
        "member_aids": aids,
        "committed_member_aids": sorted(committed),
        "pending_adds": [aid for aid in aids if aid not in committed],
        **state.commitment(),
        "state_hash_signed": state.state_hash,
        "state_signature": state.signature,
        "state_actor_aid": state.actor_aid,
        "state_membership_snapshot": state.snapshot,
        "audit_recipients": [],
        "e2ee_security_level": "end_to_end",
        "e2ee_wrap_policy": directory.BY_DEVICE,
    }


WRITES = {"group.v2.put_group_pk": method.write(_put_group_key, prepare=_verified)}
READS = {"group.v2.bootstrap": method.read(_bootstrap)}
