"""Whom an operator means by `[tenant/]login`."""

from sqlmodel import Session

from app.identity import tenants, users
from app.identity.models import Tenant, User
from app.operator.refusing import Refused


def tenant(session: Session, slug: str) -> Tenant:
    """The tenant with this short name; the only one where it is empty.

    Raises:
        Refused: there is none, or several and none was named.
    """
    found = tenants.by_slug(session, slug) if slug else tenants.only(session)
    if found is None:
        named = f"a tenant {slug}" if slug else "just one tenant: write tenant/login"
        raise Refused(f"There is not {named}.")
    return found


def user(session: Session, name: str) -> User:
    """The user of `login`, or of `tenant/login`.

    Raises:
        Refused: there is none.
    """
    slug, _, login = name.rpartition("/")
    where = tenant(session, slug)
    found = users.by_login(session, where.id, users.fold(login))
    if found is None:
        raise Refused(f"Nobody in {where.slug} has the login {login}.")
    return found
