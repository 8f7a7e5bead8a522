"""The first start: one link, printed once, makes the first tenant and its owner (SEC-42)."""

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import delete, update
from sqlmodel import Session, col, select

from app.identity import orgs, passwords, permissions, roles, tenants, users
from app.identity.errors import LinkInvalid
from app.identity.models import SetupLink, Tenant, User, UserStatus
from app.kernel import clock, ids
from app.kernel.db import Work

LIVES = timedelta(minutes=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstOwner:
    """What the setup page asks for; `argon2id` is the digest of the password."""

    tenant_name: str
    tenant_slug: str
    login: str
    display_name: str
    locale: str
    argon2id: str


def is_needed(session: Session) -> bool:
    """Whether there is no tenant yet, so that nobody could sign in."""
    return tenants.count(session) == 0


def make_link(work: Work) -> str | None:
    """A new setup secret, in place of those before; None once there is an owner."""
    if not is_needed(work.session):
        return None
    work.session.execute(delete(SetupLink))
    secret = ids.random_token()
    work.session.add(SetupLink(secret_sha256=ids.sha256(secret), expires_at=clock.now() + LIVES))
    return secret


def check(session: Session, secret: str) -> None:
    """Whether the link can be used; looking uses nothing up.

    Raises:
        LinkInvalid: used, too old or never made.
    """
    query = select(SetupLink).where(
        SetupLink.secret_sha256 == ids.sha256(secret),
        col(SetupLink.used_at).is_(None),
        SetupLink.expires_at > clock.now(),
    )
    if session.exec(query).first() is None or not is_needed(session):
        raise LinkInvalid


def complete(work: Work, secret: str, owner: FirstOwner) -> tuple[Tenant, User]:
    """Use the link up, and make the first tenant with its owner.

    Raises:
        LinkInvalid: as in `check`; of two at once, one gets it.
        Invalid: slug or login will not do.
    """
    # two servers that start together print a link each: whoever holds all of them goes first
    work.session.exec(select(SetupLink).order_by(SetupLink.secret_sha256).with_for_update()).all()
    taken = work.session.execute(
        update(SetupLink)
        .where(col(SetupLink.secret_sha256) == ids.sha256(secret))
        .where(col(SetupLink.used_at).is_(None), col(SetupLink.expires_at) > clock.now())
        .values(used_at=clock.now())
    )
    if taken.rowcount != 1 or not is_needed(work.session):  # type: ignore[attr-defined]
        raise LinkInvalid
    tenant, root = tenants.create(
        work, slug=owner.tenant_slug, name=owner.tenant_name, locale=owner.locale
    )
    user = users.create(
        work,
        None,
        root,
        login=owner.login,
        display_name=owner.display_name,
        status=UserStatus.ACTIVE,
    )
    user.locale = owner.locale
    passwords.keep(work, user, owner.argon2id)
    owner_role = roles.by_code(work.session, tenant.id, roles.OWNER)
    if owner_role is not None:
        roles.assign(work, None, user, owner_role, orgs.root(work.session, tenant.id))
    return tenant, user


def declare(work: Work) -> None:
    """Write down what exists to be permitted, and bring shipped roles up to date; at each start."""
    permissions.write(work, *permissions.declared())
    work.session.flush()
    for tenant_id in work.session.exec(select(Tenant.id)).all():
        roles.sync_builtin(work, tenant_id)
