"""What a person's roles give them, whatever their status: for who may act on whose account.

Whoever can hand out a sign-in link for somebody could become them, so nobody does that for people
who may more than themselves.
"""

from sqlalchemy import or_, select
from sqlmodel import Session, col

from app.identity.errors import BeyondYourRights
from app.identity.models import DataScope, Grant, RoleAssignment, User
from app.kernel import clock
from app.kernel.i18n import N_


def granted_to(session: Session, user: User) -> tuple[frozenset[str], frozenset[str]]:
    """Permissions of the live assignments of `user`: all, and those that reach everything."""
    query = (
        select(col(Grant.permission), col(Grant.data_scope))
        .join(
            RoleAssignment,
            (col(RoleAssignment.tenant_id) == Grant.tenant_id)
            & (col(RoleAssignment.role_id) == Grant.role_id),
        )
        .where(
            col(RoleAssignment.tenant_id) == user.tenant_id,
            col(RoleAssignment.user_id) == user.id,
            or_(col(RoleAssignment.ends_at).is_(None), col(RoleAssignment.ends_at) > clock.now()),
        )
    )
    rows = session.execute(query).all()
    return (
        frozenset(permission for permission, _ in rows),
        frozenset(permission for permission, scope in rows if scope == DataScope.ALL),
    )


def check_is_within(
    session: Session, user: User, held: frozenset[str], held_everywhere: frozenset[str]
) -> None:
    """Return if somebody who holds `held` may hand out a link to the account of `user`.

    Raises:
        MoreThanYours: the account can do more.
    """
    granted, everywhere = granted_to(session, user)
    if not (granted <= held and everywhere <= held_everywhere):
        raise MoreThanYours


class MoreThanYours(BeyondYourRights):
    """An account that can do more is not handed out."""

    says = N_("This person may do things that you may not, so you cannot hand out their sign-in.")
