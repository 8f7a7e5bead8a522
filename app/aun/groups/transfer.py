"""Handing a group on, in two steps: the owner says to whom, the new owner takes it.

A group with a key changes hands with its key: the old owner signs the first step with the group's
key, the new owner the second with their own, and brings a new key (aun.md, 6.1).
"""

from typing import Any

from sqlmodel import Session

from app.aun import queries
from app.aun.caller import Caller
from app.aun.errors import BadParams, BadSignature, GroupRefused
from app.aun.group_models import Group, Member, Role
from app.aun.groups import changes, making, membership
from app.aun.groups.membership import Inside
from app.aun.groups.refusals import RoleNeeded
from app.aun.groups.told import PREVIOUS_OWNER as BEFORE
from app.aun.models import Identity
from app.aun.pki import certificates, keys
from app.aun.pki.keys import PublicKey
from app.aun.wire import Params
from app.kernel import clock, ids
from app.kernel.db import Work

FRESH_MS = 10 * 60 * 1000  # how old a signed consent may be, and how far ahead


class Consent(Params):
    """A signature over a step, with what makes it this one's."""

    nonce: str
    issued_ms: int
    signature: str


def start(
    work: Work, caller: Caller, found: Inside, new_owner: str, consent: Consent | None
) -> str:
    """Say who is to own a group whose row is locked; returns the status it has then.

    A group without a key, whose owner the server acts for, changes hands at once: there is nothing
    to bring.

    Raises:
        BadParams, NotAMember: nobody who could take it.
        BadSignature: the group's key did not sign this.
    """
    group = found.group
    if new_owner == group.owner_aid:
        raise BadParams("the new owner owns the group already")
    heir = membership.member(work.session, group, new_owner)
    queries.party(work.session, caller.tenant_id, new_owner)
    key = making.current_key(work, group)
    if key is None:
        group.transfer_to = None
        _hand_on(work, caller, group, found.member, heir)
        return "transferred"
    _verify(key, consent, "aun-group-owner-transfer-v1", [group.id, group.id, new_owner])
    group.transfer_to = new_owner
    changes.note(
        work,
        caller,
        group,
        "owner_transfer_rekey_pending",
        status="pending_rekey",
        old_owner=group.owner_aid,
        new_owner=new_owner,
    )
    return "pending_rekey"


def complete(
    work: Work, caller: Caller, found: Inside, public_key: str, key: PublicKey, consent: Consent
) -> str:
    """Take over a group whose row is locked; returns who owned it before.

    Taking it once more with the same key changes nothing.

    Raises:
        RoleNeeded: it is not the caller's to take.
        BadSignature: the caller did not sign this.
        GroupRefused: the key is the old one.
    """
    group = found.group
    now = making.current_key(work, group)
    is_same = now is not None and keys.spki(now) == keys.spki(key)
    if group.owner_aid == caller.aid and is_same:
        return str(group.details.get(BEFORE, caller.aid))
    if group.transfer_to != caller.aid:
        raise RoleNeeded("permission denied: the group is not being transferred to you")
    if is_same:
        raise GroupRefused("the new owner needs a new key")
    _verify(
        _own_key(work.session, caller),
        consent,
        "aun-group-owner-transfer-accept-v1",
        [group.id, group.id, caller.aid, ids.sha256(public_key)],
    )
    before = membership.member(work.session, group, group.owner_aid)
    group.transfer_to = None
    making.replace_key(work, group, key)
    _hand_on(work, caller, group, before, found.member)
    return before.aid


def renew(
    work: Work,
    caller: Caller,
    group: Group,
    old: tuple[str, PublicKey],
    new: tuple[str, PublicKey],
    consent: Consent,
) -> None:
    """Give a group whose row is locked a new key, as the holder of the old one wants.

    Raises:
        GroupRefused: the old key is not the current one.
        BadSignature: it did not sign this.
    """
    now = making.current_key(work, group)
    if now is not None and keys.spki(now) == keys.spki(new[1]):
        return
    if now is None or keys.spki(now) != keys.spki(old[1]):
        raise GroupRefused("old_public_key is not the current key of the group")
    parts = [group.id, group.id, ids.sha256(old[0]), ids.sha256(new[0])]
    _verify(now, consent, "aun-group-aid-renew-v1", parts)
    making.replace_key(work, group, new[1])
    changes.note(work, caller, group, "update", updated_keys=["group_aid_key"])


def pending(group: Group) -> dict[str, Any]:
    """The transfer that waits for its new owner."""
    return {
        "status": "pending_rekey",
        "old_owner": group.owner_aid,
        "new_owner": group.transfer_to,
        "group_aid": group.id,
    }


def kept(group: Group) -> dict[str, Any]:
    """What of a group's details is ours; whoever writes the rest leaves it."""
    return {BEFORE: group.details[BEFORE]} if BEFORE in group.details else {}


def without_ours(details: dict[str, Any]) -> dict[str, Any]:
    """What of a group's details is its clients'."""
    return {key: value for key, value in details.items() if key != BEFORE}


def _hand_on(work: Work, caller: Caller, group: Group, before: Member, heir: Member) -> None:
    before.role, heir.role = Role.ADMIN, Role.OWNER
    heir.banned_at = heir.blocked_at = None
    group.owner_aid = heir.aid
    group.details = {**group.details, BEFORE: before.aid}
    work.session.add(before)
    work.session.add(heir)
    identity = work.session.get(Identity, (group.tenant_id, group.id))
    if identity is not None:
        identity.owner_id = heir.aid
        work.session.add(identity)
    changes.note(
        work,
        caller,
        group,
        "owner_transferred",
        status="transferred",
        old_owner=before.aid,
        new_owner=heir.aid,
        member_aid=heir.aid,
    )


def _own_key(session: Session, caller: Caller) -> PublicKey:
    found = queries.active_certificate(session, caller.tenant_id, caller.aid)
    if found is None:
        raise BadSignature("the new owner has no current certificate")
    return certificates.public_key(found)


def _verify(key: PublicKey, consent: Consent | None, what: str, parts: list[str]) -> None:
    if consent is None:
        raise BadSignature(f"{what}: a signature is needed")
    age = int(clock.now().timestamp() * 1000) - consent.issued_ms
    if abs(age) > FRESH_MS:
        raise BadSignature(f"{what}: the signature is not fresh")
    said = "|".join([what, *parts, consent.nonce, str(consent.issued_ms)])
    if not keys.verifies(key, _standard(consent.signature), said):
        raise BadSignature(f"{what}: the signature does not verify")


def _standard(signature: str) -> str:
    """Clients may write base64 in its other alphabet, and without padding."""
    plain = signature.replace("-", "+").replace("_", "/")
    return plain + "=" * (-len(plain) % 4)
