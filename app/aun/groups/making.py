"""Making groups: numbered ones, and named ones that have a key and a certificate of their own.

Making is repeated by clients whose answer got lost: the same request, or the same key, is the same
group.
"""

from typing import Any

from sqlmodel import select

from app.aun import conversations, identities, queries
from app.aun.caller import Caller
from app.aun.errors import BadParams
from app.aun.group_models import Group, JoinMode, Visibility
from app.aun.groups import changes, roster
from app.aun.groups.refusals import KeyDiffers, NameTaken
from app.aun.models import Identity, IdentityKind
from app.aun.pki import building, certificates, chain, keys
from app.aun.pki.keys import PublicKey
from app.aun.pki_models import Certificate
from app.kernel import clock
from app.kernel.db import Work
from app.kernel.prepared import Prepared

FIRST_NUMBER = 10_001
CURVE = "P-256"
USUAL_MODE = {Visibility.PUBLIC: JoinMode.OPEN, Visibility.PRIVATE: JoinMode.APPROVAL}

# numbers are counted like an inbox, that of the issuer's own name for groups
_TAKE_NUMBER = Prepared(
    "INSERT INTO inbox_counter (tenant_id, aid, seq) VALUES (:tenant_id, :aid, :first) "
    "ON CONFLICT (tenant_id, aid) DO UPDATE SET seq = inbox_counter.seq + 1 RETURNING seq"
)


def known_request(work: Work, caller: Caller, request_id: str) -> Group | None:
    """The group an earlier try of the same request made."""
    query = select(Group).where(
        Group.tenant_id == caller.tenant_id,
        Group.creator_aid == caller.aid,
        Group.create_request_id == request_id,
    )
    return work.session.exec(query).first()


def anonymous(work: Work, caller: Caller, request_id: str | None, **values: Any) -> Group:
    """A group under a number of ours, or what the same request made before."""
    if request_id and (found := known_request(work, caller, request_id)):
        return found
    issuer = caller.aid.partition(".")[2]
    return _make(
        work, caller, _numbered(work, caller, issuer), create_request_id=request_id, **values
    )


def named(work: Work, caller: Caller, base: str, key: PublicKey, **values: Any) -> Group:
    """A group under a name of the caller's choice, with a certificate for `key`.

    Raises:
        NameTaken: by an AID or another's group.
        KeyDiffers: the caller made this group with another key.
    """
    group_id = f"{base}.{caller.aid.partition('.')[2]}"
    found = work.session.get(Group, (caller.tenant_id, group_id))
    if found is not None and found.creator_aid == caller.aid and found.is_named:
        if not _is_bound_to(work, found, key):
            raise KeyDiffers
        return found
    if found is not None or not identities.is_free(work.session, caller.tenant_id, group_id):
        raise NameTaken
    made = _make(work, caller, group_id, is_named=True, **values)
    certificates.issue(work, caller.tenant_id, group_id, key)
    return made


def bind(work: Work, group: Group, key: PublicKey) -> None:
    """Give a group that has no key this one; the same once more changes nothing.

    Raises:
        KeyDiffers: it has another.
    """
    if queries.active_certificate(work.session, group.tenant_id, group.id) is None:
        certificates.issue(work, group.tenant_id, group.id, key)
        group.is_named = True
        work.session.add(group)
    elif not _is_bound_to(work, group, key):
        raise KeyDiffers


def replace_key(work: Work, group: Group, key: PublicKey) -> None:
    """Give a group a new key; certificates of its old one are revoked, and stay readable."""
    certificates.revoke(work, group.tenant_id, group.id)
    certificates.issue(work, group.tenant_id, group.id, key)
    group.is_named = True
    work.session.add(group)


def end_key(work: Work, group: Group) -> None:
    """Revoke the certificates of a group that is over."""
    certificates.revoke(work, group.tenant_id, group.id)


def certificate(work: Work, group: Group) -> dict[str, Any] | None:
    """The certificate of a group as clients want it; None where it has none."""
    found = queries.active_certificate(work.session, group.tenant_id, group.id)
    return _told(work, found) if found else None


def key_of(text: str, curve: str) -> PublicKey:
    """The public key in a parameter.

    Raises:
        BadParams: it is none, or of another curve.
    """
    if curve != CURVE:
        raise BadParams("curve must be P-256")
    try:
        return keys.of_base64(text)
    except ValueError as fault:
        raise BadParams(f"invalid params: public_key: {fault}") from fault


def current_key(work: Work, group: Group) -> PublicKey | None:
    """The key a group proves itself with now."""
    found = queries.active_certificate(work.session, group.tenant_id, group.id)
    return certificates.public_key(found) if found else None


def _make(work: Work, caller: Caller, group_id: str, **values: Any) -> Group:
    now = clock.now()
    visibility = Visibility(values.pop("visibility", Visibility.PRIVATE))
    group = Group(
        tenant_id=caller.tenant_id,
        id=group_id,
        owner_aid=caller.aid,
        creator_aid=caller.aid,
        visibility=visibility,
        join_mode=values.pop("join_mode", None) or USUAL_MODE[visibility],
        created_at=now,
        updated_at=now,
        **values,
    )
    work.session.add(
        Identity(
            tenant_id=caller.tenant_id,
            aid=group_id,
            kind=IdentityKind.GROUP,
            owner_id=caller.aid,
            created_at=now,
        )
    )
    work.session.add(group)
    work.session.flush()
    conversations.of_group(work, caller.tenant_id, group_id, caller.aid)
    roster.begin(work, group)
    changes.note(work, caller, group, "created", member_aid=caller.aid, owner_aid=caller.aid)
    return group


def _numbered(work: Work, caller: Caller, issuer: str) -> str:
    while True:
        number = _TAKE_NUMBER.run(
            work.connection, tenant_id=caller.tenant_id, aid=f"group.{issuer}", first=FIRST_NUMBER
        ).scalar()
        group_id = f"{number}.{issuer}"
        if queries.identity(work.session, caller.tenant_id, group_id) is None:
            return group_id


def _is_bound_to(work: Work, group: Group, key: PublicKey) -> bool:
    now = current_key(work, group)
    return now is not None and keys.spki(now) == keys.spki(key)


def _told(work: Work, row: Certificate) -> dict[str, Any]:
    bundle = chain.pem(work.session, row.tenant_id)
    root = chain.root_pem(work.session, row.tenant_id)
    issuer = bundle.removesuffix(root)
    return {
        "cert": certificates.pem(row.der),
        "ca_cert": issuer,
        "ca_chain": [issuer, root],
        "cert_sn": building.serial(building.parsed(row.der)),
        "curve": CURVE,
        "agentid": row.aid,
    }
