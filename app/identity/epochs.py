"""Authorization epochs: a number of each user that goes up when rights change (SEC-9)."""

from collections.abc import Iterable

from sqlalchemy import update
from sqlmodel import col

from app.identity.facts import AccessChanged
from app.identity.models import User
from app.kernel.db import Work


def raise_for(work: Work, tenant_id: str, user_ids: Iterable[str], why: str) -> None:
    """Rights of these users changed: tokens of the old epoch end, streams look again."""
    wanted = sorted(set(user_ids))
    if not wanted:
        return
    work.session.flush()
    work.session.execute(
        update(User)
        .where(col(User.tenant_id) == tenant_id, col(User.id).in_(wanted))
        .values(authz_epoch=col(User.authz_epoch) + 1)
    )
    for user_id in wanted:
        work.announce(AccessChanged(tenant_id=tenant_id, user_id=user_id, ends=False, why=why))


def raise_for_tenant(work: Work, tenant_id: str, why: str, *, ends: bool) -> None:
    """The same for everyone of a tenant."""
    work.session.flush()
    work.session.execute(
        update(User)
        .where(col(User.tenant_id) == tenant_id)
        .values(authz_epoch=col(User.authz_epoch) + 1)
    )
    work.announce(AccessChanged(tenant_id=tenant_id, ends=ends, why=why))
