"""Browser sessions: rows found by the digest of a cookie's secret; each of them is a person."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import update
from sqlmodel import Session, col, or_, select

from app.identity import facts, throttle
from app.identity.facts import AccessChanged
from app.identity.models import BrowserSession, Tenant, TenantStatus, User, UserStatus
from app.identity.principal import Channel, Principal
from app.kernel import clock, ids
from app.kernel.db import Work
from app.kernel.errors import NotFound

IDLE = timedelta(hours=8)
LONGEST = timedelta(days=7)
SEEN_EVERY = timedelta(minutes=1)  # how often being there is written down
OVERLAP = timedelta(seconds=10)  # requests on their way while a new epoch changes the secret
FRESH = timedelta(minutes=5)  # SEC-38


@dataclass(frozen=True, slots=True)
class Browser:
    """What a request says about where it comes from."""

    ip_prefix: str
    user_agent: str

    @classmethod
    def of(cls, address: str, user_agent: str) -> "Browser":
        """From a peer's address and its `User-Agent`."""
        return cls(throttle.prefix_of(address), user_agent[:500])


@dataclass(frozen=True, slots=True)
class Signed:
    """A live session with its user and tenant."""

    session: BrowserSession
    user: User
    tenant: Tenant

    @property
    def is_fresh(self) -> bool:
        """Whether the person proved who they are within the last five minutes."""
        return clock.now() - self.session.auth_time <= FRESH

    @property
    def has_new_epoch(self) -> bool:
        """Whether rights changed since the secret was made, so that it has to rotate."""
        return self.session.authz_epoch != self.user.authz_epoch

    @property
    def is_due_to_be_seen(self) -> bool:
        """Whether its last sign of life is old enough to be written again."""
        return clock.now() - self.session.last_seen_at >= SEEN_EVERY


def start(work: Work, user: User, amr: Sequence[str], browser: Browser) -> str:
    """Begin a session of `user`, who just proved who they are; returns the cookie's secret."""
    secret = ids.secret(user.tenant_id)
    now = clock.now()
    row = BrowserSession(
        tenant_id=user.tenant_id,
        id=ids.ulid(),
        user_id=user.id,
        secret_sha256=ids.sha256(secret),
        auth_time=now,
        amr=list(amr),
        authz_epoch=user.authz_epoch,
        created_at=now,
        last_seen_at=now,
        idle_until=now + IDLE,
        ends_at=now + LONGEST,
        ip_prefix=browser.ip_prefix,
        user_agent_sha256=ids.sha256(browser.user_agent),
        device=device_of(browser.user_agent),
    )
    work.session.add(row)
    work.session.flush()
    facts.record(
        work,
        "identity.session.start",
        _principal(row, Channel.CONSOLE),
        target=("session", row.id),
        details={"amr": list(amr)},
    )
    return secret


def find(session: Session, secret: str) -> Signed | None:
    """The live session a cookie belongs to; None for every other one, whatever the reason."""
    tenant_id = ids.tenant_of(secret)
    if tenant_id is None:
        return None
    now, sha256 = clock.now(), ids.sha256(secret)
    query = (
        select(BrowserSession, User, Tenant)
        .where(BrowserSession.tenant_id == tenant_id)
        .where(
            or_(
                BrowserSession.secret_sha256 == sha256,
                (col(BrowserSession.previous_sha256) == sha256)
                & (col(BrowserSession.previous_until) > now),
            )
        )
        .where(col(BrowserSession.revoked_at).is_(None))
        .where(BrowserSession.idle_until > now, BrowserSession.ends_at > now)
        .where(User.tenant_id == BrowserSession.tenant_id, User.id == BrowserSession.user_id)
        .where(User.status == UserStatus.ACTIVE)
        .where(Tenant.id == BrowserSession.tenant_id, Tenant.status == TenantStatus.ACTIVE)
    )
    found = session.exec(query).first()
    return Signed(*found) if found else None


def person(signed: Signed, channel: Channel = Channel.CONSOLE) -> Principal:
    """The person of a live session. No other function makes one (SEC-29)."""
    return _principal(signed.session, channel, signed.user.authz_epoch)


def requester(
    session: Session, tenant_id: str, user_id: str, session_id: str | None
) -> Principal | None:
    """The person who asked for something that the server now does for them, as they stand now.

    Their browser session may have ended since; it is only named. None where the user is not active.
    """
    query = select(User.authz_epoch).where(
        User.tenant_id == tenant_id, User.id == user_id, User.status == UserStatus.ACTIVE
    )
    epoch = session.exec(query).first()
    if epoch is None:
        return None
    return Principal.person(
        tenant_id=tenant_id,
        user_id=user_id,
        session_id=session_id or "",
        epoch=epoch,
        channel=Channel.CONSOLE,
    )


def seen(work: Work, tenant_id: str, session_id: str) -> None:
    """The person is there: the idle time starts again."""
    now = clock.now()
    work.session.execute(
        update(BrowserSession)
        .where(col(BrowserSession.tenant_id) == tenant_id, col(BrowserSession.id) == session_id)
        .where(col(BrowserSession.revoked_at).is_(None))
        .values(last_seen_at=now, idle_until=now + IDLE)
    )


