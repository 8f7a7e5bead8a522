"""Signing in with a password: one answer to all that is wrong, and a wait that grows (SEC-41).

A try of an unknown tenant, of an unknown login or with a wrong password takes the same steps. The
digest is computed between two transactions, never inside one.
"""

import contextlib
import unicodedata
from dataclasses import dataclass

from sqlmodel import Session

from app.identity import facts, passwords, sessions, tenants, throttle, users
from app.identity.errors import SignInFailed
from app.identity.models import Credential, Tenant, TenantStatus, User, UserStatus
from app.identity.sessions import Browser, Signed
from app.kernel import clock, db, rates
from app.kernel.db import Work
from app.kernel.errors import NotFound

PASSWORD, PASSKEY, PROVIDER = "pwd", "passkey", "oidc"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What was typed; `tenant_slug` is empty where the page did not ask for it."""

    tenant_slug: str = ""
    login: str
    password: str


@dataclass(frozen=True, slots=True)
class Arrival:
    """The browser a session begins in: its network, its zone, and the session it has already."""

    browser: Browser
    time_zone: str = ""
    before: Signed | None = None


@dataclass(frozen=True, slots=True)
class _Account:
    """What a try is about, as far as it exists; `tenant_id` is empty for an unknown tenant."""

    tenant_id: str
    name: str
    user: User | None = None
    credential: Credential | None = None

    @property
    def can_sign_in(self) -> bool:
        return self.user is not None and self.user.status == UserStatus.ACTIVE

    @property
    def why_not(self) -> str:
        """What an auditor learns, and nobody else."""
        if self.user is None:
            return "unknown_login"
        if not self.can_sign_in:
            return f"user_{self.user.status}"
        return "wrong_password" if self.credential else "no_password"


async def with_password(attempt: Attempt, arrival: Arrival) -> str:
    """Begin a session; returns the cookie's secret.

    Raises:
        SignInFailed: tenant, login or password is wrong, or the person cannot sign in.
        TooMany: this account failed too often from this network.
        Busy: fifty others wait for a digest already.
    """
    network = arrival.browser.ip_prefix
    account = await db.read(_find, attempt, network)
    rates.of_process().hit("sign_in", account.tenant_id, account.name, network)
    stored = account.credential.argon2id if account.credential else None
    is_right = await passwords.is_right(stored, attempt.password)
    if not is_right or not account.can_sign_in:
        await db.transaction(_refuse, account, arrival.browser)
        raise SignInFailed
    better = await _rehashed(stored, attempt.password)
    secret = await db.transaction(_begin, account, better, arrival)
    rates.of_process().forget("sign_in", account.tenant_id, account.name, network)
    return secret


def begin(work: Work, tenant_id: str, user_id: str, how: str, arrival: Arrival) -> tuple[str, User]:
    """A new session of a person who proved who they are, in place of the browser's old one.

    Raises:
        SignInFailed: the person cannot sign in, or not any more.
    """
    tenant = work.session.get(Tenant, tenant_id)
    user = work.session.get(User, (tenant_id, user_id), with_for_update={"read": True})
    if (
        tenant is None
        or user is None
        or tenant.status != TenantStatus.ACTIVE
        or user.status != UserStatus.ACTIVE
    ):
        raise SignInFailed
    if arrival.before is not None:
        with contextlib.suppress(NotFound):  # it ended by itself meanwhile
            old = arrival.before
            sessions.end(work, sessions.person(old), old.session.id, "signed_in_again")
    if user.time_zone is None and arrival.time_zone in users.time_zones():
        user.time_zone = arrival.time_zone
        work.session.add(user)
    return sessions.start(work, user, [how], arrival.browser), user


def asks_for_tenant(session: Session) -> bool:
    """Whether the page has to ask which tenant: not while there is one."""
    return tenants.only(session) is None


def _find(session: Session, attempt: Attempt, network: str) -> _Account:
    slug, login = attempt.tenant_slug.strip().lower(), users.fold(attempt.login)
    tenant = tenants.by_slug(session, slug) if slug else tenants.only(session)
    is_usable = tenant is not None and tenant.status == TenantStatus.ACTIVE
    tenant_id = tenant.id if tenant is not None and is_usable else ""
    account = _Account(  # asked for whatever there is, so that what is not there costs the same
        tenant_id,
        login if is_usable else f"{slug}/{login}",
        users.by_login(session, tenant_id, login),
        passwords.of_login(session, tenant_id, login),
    )
    throttle.check(session, account.tenant_id, account.name, network)
    return account


def _refuse(work: Work, account: _Account, browser: Browser) -> None:
    throttle.failed(work, account.tenant_id, account.name, browser.ip_prefix)
    facts.record(
        work,
        "identity.session.refused",
        None,
        tenant_id=account.tenant_id,
        user_id=account.user.id if account.user else None,
        target=("user", account.user.id) if account.user else None,
        outcome="refused",
        stage="authorize",
        reason=account.why_not,
        details={"network": browser.ip_prefix},
    )


def _begin(work: Work, account: _Account, better: str | None, arrival: Arrival) -> str:
    assert account.user is not None and account.credential is not None  # noqa: S101, PT018
    credential = work.session.get(
        Credential, (account.tenant_id, account.credential.id), with_for_update=True
    )
    if credential is None or credential.revoked_at is not None:  # changed while we computed
        raise SignInFailed
    credential.last_used_at = clock.now()
    credential.argon2id = better or credential.argon2id
    work.session.add(credential)
    throttle.succeeded(work, account.tenant_id, account.name, arrival.browser.ip_prefix)
    secret, _ = begin(work, account.tenant_id, account.user.id, PASSWORD, arrival)
    return secret


async def _rehashed(stored: str | None, password: str) -> str | None:
    """The digest with today's parameters, where the stored one has others."""
    if stored is None or not passwords.is_outdated(stored):
        return None
    return await passwords.digest(unicodedata.normalize("NFKC", password))
