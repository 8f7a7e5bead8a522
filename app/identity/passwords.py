"""Passwords: which ones do, argon2id digests, and a bounded place to compute them (SEC-40)."""

import asyncio
import unicodedata
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from sqlmodel import Session, col, select

from app.identity.models import Credential, CredentialKind, User
from app.kernel import clock, ids
from app.kernel.db import Work
from app.kernel.errors import Busy, FieldError, Invalid
from app.kernel.i18n import N_

SHORTEST = 10  # characters
LONGEST = 256  # bytes
AT_ONCE, WAITING = 2, 50  # a digest is a lever for others: 19 MiB and a tenth of a second each
COMMON = Path(__file__).with_name("common_passwords.txt")

_hasher = PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)
_threads = ThreadPoolExecutor(AT_ONCE, "argon2")
_taken = 0
_nobody = ""  # the digest an unknown login is compared with

T = TypeVar("T")


def check_new(password: str, personal: Iterable[str], field: str = "password") -> str:
    """A new password in the form that is hashed; `personal` are login, names and tenant.

    Raises:
        Invalid: it is too short, too long, common, or one of `personal`.
    """
    text = unicodedata.normalize("NFKC", password)
    if len(text) < SHORTEST:
        raise Invalid(FieldError(field, N_("Use at least 10 characters.")))
    if len(text.encode()) > LONGEST:
        raise Invalid(FieldError(field, N_("Use at most 256 bytes.")))
    folded = text.casefold()
    if folded in _common():
        raise Invalid(FieldError(field, N_("This is one of the most common passwords.")))
    if folded in {part.casefold() for part in personal if part}:
        raise Invalid(FieldError(field, N_("Do not use your name, login or tenant.")))
    return text


async def digest(password: str) -> str:
    """The argon2id digest of a password in the form `check_new` returned.

    Raises:
        Busy: fifty others wait already.
    """
    return await _in_turn(_hasher.hash, password)


async def is_right(stored: str | None, password: str) -> bool:
    """Whether `password` is the one `stored` was made of; without a digest it takes as long.

    Raises:
        Busy: fifty others wait already.
    """
    text = unicodedata.normalize("NFKC", password)[:LONGEST]
    right = await _in_turn(_verify, stored or await _dummy(), text)
    return right and stored is not None


def is_outdated(stored: str) -> bool:
    """Whether a digest was made with other parameters than today's."""
    return _hasher.check_needs_rehash(stored)


def of_user(session: Session, user: User) -> Credential | None:
    """The password a user signs in with, if there is one."""
    query = select(Credential).where(
        Credential.tenant_id == user.tenant_id,
        Credential.user_id == user.id,
        Credential.kind == CredentialKind.PASSWORD,
        col(Credential.revoked_at).is_(None),
    )
    return session.exec(query).first()


def of_login(session: Session, tenant_id: str, login: str) -> Credential | None:
    """The password of whoever has this (normal) login, if anybody has."""
    query = (
        select(Credential)
        .where(Credential.tenant_id == tenant_id, Credential.kind == CredentialKind.PASSWORD)
        .where(col(Credential.revoked_at).is_(None))
        .where(User.tenant_id == Credential.tenant_id, User.id == Credential.user_id)
        .where(User.login == login)
    )
    return session.exec(query).first()


def keep(work: Work, user: User, argon2id: str) -> None:
    """Make this digest the user's password; the one before counts no more."""
    whose = select(User.id).where(User.tenant_id == user.tenant_id, User.id == user.id)
    work.session.exec(whose.with_for_update()).one()  # a change and a reset at once: one after one
    before = of_user(work.session, user)
    if before is not None:
        before.revoked_at = clock.now()
        work.session.add(before)
    work.session.add(
        Credential(
            tenant_id=user.tenant_id,
            id=ids.ulid(),
            user_id=user.id,
            kind=CredentialKind.PASSWORD,
            argon2id=argon2id,
            created_at=clock.now(),
        )
    )


async def _in_turn(compute: Callable[..., T], *args: str) -> T:
    global _taken
    if _taken >= AT_ONCE + WAITING:
        raise Busy
    _taken += 1
    try:
        return await asyncio.get_running_loop().run_in_executor(_threads, compute, *args)
    finally:
        _taken -= 1


async def _dummy() -> str:
    global _nobody
    _nobody = _nobody or await _in_turn(_hasher.hash, ids.random_token())
    return _nobody


def _verify(stored: str, password: str) -> bool:
    try:
        return _hasher.verify(stored, password)
    except (VerificationError, InvalidHashError):
        return False


@cache
def _common() -> frozenset[str]:
    return frozenset(COMMON.read_text("utf-8").split())
