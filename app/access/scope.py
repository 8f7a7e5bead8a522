"""Which records a permission reaches, and what a principal holds, asked of the database.

The door of this slice: the conditions themselves are made in `conditions.py`.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

from sqlalchemy import and_, literal
from sqlalchemy import select as sql_select
from sqlalchemy.orm import aliased
from sqlmodel import Session, SQLModel, col, func, select

from app.access import prepared
from app.access.conditions import Reach, declare, held, reaches, within
from app.identity.models import DataScope, Org
from app.identity.principal import Principal
from app.kernel import clock
from app.kernel.errors import NotFound, PermissionDenied

__all__ = [
    "Reach",
    "declare",
    "held",
    "may",
    "one",
    "organisations_reached",
    "permissions_of",
    "reachable",
    "reached",
    "reaches",
    "require",
    "tenant_wide",
    "tenant_wide_permissions",
    "within",
]

M = TypeVar("M", bound=SQLModel)


def one(session: Session, principal: Principal, permission: str, model: type[M], id: str) -> M:
    """The record of `model` with this id, if `permission` reaches it.

    Raises:
        PermissionDenied: the principal holds the permission nowhere.
        NotFound: there is none, or not for this principal; the two look alike (UI-26).
    """
    query = select(model).where(
        model.id == id,  # type: ignore[attr-defined]
        within(principal, permission, model),
    )
    found = session.exec(query).first()
    if found is None:
        require(session, principal, permission)
        raise NotFound
    return found


def reached(
    session: Session, principal: Principal, permission: str, model: type[SQLModel], id: str
) -> bool:
    """Whether `permission` reaches the record with this id: for what a page offers beside it."""
    query = select(literal(1)).where(
        model.id == id,  # type: ignore[attr-defined]
        within(principal, permission, model),
    )
    return session.exec(query).first() is not None


def reachable(
    session: Session, principal: Principal, permission: str, model: type[M]
) -> Sequence[M]:
    """Every record of `model` that `permission` reaches, unordered; for tables that stay small."""
    return session.exec(select(model).where(within(principal, permission, model))).all()


def require(session: Session, principal: Principal, permission: str) -> None:
    """Return if the principal holds `permission` somewhere.

    Raises:
        PermissionDenied: it does not.
    """
    if not may(session, principal, permission):
        raise PermissionDenied(permission=permission)


def may(session: Session, principal: Principal, permission: str) -> bool:
    """Whether the principal holds `permission` for any record at all."""
    return any(held.permission == permission for held in _holdings(session, principal))


def tenant_wide(session: Session, principal: Principal, permission: str) -> bool:
    """Whether `permission` reaches everything of the tenant."""
    return permission in tenant_wide_permissions(session, principal)


def require_tenant_wide(session: Session, principal: Principal, permission: str) -> None:
    """Return if `permission` reaches everything of the tenant: for what belongs to no organisation.

    Raises:
        PermissionDenied: the principal does not hold it at all.
        NotFound: it reaches a part; what is the whole tenant's does not exist for them.
    """
    require(session, principal, permission)
    if not tenant_wide(session, principal, permission):
        raise NotFound


def permissions_of(session: Session, principal: Principal) -> frozenset[str]:
    """Every permission the principal holds, for whichever records."""
    return frozenset(held.permission for held in _holdings(session, principal))


def tenant_wide_permissions(session: Session, principal: Principal) -> frozenset[str]:
    """Every permission that reaches everything of the principal's tenant."""
    return frozenset(
        held.permission
        for held in _holdings(session, principal)
        if held.data_scope == DataScope.ALL
    )


def organisations_reached(
    session: Session, principal: Principal, *, own: str
) -> dict[str, frozenset[str]]:
    """Permission to ids of the organisations whose records it reaches, short of the whole tenant.

    `own` stands among them where it reaches the user's own records.
    """
    found: dict[str, set[str]] = {}
    below: dict[str, frozenset[str]] = {}
    for permission, scope, org_id in _holdings(session, principal):
        match scope:
            case DataScope.SELF:
                found.setdefault(permission, set()).add(own)
            case DataScope.ORG:
                found.setdefault(permission, set()).add(org_id)
            case DataScope.ORG_AND_BELOW:
                if org_id not in below:
                    below[org_id] = _subtree(session, principal.tenant_id, org_id)
                found.setdefault(permission, set()).update(below[org_id])
    return {permission: frozenset(ids) for permission, ids in found.items()}


def _holdings(session: Session, principal: Principal) -> Sequence[Any]:
    """Permission, data scope and organisation of everything a principal holds now."""
    session.flush()  # what this transaction changed counts
    return (
        prepared.held()
        .run_with(session.connection(), prepared.values(principal, now=clock.now()))
        .all()
    )


def _subtree(session: Session, tenant_id: str, org_id: str) -> frozenset[str]:
    top = aliased(Org)
    query = (
        sql_select(col(Org.id))
        .join(top, and_(col(top.tenant_id) == Org.tenant_id, col(top.id) == org_id))
        .where(
            col(Org.tenant_id) == tenant_id,
            func.substr(Org.path, 1, func.length(top.path)) == top.path,
        )
    )
    return frozenset(session.scalars(query))
