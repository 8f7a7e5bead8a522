"""Why a permission reaches a record, or which layer stops it: for the page an administrator reads.

It goes through the layers one by one, in Python; a test holds it to the filter of `scope.py`.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from sqlalchemy import select
from sqlmodel import Session, col

from app.identity.models import (
    DataScope,
    Grant,
    Org,
    Permission,
    Role,
    RoleAssignment,
    Tenant,
    TenantStatus,
    User,
    UserStatus,
)
from app.identity.principal import Principal
from app.kernel import clock
from app.kernel.i18n import N_


class Layer(StrEnum):
    """What decides, in this order."""

    TENANT = "tenant"
    USER = "user"
    PERMISSION = "permission"
    DATA_SCOPE = "data_scope"
    ORGANISATION = "organisation"


@dataclass(frozen=True, slots=True)
class Step:
    """One layer's answer. `says` is English source text with `%(fact)s` in it."""

    layer: Layer
    ok: bool
    says: str
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Whether, and why: each layer in turn, up to the one that stops it.

    Attributes:
        stopped_by: the layer that says no; None where the record is reached.
        roles: codes of the roles that give it.
    """

    steps: tuple[Step, ...]
    roles: tuple[str, ...] = ()

    @property
    def is_allowed(self) -> bool:
        """Whether the record is reached."""
        return self.stopped_by is None

    @property
    def stopped_by(self) -> Layer | None:
        """The layer that says no."""
        return next((step.layer for step in self.steps if not step.ok), None)


def explain(
    session: Session,
    principal: Principal,
    permission: str,
    owner_id: str | None,
    org_id: str | None,
) -> Explanation:
    """Why `permission` reaches, or not, a record of this owner and organisation."""
    steps = [*_standing(session, principal)]
    if all(step.ok for step in steps):
        granted, step = _granted(session, principal, permission)
        steps.append(step)
        if step.ok:
            reached = [
                held for held in granted if _covers(session, principal, held, owner_id, org_id)
            ]
            steps += _scopes(granted, reached)
            return Explanation(tuple(steps), tuple(sorted({held.role for held in reached})))
    stopped = next(place for place, step in enumerate(steps) if not step.ok)
    return Explanation(tuple(steps[: stopped + 1]))


@dataclass(frozen=True, slots=True)
class _Held:
    role: str
    scope: str
    org_id: str
    org_name: str
    org_path: str


def _standing(session: Session, principal: Principal) -> tuple[Step, Step]:
    tenant = session.get(Tenant, principal.tenant_id)
    user = session.get(User, (principal.tenant_id, principal.user_id))
    tenant_ok = tenant is not None and tenant.status == TenantStatus.ACTIVE
    user_ok = user is not None and user.status == UserStatus.ACTIVE
    return (
        Step(
            Layer.TENANT,
            tenant_ok,
            N_("The workspace is active.") if tenant_ok else N_("The workspace is not active."),
        ),
        Step(
            Layer.USER,
            user_ok,
            N_("The account is active.") if user_ok else N_("The account is not active."),
        ),
    )


def _granted(session: Session, principal: Principal, permission: str) -> tuple[list[_Held], Step]:
    facts = {"permission": permission}
    if session.get(Permission, permission) is None:
        return [], Step(
            Layer.PERMISSION, False, N_("Nothing declares the permission %(permission)s."), facts
        )
    query = (
        select(
            col(Role.code),
            col(Grant.data_scope),
            col(Org.id),
            col(Org.name),
            col(Org.path),
            col(RoleAssignment.ends_at),
        )
        .select_from(RoleAssignment)
        .join(
            Grant,
            (col(Grant.tenant_id) == RoleAssignment.tenant_id)
            & (col(Grant.role_id) == RoleAssignment.role_id),
        )
        .join(
            Role,
            (col(Role.tenant_id) == RoleAssignment.tenant_id)
            & (col(Role.id) == RoleAssignment.role_id),
        )
        .join(
            Org,
            (col(Org.tenant_id) == RoleAssignment.tenant_id)
            & (col(Org.id) == RoleAssignment.org_id),
        )
        .where(
            col(RoleAssignment.tenant_id) == principal.tenant_id,
            col(RoleAssignment.user_id) == principal.user_id,
            col(Grant.permission) == permission,
        )
        .order_by(col(Role.code), col(Org.path))
    )
    now = clock.now()
    rows = session.execute(query).all()
    live = [
        _Held(role, scope, org_id, name, path)
        for role, scope, org_id, name, path, ends_at in rows
        if ends_at is None or ends_at > now
    ]
    if live:
        facts["roles"] = ", ".join(sorted({held.role for held in live}))
        says = N_("%(permission)s is given by: %(roles)s.")
    elif rows:
        says = N_("Every assignment that gave %(permission)s has ended.")
    else:
        says = N_("No role of this person gives %(permission)s.")
    return live, Step(Layer.PERMISSION, bool(live), says, facts)


def _covers(
    session: Session, principal: Principal, held: _Held, owner_id: str | None, org_id: str | None
) -> bool:
    match held.scope:
        case DataScope.ALL:
            return True
        case DataScope.SELF:
            return owner_id is not None and owner_id == principal.user_id
        case DataScope.ORG:
            return org_id is not None and org_id == held.org_id
        case DataScope.ORG_AND_BELOW:
            org = session.get(Org, (principal.tenant_id, org_id)) if org_id else None
            return org is not None and org.path.startswith(held.org_path)
    return False


def _scopes(granted: list[_Held], reached: list[_Held]) -> list[Step]:
    scopes = {held.scope for held in granted}
    facts = {"scopes": ", ".join(sorted(scopes))}
    known = scopes & {scope.value for scope in DataScope}
    if not known:
        says = N_("The data scope %(scopes)s is unknown, so it reaches nothing.")
        return [Step(Layer.DATA_SCOPE, False, says, facts)]
    if not reached and known == {DataScope.SELF}:
        says = N_("It reaches this person's own records only, and this is not one.")
        return [Step(Layer.DATA_SCOPE, False, says, facts)]
    scope = Step(Layer.DATA_SCOPE, True, N_("The data scope is: %(scopes)s."), facts)
    chosen = reached or granted
    facts = {"orgs": ", ".join(sorted({held.org_name for held in chosen}))}
    if reached:
        says = N_("The record lies within reach of the assignment at: %(orgs)s.")
    else:
        says = N_("The record lies outside what is reached from: %(orgs)s.")
    return [scope, Step(Layer.ORGANISATION, bool(reached), says, facts)]
