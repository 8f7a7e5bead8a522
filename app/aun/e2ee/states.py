"""Group states: a chain of signed membership snapshots, opaque to the server (aun.md, 8.4).

Owners' clients propose and confirm the next link after each change. Where the owner is hosted the
server is that client, and signs. A group's row is locked while its chain grows.
"""

import base64
import hashlib
import json as loose_json
import struct
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlmodel import Session, col, select

from app.aun import identities, queries
from app.aun.e2ee.crypto import COMMITMENT
from app.aun.errors import NoSuchProposal, StateMismatch
from app.aun.events import StateChanged
from app.aun.group_models import Group, GroupState, GroupStatus, Member, Role
from app.aun.pki import keys as curve
from app.kernel import clock, ids, json
from app.kernel.db import Work


@dataclass(frozen=True, slots=True)
class Standing:
    """The last confirmed state of a group; version 0 before the first."""

    state_version: int = 0
    state_hash: str = ""
    prev_state_hash: str = ""
    state_chain: str = ""
    snapshot: str = ""
    signature: str = ""
    actor_aid: str = ""

    def commitment(self) -> dict[str, Any]:
        """What an envelope says it was made under."""
        return {
            "state_version": self.state_version,
            "state_hash": self.state_hash,
            "state_chain": self.state_chain,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """The next link, as its actor signed it; `details` is whatever else they said."""

    state_version: int
    state_hash: str
    prev_state_hash: str
    snapshot: str
    signature: str
    actor_aid: str
    details: dict[str, Any]


def standing(session: Session, tenant_id: str, group_id: str) -> Standing:
    """The state of a group that counts now."""
    found = _newest(session, tenant_id, group_id, is_confirmed=True)
    if found is None:
        return Standing()
    return Standing(
        found.state_version,
        found.state_hash,
        found.prev_state_hash,
        found.state_chain,
        found.snapshot,
        found.signature,
        found.actor_aid,
    )


def proposed(session: Session, tenant_id: str, group_id: str) -> GroupState | None:
    """The proposal that nobody confirmed yet."""
    return _newest(session, tenant_id, group_id, is_confirmed=False)


def propose(work: Work, group: Group, proposal: Proposal) -> GroupState:
    """Keep the next link of a group whose row is locked; a proposal before it is forgotten.

    The same once more is the same proposal.

    Raises:
        StateMismatch: it does not follow what was confirmed last.
    """
    now = standing(work.session, group.tenant_id, group.id)
    follows = proposal.state_version == now.state_version + 1
    if not follows or proposal.prev_state_hash != now.state_hash:
        raise StateMismatch(
            "state does not follow the confirmed one",
            state_version=now.state_version,
            state_hash=now.state_hash,
        )
    waiting = proposed(work.session, group.tenant_id, group.id)
    if waiting is not None:
        if _is_same(waiting, proposal):
            return waiting
        work.session.delete(waiting)
        work.session.flush()
    made = GroupState(
        tenant_id=group.tenant_id,
        group_id=group.id,
        state_version=proposal.state_version,
        proposal_id=ids.ulid(),
        snapshot=proposal.snapshot,
        state_hash=proposal.state_hash,
        prev_state_hash=proposal.prev_state_hash,
        signature=proposal.signature,
        actor_aid=proposal.actor_aid,
        details=proposal.details,
        created_at=clock.now(),
    )
    work.session.add(made)
    work.session.flush()
    _tell(work, made)
    return made


def confirm(work: Work, group: Group, proposal_id: str) -> GroupState:
    """Make a proposal the state of its group, whose row is locked; harmless when it is already.

    Raises:
        NoSuchProposal: nobody proposed that here, or it was replaced by another.
    """
    query = select(GroupState).where(
        GroupState.tenant_id == group.tenant_id,
        GroupState.group_id == group.id,
        GroupState.proposal_id == proposal_id,
    )
    found = work.session.exec(query).first()
    if found is None:
        raise NoSuchProposal("unknown proposal")
    if found.confirmed_at is None:
        before = standing(work.session, group.tenant_id, group.id)
        found.state_chain = chained(before.state_chain, found.state_hash)
        found.confirmed_at = clock.now()
        work.session.add(found)
        work.session.flush()
        _tell(work, found)
    return found


def follow(work: Work, group: Group) -> None:
    """Sign who is in a group now as its state, if the server holds its owner's key.

    To be called after each change of members or roles, with the group's row locked.
    """
    owner = queries.identity(work.session, group.tenant_id, group.owner_aid)
    if owner is None or owner.key_sealed is None or group.status == GroupStatus.DISSOLVED:
        return
    now = standing(work.session, group.tenant_id, group.id)
    snapshot = _snapshot(work.session, group)
    if people(now.snapshot) == people(snapshot):
        return
    version = now.state_version + 1
    state_hash = commitment(group.id, version, snapshot)
    key = curve.of_scalar(identities.key_of(work.session, group.tenant_id, owner.aid))
    words = signed_words(group.id, version, state_hash, snapshot)
    next_one = Proposal(
        state_version=version,
        state_hash=state_hash,
        prev_state_hash=now.state_hash,
        snapshot=snapshot,
        signature=base64.b64encode(key.sign(words, curve.ECDSA)).decode(),
        actor_aid=owner.aid,
        details={"reason": "membership_changed"},
    )
    confirm(work, group, propose(work, group, next_one).proposal_id)


def people(snapshot: str) -> tuple[frozenset[str], frozenset[str]]:
    """The members and the heads that a snapshot names; clients before 0.5 listed members alone."""
    try:
        said = loose_json.loads(snapshot or "[]")
    except ValueError:
        said = []
    if isinstance(said, list):
        return frozenset(aid for aid in said if isinstance(aid, str)), frozenset()
    listed = said.get("members") if isinstance(said, dict) else None
    heads = said.get("admin_set") if isinstance(said, dict) else None
    members = [each.get("aid") for each in listed or () if isinstance(each, dict)]
    heads = heads.get("admin_aids") if isinstance(heads, dict) else None
    return (
        frozenset(aid for aid in members if isinstance(aid, str)),
        frozenset(aid for aid in heads or () if isinstance(aid, str)),
    )


def commitment(group_id: str, version: int, snapshot: str) -> str:
    """The hash of a snapshot in its canonical form, for this place in this group's chain."""
    place = COMMITMENT + group_id.encode() + struct.pack(">I", version)
    return hashlib.sha256(place + snapshot.encode()).hexdigest()


def chained(chain: str, state_hash: str) -> str:
    """The chain with one more state on it."""
    return hashlib.sha256(f"{chain}{state_hash}".encode()).hexdigest()


def signed_words(group_id: str, version: int, state_hash: str, snapshot: str) -> bytes:
    """What the actor of a state signs."""
    words = {
        "group_id": group_id,
        "membership_snapshot": snapshot,
        "state_hash": state_hash,
        "state_version": version,
    }
    text = loose_json.dumps(words, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode()


def confirms_itself_at(state: GroupState) -> int:
    """Until when other clients leave a proposal to its actor, in milliseconds."""
    seconds = state.details.get("auto_confirm_seconds", 0)
    return int((state.created_at + timedelta(seconds=seconds)).timestamp() * 1000)


def _newest(
    session: Session, tenant_id: str, group_id: str, *, is_confirmed: bool
) -> GroupState | None:
    at = col(GroupState.confirmed_at)
    query = (
        select(GroupState)
        .where(
            GroupState.tenant_id == tenant_id,
            GroupState.group_id == group_id,
            at.is_not(None) if is_confirmed else at.is_(None),
        )
        .order_by(col(GroupState.state_version).desc())
        .limit(1)
    )
    return session.exec(query).first()


def _is_same(waiting: GroupState, proposal: Proposal) -> bool:
    return (
        waiting.state_hash == proposal.state_hash
        and waiting.actor_aid == proposal.actor_aid
        and waiting.snapshot == proposal.snapshot
    )


def _snapshot(session: Session, group: Group) -> str:
    """Who is in a group, in the words and the canonical form of the stock client.

    Devices are left out: they come and go without a change of the group.
    """
    query = select(Member.aid, Member.role).where(
        Member.tenant_id == group.tenant_id, Member.group_id == group.id
    )
    found = sorted(session.exec(query))
    said = {
        "members": [{"aid": aid, "devices": []} for aid, _ in found],
        "audit_aids": [],
        "admin_set": {
            "admin_aids": [aid for aid, role in found if role != Role.MEMBER],
            "threshold": 1,
        },
        "join_policy_hash": None,
        "recovery_quorum": None,
        "history_policy": "recent_7_days",
        "wrap_protocol": "3DH",
    }
    return json.dumps_sorted(said).decode()


def _tell(work: Work, state: GroupState) -> None:
    work.announce(
        StateChanged(
            tenant_id=state.tenant_id,
            group_id=state.group_id,
            state_version=state.state_version,
            is_confirmed=state.confirmed_at is not None,
        )
    )
