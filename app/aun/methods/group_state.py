"""The state of a group: read by its members, proposed and confirmed by those who head it."""

import asyncio
import base64
import json as loose_json
from typing import Annotated, Any

from cryptography.exceptions import InvalidSignature
from pydantic import Field
from sqlmodel import Session

from app.aun import method
from app.aun.caller import Caller
from app.aun.e2ee import crypto, keys, states
from app.aun.e2ee.states import Proposal
from app.aun.errors import BadParams, BadSignature
from app.aun.group_models import GroupState, Role
from app.aun.groups import membership, told
from app.aun.models import ID_LENGTH
from app.aun.names import GroupId
from app.aun.pki import keys as curve
from app.aun.wire import LONGEST_PAYLOAD, Params
from app.kernel import db
from app.kernel.db import Work

WAIT_S, LONGEST_WAIT_S = 30, 3_600

Hash = Annotated[str, Field(max_length=128)]


class OfGroup(Params):
    """Which group."""

    group_id: GroupId


class Propose(OfGroup):
    """The next link of its chain, signed by the caller."""

    state_version: Annotated[int, Field(ge=1, lt=2**32)]
    state_hash: Annotated[Hash, Field(min_length=1)]
    prev_state_hash: Hash = ""
    membership_snapshot: Annotated[str, Field(min_length=1, max_length=LONGEST_PAYLOAD)]
    signature: Annotated[str, Field(max_length=500)] = ""
    key_epoch: Annotated[int, Field(ge=0)] = 0
    reason: Annotated[str, Field(max_length=200)] = ""
    auto_confirm_seconds: Annotated[int, Field(ge=0, le=LONGEST_WAIT_S)] = WAIT_S


class Confirm(OfGroup):
    """Which proposal."""

    proposal_id: Annotated[str, Field(min_length=1, max_length=ID_LENGTH)]


async def _sound(caller: Caller, params: Propose) -> Propose:
    """A state whose signature or hash is wrong would stop every member's client from sending."""
    key = await db.read(_key, caller)
    await asyncio.to_thread(_verify, key, params)
    return params


def _get_state(session: Session, caller: Caller, params: OfGroup) -> dict[str, Any]:
    group = membership.inside(session, caller, params.group_id).group
    state = states.standing(session, group.tenant_id, group.id)
    return {
        **told.both(group.id),
        **state.commitment(),
        "prev_state_hash": state.prev_state_hash,
        "membership_snapshot": state.snapshot,
        "signature": state.signature,
        "actor_aid": state.actor_aid,
        "key_epoch": state.state_version,
        "member_count": group.member_count,
    }


def _get_proposal(session: Session, caller: Caller, params: OfGroup) -> dict[str, Any]:
    group = membership.inside(session, caller, params.group_id).group
    found = states.proposed(session, group.tenant_id, group.id)
    return {**told.both(group.id), "proposal": None if found is None else _told(found)}


def _propose(work: Work, caller: Caller, params: Propose) -> dict[str, Any]:
    group = membership.held(work, caller, params.group_id, needs=Role.ADMIN).group
    proposal = Proposal(
        state_version=params.state_version,
        state_hash=params.state_hash,
        prev_state_hash=params.prev_state_hash,
        snapshot=params.membership_snapshot,
        signature=params.signature,
        actor_aid=caller.aid,
        details=params.model_dump(include={"key_epoch", "reason", "auto_confirm_seconds"}),
    )
    made = states.propose(work, group, proposal)
    return {"success": True, "status": "pending", **_told(made)}


def _confirm(work: Work, caller: Caller, params: Confirm) -> dict[str, Any]:
    group = membership.held(work, caller, params.group_id, needs=Role.ADMIN).group
    found = states.confirm(work, group, params.proposal_id)
    return {
        "success": True,
        "status": "confirmed",
        **told.both(group.id),
        "proposal_id": found.proposal_id,
        "state_version": found.state_version,
        "state_hash": found.state_hash,
        "state_chain": found.state_chain,
    }


def _key(session: Session, caller: Caller) -> bytes | None:
    found = keys.current(session, caller.tenant_id, {caller.aid}).get(caller.aid)
    return found.spki if found else None


def _verify(key: bytes | None, params: Propose) -> None:
    said = _parsed(params.membership_snapshot)
    if isinstance(said, dict):
        try:
            counted = crypto.state_hash(params.group_id, params.state_version, said)
        except (AttributeError, TypeError, ValueError):  # members that are no objects, and the like
            raise BadParams("membership_snapshot is not a state") from None
        if counted != params.state_hash:
            raise BadParams("state_hash is not of membership_snapshot")
    if params.signature:
        _verify_signature(key, params)


def _parsed(snapshot: str) -> Any:
    try:
        return loose_json.loads(snapshot)
    except (ValueError, RecursionError):
        raise BadParams("membership_snapshot is not JSON") from None


def _verify_signature(key: bytes | None, params: Propose) -> None:
    words = states.signed_words(
        params.group_id, params.state_version, params.state_hash, params.membership_snapshot
    )
    try:
        signature = base64.b64decode(params.signature, validate=True)
        if key is None:
            raise BadSignature("this aid has no valid certificate")
        curve.of_spki(key).verify(signature, words, curve.ECDSA)
    except (InvalidSignature, ValueError):
        raise BadSignature("signature is not the caller's, or not of this state") from None


def _told(state: GroupState) -> dict[str, Any]:
    return {
        **told.both(state.group_id),
        "proposal_id": state.proposal_id,
        "state_version": state.state_version,
        "state_hash": state.state_hash,
        "prev_state_hash": state.prev_state_hash,
        "membership_snapshot": state.snapshot,
        "signature": state.signature,
        "actor_aid": state.actor_aid,
        "proposed_by": state.actor_aid,
        "key_epoch": state.details.get("key_epoch", 0),
        "reason": state.details.get("reason", ""),
        "created_at": told.ms(state.created_at),
        "auto_confirm_at": states.confirms_itself_at(state),
    }


WRITES = {
    "group.v2.propose_state": method.write(_propose, prepare=_sound),
    "group.v2.confirm_state": method.write(_confirm),
}
READS = {
    "group.get_state": method.read(_get_state),
    "group.v2.get_proposal": method.read(_get_proposal),
}
