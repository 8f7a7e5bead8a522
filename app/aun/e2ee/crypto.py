"""The stock client's own cryptography, imported when first needed: loading it takes a second.

Everything here computes and nothing here waits; coroutines call it in a worker thread.
"""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from app.aun.caller import HOSTED_DEVICE

KEPT = 4_096  # targets whose keys are parsed already

COMMITMENT = b"AUN-V2-SC-v1"  # what the commitment to a group's state begins with

AID_KEY = "aid_master"  # the source of a key that is no prekey


@dataclass(frozen=True, slots=True)
class Target:
    """A device something is encrypted to; without `spk_id` to the key of its AID alone (1DH)."""

    aid: str
    device_id: str
    role: str
    key_source: str
    ik: bytes  # SPKI DER
    spk: bytes | None = None
    spk_id: str = ""

    def in_words(self) -> dict[str, Any]:
        """The same as the library wants it."""
        return {
            "aid": self.aid,
            "device_id": self.device_id,
            "role": self.role,
            "key_source": self.key_source,
            "ik_pk_der": self.ik,
            "spk_pk_der": self.spk,
            "spk_id": self.spk_id,
        }


@dataclass(frozen=True, slots=True)
class Sealer:
    """A hosted identity that encrypts: its private scalar never leaves the process."""

    aid: str
    scalar: bytes

    def in_words(self) -> dict[str, Any]:
        """The same as the library wants it."""
        from aun_core.v2.crypto.ecdh import private_to_public_der  # noqa: PLC0415 - see the module

        return {
            "aid": self.aid,
            "device_id": HOSTED_DEVICE,
            "ik_priv": self.scalar,
            "ik_pub_der": private_to_public_der(self.scalar),
        }

    def __repr__(self) -> str:  # a traceback with locals tells no key
        return f"Sealer({self.aid!r})"


def fingerprint(spki: bytes) -> str:
    """The short name of a key: the first 16 hex of SHA-256 of its SPKI."""
    return hashlib.sha256(spki).hexdigest()[:16]


def opened(envelope: dict[str, Any], aid: str, scalar: bytes, signer: bytes) -> Any:
    """What an envelope says to a hosted AID; None where it has no row in it.

    Raises:
        Exception: it is not as its sender made it, in whatever way the library noticed.
    """
    from aun_core.v2.e2ee.decrypt import decrypt_message  # noqa: PLC0415 - see the module

    return decrypt_message(envelope, aid, HOSTED_DEVICE, scalar, None, signer)


def sealed_direct(
    sender: Sealer, targets: list[Target], payload: dict[str, Any], message_id: str, at_ms: int
) -> dict[str, Any]:
    """An envelope between two; the receiver's targets stand first."""
    from aun_core.v2.e2ee.encrypt_p2p import encrypt_p2p_message  # noqa: PLC0415 - see the module

    to = {"targets": [target.in_words() for target in targets], "audit_recipients": []}
    return encrypt_p2p_message(
        sender.in_words(), to, payload, message_id=message_id, timestamp=at_ms
    )


def sealed_group(
    sender: Sealer,
    group_id: str,
    targets: list[Target],
    payload: dict[str, Any],
    *,
    epoch: int,
    state: dict[str, Any],
    message_id: str,
    at_ms: int,
) -> dict[str, Any]:
    """An envelope for a group."""
    from aun_core.v2.e2ee.encrypt_group import encrypt_group_message  # noqa: PLC0415

    return encrypt_group_message(
        sender.in_words(),
        group_id,
        epoch,
        [_prepared(target) for target in targets],
        payload,
        message_id=message_id,
        timestamp=at_ms,
        state_commitment=state,
    )


@lru_cache(KEPT)
def verifies(spki: bytes, signature: bytes, message: bytes) -> bool:
    """Whether a raw signature (r and s, 64 bytes) is of `message` by this key."""
    from aun_core.v2.crypto.ecdsa import ecdsa_verify_raw  # noqa: PLC0415 - see the module

    return ecdsa_verify_raw(spki, signature, message)


def leaf(row: list[str]) -> bytes:
    """What a row of recipients counts as in the tree of its envelope."""
    from aun_core.v2.crypto.recipients import compute_leaf_hash  # noqa: PLC0415 - see the module

    return compute_leaf_hash(row)


def state_hash(group_id: str, version: int, snapshot: dict[str, Any]) -> str:
    """The commitment to a snapshot, whatever the order of what is in it."""
    from aun_core.v2.state.commitment import compute_state_commitment  # noqa: PLC0415

    return compute_state_commitment(group_id, version, snapshot)


@lru_cache(KEPT)
def _prepared(target: Target) -> Any:
    from aun_core.v2.e2ee.encrypt_group import prepare_group_target  # noqa: PLC0415

    return prepare_group_target(target.in_words())
