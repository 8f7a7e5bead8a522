"""One-time links: an invitation, or the reset of a password; shown once, used once."""

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import update
from sqlmodel import Session, col, select

from app.identity import facts
from app.identity.errors import LinkInvalid, NotUsableNow
from app.identity.models import (
    LinkPurpose,
    OneTimeLink,
    Tenant,
    TenantStatus,
    User,
    UserStatus,
)
from app.identity.principal import Principal
from app.kernel import clock, ids
from app.kernel.db import Work

LIVES = {LinkPurpose.INVITE: timedelta(days=7), LinkPurpose.RESET: timedelta(hours=1)}


@dataclass(frozen=True, slots=True)
class Opened:
    """A usable link with its user and tenant."""

    link: OneTimeLink
    user: User
    tenant: Tenant


def make(work: Work, actor: Principal | None, user: User, purpose: LinkPurpose) -> str:
    """A new link for `user`; returns its secret, which is shown once. Older ones end.

    Raises:
        NotUsableNow: the user is disabled, or an invitation is for somebody who has signed in.
    """
    if user.status == UserStatus.DISABLED:
        raise NotUsableNow(state=user.status)
    if purpose == LinkPurpose.INVITE and user.status != UserStatus.INVITED:
        raise NotUsableNow(state=user.status)
    now = clock.now()
    whose = select(User.id).where(User.tenant_id == user.tenant_id, User.id == user.id)
    work.session.exec(whose.with_for_update()).one()  # two at once: the later ends the earlier
    work.session.execute(
        update(OneTimeLink)
        .where(col(OneTimeLink.tenant_id) == user.tenant_id, col(OneTimeLink.user_id) == user.id)
        .where(col(OneTimeLink.used_at).is_(None))
        .values(used_at=now)
    )
    secret = ids.secret(user.tenant_id)
    work.session.add(
        OneTimeLink(
            tenant_id=user.tenant_id,
            id=ids.ulid(),
            purpose=purpose,
            user_id=user.id,
            secret_sha256=ids.sha256(secret),
            created_by_session=actor.session_id if actor else None,
            expires_at=now + LIVES[purpose],
        )
    )
    facts.record(
        work,
        f"identity.link.{purpose}",
        actor,
        tenant_id=user.tenant_id,
        target=("user", user.id),
    )
    return secret


def read(session: Session, secret: str) -> Opened:
    """The link of a secret; looking at it uses nothing up.

    Raises:
        LinkInvalid: used, too old, never made, or for somebody who cannot sign in.
    """
    tenant_id = ids.tenant_of(secret)
    query = (
        select(OneTimeLink, User, Tenant)
        .where(OneTimeLink.tenant_id == tenant_id)
        .where(OneTimeLink.secret_sha256 == ids.sha256(secret))
        .where(col(OneTimeLink.used_at).is_(None), OneTimeLink.expires_at > clock.now())
        .where(User.tenant_id == OneTimeLink.tenant_id, User.id == OneTimeLink.user_id)
        .where(User.status != UserStatus.DISABLED)
        .where(Tenant.id == OneTimeLink.tenant_id, Tenant.status == TenantStatus.ACTIVE)
    )
    found = session.exec(query).first() if tenant_id else None
    if found is None:
        raise LinkInvalid
    return Opened(*found)


def take(work: Work, secret: str) -> Opened:
    """Use the link up; of two at once, one gets it.

    Raises:
        LinkInvalid: as in `read`.
    """
    opened = read(work.session, secret)
    taken = work.session.execute(
        update(OneTimeLink)
        .where(col(OneTimeLink.tenant_id) == opened.link.tenant_id)
        .where(col(OneTimeLink.id) == opened.link.id, col(OneTimeLink.used_at).is_(None))
        .values(used_at=clock.now())
    )
    if taken.rowcount != 1:  # type: ignore[attr-defined]
        raise LinkInvalid
    return opened
