"""Codes that let their holders in: secrets, found by digest and shown to administrators alone."""

import base64
import hmac
from collections.abc import Sequence
from datetime import timedelta

from sqlmodel import Session, col, select

from app.aun.caller import Caller
from app.aun.errors import BadParams, GroupInactive
from app.aun.group_models import Group, InviteCode
from app.aun.groups import changes
from app.aun.groups.refusals import BadCode
from app.kernel import clock, ids, keyring, sealing
from app.kernel.db import Work

RANDOM_BYTES = 10  # 16 characters
SHORTEST, LONGEST = 10, 64
LIVES = timedelta(days=7)
LONGEST_LIFE = timedelta(days=365)
MOST_USES = 10_000
RING = "aun_invite_code"  # what digests are made with


def make(
    work: Work, caller: Caller, group: Group, text: str | None, max_uses: int, lives: timedelta
) -> tuple[InviteCode, str]:
    """A new code of a group whose row is locked, and its text.

    Raises:
        BadParams: the text that was asked for will not do.
        GroupInactive: somebody uses it already.
    """
    code = _folded(text) if text else f"ic-{_random()}"
    if not SHORTEST <= len(code) <= LONGEST or not code.isprintable() or not code.isascii():
        raise BadParams("a code has 10 to 64 plain characters")
    if _candidates(work, caller.tenant_id, code):
        raise GroupInactive("invite code is taken")
    now = clock.now()
    made = InviteCode(
        tenant_id=group.tenant_id,
        digest=_digests(work, caller.tenant_id, code)[0],
        code_sealed="",
        group_id=group.id,
        max_uses=max_uses,
        created_by=caller.aid,
        created_at=now,
        expires_at=now + lives,
    )
    made.code_sealed = base64.b64encode(sealing.seal(code.encode(), _label(made))).decode()
    work.session.add(made)
    changes.note(work, caller, group, "invite_code_created")
    return made, code


def good(work: Work, tenant_id: str, text: str) -> InviteCode:
    """A code that works now.

    Raises:
        BadCode: there is none; why not looks alike, and takes as long.
    """
    now = clock.now()
    for found in _candidates(work, tenant_id, _folded(text)):
        is_live = found.revoked_at is None and found.expires_at > now
        if is_live and found.used_count < found.max_uses:
            return found
    raise BadCode


def use(work: Work, found: InviteCode) -> None:
    """Count one use; the row of its group is locked."""
    found.used_count += 1
    work.session.add(found)


def of_group(session: Session, group: Group) -> Sequence[tuple[InviteCode, str]]:
    """Every code of a group with its text, the newest first."""
    query = (
        select(InviteCode)
        .where(InviteCode.tenant_id == group.tenant_id, InviteCode.group_id == group.id)
        .order_by(col(InviteCode.created_at).desc(), col(InviteCode.digest))
    )
    return [(found, text_of(found)) for found in session.exec(query)]


def revoke(work: Work, caller: Caller, group: Group, text: str) -> tuple[InviteCode, str]:
    """End a code of a group whose row is locked.

    Raises:
        BadCode: the group has no such code.
    """
    code = _folded(text)
    for found in _candidates(work, caller.tenant_id, code):
        if found.group_id == group.id:
            if found.revoked_at is None:
                found.revoked_at = clock.now()
                work.session.add(found)
                changes.note(work, caller, group, "invite_code_revoked")
            return found, code
    raise BadCode


def text_of(found: InviteCode) -> str:
    """The code itself, unsealed."""
    return sealing.unseal(base64.b64decode(found.code_sealed), _label(found)).decode()


def _candidates(work: Work, tenant_id: str, code: str) -> list[InviteCode]:
    """The row a code names: looked up by a keyed digest, so no timing tells how close one was."""
    wanted = _digests(work, tenant_id, code)
    query = select(InviteCode).where(
        InviteCode.tenant_id == tenant_id, col(InviteCode.digest).in_(wanted)
    )
    return [
        found
        for found in work.session.exec(query)
        if hmac.compare_digest(text_of(found).encode(), code.encode())
    ]


def _digests(work: Work, tenant_id: str, code: str) -> list[str]:
    return [
        hmac.new(key, f"{tenant_id}:{code}".encode(), "sha256").hexdigest()
        for key in keyring.held(work, RING)
    ]


def _random() -> str:
    return base64.b32encode(sealing.new_key()[:RANDOM_BYTES]).decode().lower()


def _folded(text: str) -> str:
    return text.strip().lower()


def _label(found: InviteCode) -> str:
    return f"aun_invite_code:{found.tenant_id}:{ids.sha256(found.digest)}"
