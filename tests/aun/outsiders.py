"""Parties elsewhere, as the stock client has them: keys, prekeys, what they seal and open."""

import base64
import hashlib
from dataclasses import dataclass, field
from typing import Any

from aun_core.client import _v2_apply_wrap_policy_to_targets as with_policy
from aun_core.v2.crypto.ecdh import generate_p256_keypair
from aun_core.v2.crypto.ecdsa import ecdsa_sign_raw, ecdsa_verify_raw
from aun_core.v2.e2ee.decrypt import decrypt_message
from aun_core.v2.e2ee.encrypt_group import encrypt_group_message
from aun_core.v2.e2ee.encrypt_p2p import encrypt_p2p_message

from app.aun.caller import Caller
from app.aun.group_models import Group, Member, Role
from app.aun.models import Identity, IdentityKind
from app.aun.pki import certificates, issuers, keys
from app.identity.models import Tenant
from app.kernel import clock, db, ids
from app.kernel.db import Work


@dataclass
class Outsider:
    """An AID whose key is not ours, with its devices' prekeys by `spk_id`."""

    tenant_id: str
    aid: str
    scalar: bytes = b""
    spki: bytes = b""
    prekeys: dict[str, bytes] = field(default_factory=dict)

    def caller(self, device: str = "phone") -> Caller:
        """This AID on one of its devices."""
        return Caller(
            tenant_id=self.tenant_id, aid=self.aid, kind=IdentityKind.OUTSIDE, device_id=device
        )

    def new_key(self) -> None:
        """Register, or replace the key: its certificates are of the new one from now on."""
        self.scalar, self.spki = generate_p256_keypair()
        db.transact_now(_certify, self)

    def prekey(self, source: str = "peer_device_prekey", **others: Any) -> dict[str, Any]:
        """What the stock client says of a fresh prekey."""
        scalar, spki = generate_p256_keypair()
        spk_id = "sha256:" + hashlib.sha256(spki).hexdigest()[:16]
        self.prekeys[spk_id] = scalar
        at = int(clock.now().timestamp())
        signature = ecdsa_sign_raw(self.scalar, spki + spk_id.encode() + str(at).encode())
        return {
            "key_source": source,
            "spk_id": spk_id,
            "spk_pk": _text(spki),
            "spk_signature": _text(signature),
            "spk_timestamp": at,
            **others,
        }

    def sealed(
        self, rows: dict[str, Any], payload: dict[str, Any], message_id: str = "", **others: Any
    ) -> dict[str, Any]:
        """An envelope to whom `message.v2.bootstrap` named."""
        peers = [_target(row, "peer") for row in rows["peer_devices"]]
        own = [_target(row, "self_sync") for row in rows["self_devices"]]
        own = [row for row in own if row["device_id"] != "phone"]
        targets = with_policy([*peers, *own], rows["e2ee_wrap_policy"])
        return encrypt_p2p_message(
            self._sender(),
            {"targets": targets, "audit_recipients": []},
            payload,
            message_id=message_id or new_id(),
            **others,
        )

    def sealed_to_group(
        self, rows: dict[str, Any], payload: dict[str, Any], message_id: str = ""
    ) -> dict[str, Any]:
        """An envelope to whom `group.v2.bootstrap` named, but this device."""
        targets = [
            _target(row, "member" if row["aid"] != self.aid else "self_sync")
            for row in rows["devices"]
            if (row["aid"], row["device_id"]) != (self.aid, "phone")
        ]
        return encrypt_group_message(
            self._sender(),
            rows["group_id"],
            rows["epoch"],
            list(with_policy(targets, rows["e2ee_wrap_policy"])),
            payload,
            message_id=message_id or new_id(),
            state_commitment={name: rows[name] for name in COMMITTED},
        )

    def opened(
        self, envelope: dict[str, Any], sender_spki: bytes, device: str = "phone"
    ) -> dict[str, Any] | None:
        """What this AID reads in an envelope on one of its devices, as the stock client does."""
        rows = envelope.get("recipients") or [list(envelope["recipient"].values())]
        mine = next((row for row in rows if row[0] == self.aid and row[1] in {device, ""}), None)
        spk = self.prekeys.get(mine[5]) if mine else None
        return decrypt_message(envelope, self.aid, device, self.scalar, spk, sender_spki)

    def _sender(self) -> dict[str, Any]:
        return {
            "aid": self.aid,
            "device_id": "phone",
            "ik_priv": self.scalar,
            "ik_pub_der": self.spki,
        }


