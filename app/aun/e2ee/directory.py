"""The directory of device keys: what others encrypt to, of each AID and each device of it.

A prekey is handed out only while the AID's key of today signs for it, so that nobody can put a
false one in. Hosted AIDs have one device, `hosted`, and no prekeys: nothing rotates, nothing is
lost. An AID that never connected gets a row for its AID alone, and reads at its first login. There
is never another reader: audit recipients do not exist here (aun.md, 8.1).
"""

import base64
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session, col, select

from app.aun import queries
from app.aun.caller import HOSTED_DEVICE
from app.aun.e2ee import crypto, keys, prekeys
from app.aun.e2ee.crypto import AID_KEY, Target
from app.aun.e2ee.keys import Key
from app.aun.group_models import Member
from app.aun.models import Identity, IdentityKind
from app.aun.pki_models import DeviceKey

READ_HERE = queries.HOSTED | {IdentityKind.SYSTEM}  # the server is their client

BY_DEVICE = {"protocol": "3DH", "scope": "device"}
BY_AID = {"protocol": "1DH", "scope": "aid"}


@dataclass(frozen=True, slots=True)
class Device:
    """One row of the directory; without a prekey it stands for the key of the AID itself."""

    aid: str
    device_id: str
    ik: bytes
    prekey: DeviceKey | None = None

    @property
    def is_virtual(self) -> bool:
        """Whether it stands for an AID that has no device yet."""
        return not self.device_id

    def to_wire(self) -> dict[str, Any]:
        """The row as clients read it."""
        row: dict[str, Any] = {
            "aid": self.aid,
            "device_id": self.device_id,
            "ik_pk": base64.b64encode(self.ik).decode(),
            "key_source": AID_KEY,
            "spk_id": "",
        }
        if self.prekey is not None:
            row |= {
                "key_source": self.prekey.key_source,
                "spk_id": self.prekey.spk_id,
                "spk_pk": self.prekey.spk_pk,
                "spk_signature": self.prekey.spk_signature,
                "spk_timestamp": self.prekey.spk_timestamp,
            }
        return row

    def target(self, role: str) -> Target:
        """The row as something we encrypt to."""
        if self.prekey is None:
            return Target(self.aid, self.device_id, role, AID_KEY, self.ik)
        spk = base64.b64decode(self.prekey.spk_pk)
        source, spk_id = self.prekey.key_source, self.prekey.spk_id
        return Target(self.aid, self.device_id, role, source, self.ik, spk, spk_id)


def devices(
    session: Session, tenant_id: str, aids: Collection[str], group_id: str = ""
) -> list[Device]:
    """Every row of these AIDs, by AID and device; in a group its own prekeys come before others.

    An AID without a valid certificate has none.
    """
    known = queries.known(session, tenant_id, aids)
    of_today = keys.current(session, tenant_id, known)
    stored = _stored(session, tenant_id, known, group_id)
    made: list[Device] = []
    for aid in sorted(of_today):
        made += _rows(known[aid], of_today[aid], stored.get(aid, {}))
    return made


def of_group(session: Session, tenant_id: str, group_id: str) -> list[Device]:
    """The rows of every member of a group but those who blocked it, who receive nothing."""
    query = select(Member.aid).where(
        Member.tenant_id == tenant_id,
        Member.group_id == group_id,
        col(Member.blocked_at).is_(None),
    )
    return devices(session, tenant_id, session.exec(query).all(), group_id)


def policy(rows: Iterable[Device]) -> dict[str, str]:
    """How the rows of one AID are to be wrapped."""
    return BY_AID if all(row.is_virtual for row in rows) else BY_DEVICE


def _stored(
    session: Session, tenant_id: str, aids: Collection[str], group_id: str
) -> dict[str, dict[str, DeviceKey]]:
    query = (
        select(DeviceKey)
        .where(
            DeviceKey.tenant_id == tenant_id,
            col(DeviceKey.aid).in_(sorted(aids)),
            col(DeviceKey.group_id).in_({"", group_id}),
        )
        .order_by(col(DeviceKey.group_id), col(DeviceKey.device_id))  # those of the group replace
    )
    found: dict[str, dict[str, DeviceKey]] = defaultdict(dict)
    for row in session.exec(query):
        found[row.aid][row.device_id] = row
    return found


def _rows(identity: Identity, key: Key, stored: dict[str, DeviceKey]) -> list[Device]:
    if identity.kind in READ_HERE:
        return [Device(identity.aid, HOSTED_DEVICE, key.spki)]
    rows = [
        Device(identity.aid, device_id, key.spki, row if _is_signed(row, key.spki) else None)
        for device_id, row in sorted(stored.items())
    ]
    return rows or [Device(identity.aid, "", key.spki)]


def _is_signed(row: DeviceKey, ik: bytes) -> bool:
    """Whether the key of its AID that counts now is the one that signed it."""
    signature, spk = base64.b64decode(row.spk_signature), base64.b64decode(row.spk_pk)
    said = prekeys.signed_words(spk, row.spk_id, row.spk_timestamp)
    return crypto.verifies(ik, signature, said)