def follow_epoch(work: Work, signed: Signed, secret: str) -> str | None:
    """A new secret at the first request under a new epoch; None where another request had it.

    The old one still opens the session for ten seconds, for requests that are on their way.
    """
    row = signed.session
    made = ids.secret(row.tenant_id)
    taken = work.session.execute(
        update(BrowserSession)
        .where(col(BrowserSession.tenant_id) == row.tenant_id, col(BrowserSession.id) == row.id)
        .where(col(BrowserSession.secret_sha256) == ids.sha256(secret))
        .where(col(BrowserSession.authz_epoch) != signed.user.authz_epoch)
        .values(
            secret_sha256=ids.sha256(made),
            previous_sha256=ids.sha256(secret),
            previous_until=clock.now() + OVERLAP,
            authz_epoch=signed.user.authz_epoch,
        )
    )
    return made if taken.rowcount == 1 else None  # type: ignore[attr-defined]


def step_up(work: Work, signed: Signed, amr: Sequence[str]) -> str:
    """The person proved again who they are; returns the new secret, the old one is dead.

    Raises:
        NotFound: the session ended meanwhile.
    """
    row = work.session.get(BrowserSession, (signed.session.tenant_id, signed.session.id))
    if row is None or row.revoked_at is not None:
        raise NotFound
    made = ids.secret(row.tenant_id)
    row.secret_sha256 = ids.sha256(made)
    row.previous_sha256 = row.previous_until = None
    row.auth_time = clock.now()
    row.amr = sorted({*row.amr, *amr})
    work.session.add(row)
    facts.record(
        work,
        "identity.session.step_up",
        person(signed),
        target=("session", row.id),
        details={"amr": list(amr)},
    )
    return made


def end(work: Work, actor: Principal, session_id: str, why: str) -> None:
    """End one session of the actor's own; its streams close.

    Raises:
        NotFound: it is not one of theirs, or ended already.
    """
    row = work.session.get(BrowserSession, (actor.tenant_id, session_id))
    if row is None or row.user_id != actor.user_id or row.revoked_at is not None:
        raise NotFound
    _end(work, actor, row, why)


def end_all(
    work: Work, actor: Principal | None, user: User, why: str, *, besides: str | None = None
) -> int:
    """End every session of a user but `besides`; returns how many."""
    rows = [row for row in of_user(work.session, user.tenant_id, user.id) if row.id != besides]
    for row in rows:
        _end(work, actor, row, why)
    return len(rows)


def of_user(session: Session, tenant_id: str, user_id: str) -> Sequence[BrowserSession]:
    """The live sessions of a user, the last seen first."""
    now = clock.now()
    query = (
        select(BrowserSession)
        .where(BrowserSession.tenant_id == tenant_id, BrowserSession.user_id == user_id)
        .where(col(BrowserSession.revoked_at).is_(None))
        .where(BrowserSession.idle_until > now, BrowserSession.ends_at > now)
        .order_by(col(BrowserSession.last_seen_at).desc(), col(BrowserSession.id))
    )
    return session.exec(query).all()


def is_live(session: Session, principal: Principal, now: datetime) -> bool:
    """Whether the session of a person still stands; for streams that look again (SEC-32)."""
    row = session.get(BrowserSession, (principal.tenant_id, principal.session_id))
    return (
        row is not None
        and row.revoked_at is None
        and row.ends_at > now
        and _is_active(session, row)
    )


def device_of(user_agent: str) -> str:
    """A browser and system in words, for the list of sessions: `Firefox on Linux`."""
    browser = next((name for name, mark in BROWSERS if re.search(mark, user_agent)), "Browser")
    system = next((name for name, mark in SYSTEMS if re.search(mark, user_agent)), "")
    return f"{browser} on {system}" if system else browser


BROWSERS = (
    ("Edge", r"Edg/"),
    ("Opera", r"OPR/"),
    ("Firefox", r"Firefox/"),
    ("Chrome", r"Chrome/|HeadlessChrome|CriOS/"),
    ("Safari", r"Version/\S+ .*Safari/"),
)
SYSTEMS = (
    ("Android", r"Android"),
    ("iOS", r"iPhone|iPad"),
    ("Windows", r"Windows"),
    ("macOS", r"Mac OS X"),
    ("Linux", r"Linux|X11"),
)


def _end(work: Work, actor: Principal | None, row: BrowserSession, why: str) -> None:
    row.revoked_at, row.revoked_why = clock.now(), why
    work.session.add(row)
    facts.record(
        work,
        "identity.session.end",
        actor,
        tenant_id=row.tenant_id,
        user_id=row.user_id,
        target=("session", row.id),
        reason=why,
    )
    work.announce(
        AccessChanged(
            tenant_id=row.tenant_id, user_id=row.user_id, session_id=row.id, ends=True, why=why
        )
    )


def _is_active(session: Session, row: BrowserSession) -> bool:
    user = session.get(User, (row.tenant_id, row.user_id))
    tenant = session.get(Tenant, row.tenant_id)
    return (
        user is not None
        and user.status == UserStatus.ACTIVE
        and tenant is not None
        and tenant.status == TenantStatus.ACTIVE
    )


def _principal(row: BrowserSession, channel: Channel, epoch: int | None = None) -> Principal:
    return Principal.person(
        tenant_id=row.tenant_id,
        user_id=row.user_id,
        session_id=row.id,
        epoch=row.authz_epoch if epoch is None else epoch,
        channel=channel,
    )