COMMITTED = ("state_version", "state_hash", "state_chain")


def outsider(tenant: Tenant, name: str) -> Outsider:
    """A registered AID that never connected."""
    domain = db.read_now(issuers.domain_of, tenant.id)
    made = Outsider(tenant.id, f"{name}.{domain}")
    made.new_key()
    return made


def group(tenant: Tenant, name: str, owner: str, *others: str) -> str:
    """A private group with these members, made without a word to anybody; its id."""
    domain = db.read_now(issuers.domain_of, tenant.id)
    group_id = f"{name}.{domain}"
    db.transact_now(_group, tenant.id, group_id, owner, others)
    return group_id


def enter(tenant: Tenant, group_id: str, aid: str, role: Role = Role.MEMBER) -> None:
    """One more member."""
    db.transact_now(_enter, tenant.id, group_id, aid, role)


def leave(tenant: Tenant, group_id: str, aid: str) -> None:
    """One member less."""
    db.transact_now(_leave, tenant.id, group_id, aid)


def new_id() -> str:
    """A message id as clients make them."""
    return f"m-{ids.random_token()[:32].lower()}"


def text(words: str) -> dict[str, Any]:
    """The payload of a message."""
    return {"type": "text", "text": words}


def _certify(work: Work, party: Outsider) -> None:
    if work.session.get(Identity, (party.tenant_id, party.aid)) is None:
        work.session.add(
            Identity(
                tenant_id=party.tenant_id,
                aid=party.aid,
                kind=IdentityKind.OUTSIDE,
                created_at=clock.now(),
            )
        )
        work.session.flush()
    else:
        certificates.revoke(work, party.tenant_id, party.aid)
    certificates.issue(work, party.tenant_id, party.aid, keys.of_spki(party.spki))


def _group(work: Work, tenant_id: str, group_id: str, owner: str, others: tuple[str, ...]) -> None:
    now = clock.now()
    work.session.add(
        Group(
            tenant_id=tenant_id,
            id=group_id,
            name="A group",
            owner_aid=owner,
            creator_aid=owner,
            created_at=now,
            updated_at=now,
        )
    )
    work.session.flush()
    _enter(work, tenant_id, group_id, owner, Role.OWNER)
    for aid in others:
        _enter(work, tenant_id, group_id, aid, Role.MEMBER)


def _enter(work: Work, tenant_id: str, group_id: str, aid: str, role: Role) -> None:
    work.session.add(
        Member(tenant_id=tenant_id, group_id=group_id, aid=aid, role=role, joined_at=clock.now())
    )


def _leave(work: Work, tenant_id: str, group_id: str, aid: str) -> None:
    found = work.session.get(Member, (tenant_id, group_id, aid))
    assert found is not None
    work.session.delete(found)


def _target(row: dict[str, Any], role: str) -> dict[str, Any]:
    """A row of a directory as the stock client takes it, or refuses to."""
    ik = base64.b64decode(row["ik_pk"])
    spk = base64.b64decode(row["spk_pk"]) if row.get("spk_pk") else None
    if spk:
        said = spk + row["spk_id"].encode() + str(row["spk_timestamp"]).encode()
        assert ecdsa_verify_raw(ik, base64.b64decode(row["spk_signature"]), said)
    return {
        "aid": row["aid"],
        "device_id": row["device_id"],
        "role": role,
        "key_source": row["key_source"],
        "ik_pk_der": ik,
        "spk_pk_der": spk,
        "spk_id": row["spk_id"],
    }


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()
