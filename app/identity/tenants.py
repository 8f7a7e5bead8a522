"""Tenants: how one begins, is found, is suspended and works again."""

import re

from sqlmodel import Session, col, func, select

from app.identity import epochs, facts, orgs, roles, stops
from app.identity.errors import NotUsableNow
from app.identity.models import Org, Tenant, TenantStatus
from app.kernel import clock, ids
from app.kernel.db import Work
from app.kernel.errors import FieldError, Invalid
from app.kernel.i18n import N_

SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


def create(work: Work, *, slug: str, name: str, locale: str = "en") -> tuple[Tenant, Org]:
    """A new tenant with its root organisation and the roles that ship.

    Raises:
        Invalid: the slug is taken, or is none.
    """
    if not SLUG.fullmatch(slug):
        raise Invalid(
            FieldError("slug", N_("Use small letters, digits and hyphens, up to 63 characters."))
        )
    if by_slug(work.session, slug):
        raise Invalid(FieldError("slug", N_("This short name is taken.")))
    tenant = Tenant(
        id=ids.ulid(),
        slug=slug,
        name=name,
        locale=locale,
        created_at=clock.now(),
    )
    work.session.add(tenant)
    work.session.flush()
    root = orgs.make_root(work, tenant.id, name)
    roles.make_builtin(work, tenant.id)
    facts.record(
        work,
        "identity.tenant.create",
        None,
        tenant_id=tenant.id,
        target=("tenant", tenant.id),
        changes={"slug": (None, slug), "name": (None, name)},
    )
    return tenant, root


def suspend(work: Work, tenant: Tenant) -> None:
    """Stop everything of a tenant at once (an operator's act).

    Raises:
        NotUsableNow: it is not active.
    """
    _change(work, tenant, TenantStatus.ACTIVE, TenantStatus.SUSPENDED, "identity.tenant.suspend")
    stops.end_tenant(work, tenant)


def resume(work: Work, tenant: Tenant) -> None:
    """Let a suspended tenant work again; sessions and tokens of before stay as they ended.

    Raises:
        NotUsableNow: it is not suspended.
    """
    _change(work, tenant, TenantStatus.SUSPENDED, TenantStatus.ACTIVE, "identity.tenant.resume")
    epochs.raise_for_tenant(work, tenant.id, "tenant_resumed", ends=False)


def by_slug(session: Session, slug: str) -> Tenant | None:
    """The tenant with this short name, whatever its status."""
    return session.exec(select(Tenant).where(Tenant.slug == slug)).first()


def count(session: Session) -> int:
    """How many tenants there are."""
    return session.exec(select(func.count()).select_from(Tenant)).one()


def only(session: Session) -> Tenant | None:
    """The tenant of a deployment that has just one; None when there are several, or none."""
    found = session.exec(select(Tenant).order_by(col(Tenant.created_at)).limit(2)).all()
    return found[0] if len(found) == 1 else None


def _change(work: Work, tenant: Tenant, old: TenantStatus, new: TenantStatus, action: str) -> None:
    if tenant.status != old:
        raise NotUsableNow(state=tenant.status)
    tenant.status = new
    work.session.add(tenant)
    facts.record(
        work,
        action,
        None,
        tenant_id=tenant.id,
        target=("tenant", tenant.id),
        changes={"status": (old.value, new.value)},
    )
