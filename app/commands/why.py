"""Why a command is not in somebody's catalogue: every layer that takes it out (CMD-22).

It goes through the layers in Python, one by one; a test holds it to the query of `catalogue.py`.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlmodel import Session, col, select

from app.access import entitlements, scope
from app.commands import catalogue, publishing
from app.commands.models import VersionStatus
from app.commands.stored import StoredDefinition
from app.identity.models import (
    DataScope,
    Grant,
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
    """What a command has to pass to be in a catalogue, in this order."""

    PUBLISHED = "published"
    FEATURE = "feature"
    ACCOUNT = "account"
    PERMISSION = "permission"
    SCOPE = "scope"
    DELEGATION = "delegation"


@dataclass(frozen=True, slots=True)
class Step:
    """One layer's answer. `says` is English source text with `%(fact)s` in it."""

    layer: Layer
    ok: bool
    says: str
    facts: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reasons:
    """Whether somebody sees a command, and every layer that says no."""

    code: str
    user: User
    steps: tuple[Step, ...]

    @property
    def is_visible(self) -> bool:
        """Whether it is in the person's catalogue."""
        return not self.removed_by

    @property
    def removed_by(self) -> tuple[Layer, ...]:
        """The layers that take it out."""
        return tuple(step.layer for step in self.steps if not step.ok)


def why(session: Session, administrator: Principal, user_id: str, code: str) -> Reasons:
    """What each layer says of `code` for a person.

    Raises:
        PermissionDenied: the administrator may not look at definitions.
        NotFound: the person is out of reach, or the tenant never had the command.
    """
    scope.require(session, administrator, publishing.READ)
    user = scope.one(session, administrator, "identity.user.read", User, user_id)
    standing = publishing.one(session, administrator.tenant_id, code)
    definition = publishing.definition_of(standing.newest)
    steps = (
        _published(standing),
        _entitled(session, definition, user.tenant_id),
        _account(session, user),
        *_granted(session, definition, user),
    )
    return Reasons(code, user, steps)


def hidden(session: Session, principal: Principal) -> Counter[Layer]:
    """How many commands in force the principal does not see, by the first layer that says no."""
    seen = catalogue.of(session, principal).by_code
    held = scope.permissions_of(session, principal)
    features = entitlements.features_of(session, principal.tenant_id)
    granted = set(_granted_anyhow(session, principal.tenant_id, principal.user_id))
    return Counter(
        _first(each.definition, principal, held, granted, features)
        for each in catalogue.published(session, principal.tenant_id)
        if each.code not in seen
    )


def _first(
    definition: StoredDefinition,
    principal: Principal,
    held: frozenset[str],
    granted: set[str],
    features: frozenset[str],
) -> Layer:
    if definition.feature is not None and definition.feature not in features:
        return Layer.FEATURE
    if definition.permission not in held:
        return Layer.SCOPE if definition.permission in granted else Layer.PERMISSION
    return Layer.DELEGATION if not principal.is_person else Layer.ACCOUNT


def _published(standing: publishing.Standing) -> Step:
    facts = {"version": standing.newest.version}
    if standing.newest.status == VersionStatus.PUBLISHED:
        return Step(Layer.PUBLISHED, True, N_("Version %(version)s is in force."), facts)
    if standing.newest.retired_by is None:
        says = N_("It is retired, because no pack declares it any more.")
    else:
        says = N_("An administrator retired it.")
    return Step(Layer.PUBLISHED, False, says, facts)


def _entitled(session: Session, definition: StoredDefinition, tenant_id: str) -> Step:
    facts = {"feature": definition.feature}
    if definition.feature is None:
        return Step(Layer.FEATURE, True, N_("It needs no feature."), facts)
    if entitlements.has_feature(session, tenant_id, definition.feature):
        says = N_("The workspace is entitled to the feature %(feature)s.")
        return Step(Layer.FEATURE, True, says, facts)
    says = N_("The workspace is not entitled to the feature %(feature)s now.")
    return Step(Layer.FEATURE, False, says, facts)


def _account(session: Session, user: User) -> Step:
    tenant = session.get(Tenant, user.tenant_id)
    if tenant is None or tenant.status != TenantStatus.ACTIVE:
        return Step(Layer.ACCOUNT, False, N_("The workspace is not active."), {})
    if user.status != UserStatus.ACTIVE:
        return Step(Layer.ACCOUNT, False, N_("The account is not active."), {})
    return Step(Layer.ACCOUNT, True, N_("The account is active."), {})


def _granted(session: Session, definition: StoredDefinition, user: User) -> Iterator[Step]:
    facts: dict[str, Any] = {"permission": definition.permission}
    if session.get(Permission, definition.permission) is None:
        says = N_("Nothing declares the permission %(permission)s.")
        yield Step(Layer.PERMISSION, False, says, facts)
        return
    rows = _grants(session, user, definition.permission)
    now = clock.now()
    live = [(role, reach) for role, reach, ends_at in rows if ends_at is None or ends_at > now]
    if not live:
        says = (
            N_("Every assignment that gave %(permission)s has ended.")
            if rows
            else N_("No role of this person gives %(permission)s.")
        )
        yield Step(Layer.PERMISSION, False, says, facts)
        return
    roles = ", ".join(sorted({role for role, _ in live}))
    says = N_("%(permission)s is given by: %(roles)s.")
    yield Step(Layer.PERMISSION, True, says, {**facts, "roles": roles})
    yield _reached({reach for _, reach in live})


def _reached(scopes: set[str]) -> Step:
    facts = {"scopes": ", ".join(sorted(scopes))}
    if scopes & {each.value for each in DataScope}:
        return Step(Layer.SCOPE, True, N_("The data scope is: %(scopes)s."), facts)
    says = N_("The data scope %(scopes)s is unknown, so it reaches nothing.")
    return Step(Layer.SCOPE, False, says, facts)


def _grants(session: Session, user: User, permission: str) -> list[tuple[str, str, Any]]:
    query = (
        select(Role.code, Grant.data_scope, RoleAssignment.ends_at)
        .where(RoleAssignment.tenant_id == user.tenant_id, RoleAssignment.user_id == user.id)
        .where(Grant.tenant_id == user.tenant_id, Grant.role_id == RoleAssignment.role_id)
        .where(Role.tenant_id == user.tenant_id, Role.id == RoleAssignment.role_id)
        .where(Grant.permission == permission)
        .order_by(col(Role.code))
    )
    return list(session.exec(query).all())


def _granted_anyhow(session: Session, tenant_id: str, user_id: str) -> list[str]:
    """Permissions of live assignments, whatever their data scope."""
    now = clock.now()
    query = (
        select(Grant.permission)
        .where(RoleAssignment.tenant_id == tenant_id, RoleAssignment.user_id == user_id)
        .where(Grant.tenant_id == tenant_id, Grant.role_id == RoleAssignment.role_id)
        .where((col(RoleAssignment.ends_at).is_(None)) | (col(RoleAssignment.ends_at) > now))
    )
    return list(session.exec(query).all())
