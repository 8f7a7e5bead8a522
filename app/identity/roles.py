"""Roles: what they grant, who holds them at which organisation, and the owners a tenant keeps."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlmodel import Session, col, func, select

from app.identity import epochs, facts, permissions, standing
from app.identity.errors import BeyondYourRights, BuiltinRole, LastOwner, StillInUse
from app.identity.models import (
    DataScope,
    Grant,
    Org,
    Role,
    RoleAssignment,
    Tenant,
    User,
    UserStatus,
)
from app.identity.principal import Principal
from app.kernel import clock, ids
from app.kernel.db import Work
from app.kernel.errors import Conflict, FieldError, Invalid, NotFound
from app.kernel.i18n import N_

CODE = re.compile(r"[a-z][a-z0-9_]{1,62}")
OWNER = "owner"

READS = (
    "identity.user.read",
    "identity.org.read",
    "identity.role.read",
    "identity.feature.read",
    "identity.agent.read",
    "identity.delegation.read",
    "command.definition.read",
)
BUILTIN: Mapping[str, tuple[str, Mapping[str, DataScope]]] = {
    OWNER: (N_("Owner"), {}),  # every permission there is, kept so by `sync_builtin`
    "administrator": (
        N_("Administrator"),
        {
            code.code: DataScope.ALL
            for code in permissions.PLATFORM
            if code.code.startswith(("identity.", "command.", "outside."))
            or code.code == "system.read"
        },
    ),
    "auditor": (
        N_("Auditor"),
        {**dict.fromkeys(READS, DataScope.ALL), "audit.read": DataScope.ALL},
    ),
    "member": (
        N_("Member"),
        {
            "identity.agent.read": DataScope.ALL,
            "identity.user.read": DataScope.SELF,
            "outside.tool.read": DataScope.ALL,
            "outside.tool.use": DataScope.ALL,
        },
    ),
}

Grants = Mapping[str, str]  # permission → data scope

_brought: dict[str, Mapping[str, Mapping[str, DataScope]]] = {}


def bring(pack: str, grants: Mapping[str, Mapping[str, DataScope]]) -> None:
    """What a pack gives to roles that ship: role → permission → data scope."""
    _brought[pack] = grants


def brought_to(code: str) -> dict[str, DataScope]:
    """What packs give to a role that ships.

    Administrators get what members get, besides: nobody invites others into what they do not hold.
    """
    own = {
        permission: scope
        for grants in _brought.values()
        for permission, scope in grants.get(code, {}).items()
    }
    return {**brought_to("member"), **own} if code == "administrator" else own


def make_builtin(work: Work, tenant_id: str) -> None:
    """The roles that ship, for a new tenant."""
    for code, (name, _) in BUILTIN.items():
        work.session.add(
            Role(tenant_id=tenant_id, id=ids.ulid(), code=code, name=name, builtin=True)
        )
    work.session.flush()
    sync_builtin(work, tenant_id)


def sync_builtin(work: Work, tenant_id: str) -> None:
    """Bring the grants of shipped roles to what this version says; at start and for new tenants."""
    every = dict.fromkeys(permissions.all_codes(work.session), DataScope.ALL)
    for role in work.session.exec(
        select(Role).where(Role.tenant_id == tenant_id, col(Role.builtin).is_(True))
    ).all():
        if role.code in BUILTIN:
            shipped = {**BUILTIN[role.code][1], **brought_to(role.code)}
            wanted = every if role.code == OWNER else shipped
            if _set_grants(work, role, {code: scope.value for code, scope in wanted.items()}):
                epochs.raise_for(work, tenant_id, _holders(work.session, role), "role_changed")


def create(
    work: Work,
    actor: Principal | None,
    *,
    tenant_id: str,
    code: str,
    name: str,
    grants: Grants,
    held: frozenset[str] | None = None,
) -> Role:
    """A role of the tenant's own. `held`: what the actor may give; None means the operator.

    Raises:
        Invalid: the code is taken or malformed, or a grant names what does not exist.
        BeyondYourRights: a grant names what the actor does not hold.
    """
    if not CODE.fullmatch(code):
        raise Invalid(FieldError("code", N_("Use small letters, digits and underscores.")))
    if by_code(work.session, tenant_id, code):
        raise Invalid(FieldError("code", N_("Another role has this code.")))
    _check_grants(work.session, grants, held)
    role = Role(tenant_id=tenant_id, id=ids.ulid(), code=code, name=name)
    work.session.add(role)
    work.session.flush()
    _set_grants(work, role, grants)
    facts.record(
        work,
        "identity.role.create",
        actor,
        tenant_id=tenant_id,
        target=("role", role.id),
        changes={"code": (None, code), "name": (None, name), "grants": (None, dict(grants))},
    )
    return role


def change(
    work: Work,
    actor: Principal,
    role: Role,
    *,
    name: str,
    grants: Grants,
    expected_version: int,
    held: frozenset[str],
) -> None:
    """Give a role another name and other grants; whoever holds it gets a new epoch.

    Raises:
        BuiltinRole: it ships with Assent.
        Conflict: somebody changed it meanwhile.
        BeyondYourRights, Invalid: as in `create`; what stays as it was is not questioned.
    """
    _is_own(role)
    if role.version != expected_version:
        raise Conflict
    before = grants_of(work.session, role)
    added = {code: scope for code, scope in grants.items() if before.get(code) != scope}
    _check_grants(work.session, added, held)
    facts.record(
        work,
        "identity.role.change",
        actor,
        target=("role", role.id),
        changes={"name": (role.name, name), "grants": (dict(before), dict(grants))},
    )
    role.name = name
    role.version += 1
    work.session.add(role)
    if dict(before) != dict(grants):
        _set_grants(work, role, grants)
        epochs.raise_for(work, role.tenant_id, _holders(work.session, role), "role_changed")


def remove(work: Work, actor: Principal, role: Role) -> None:
    """Do away with a role nobody holds.

    Raises:
        BuiltinRole: it ships with Assent.
        StillInUse: somebody holds it.
    """
    _is_own(role)
    if _holders(work.session, role):
        raise StillInUse(by=N_("people hold this role"))
    facts.record(
        work,
        "identity.role.remove",
        actor,
        target=("role", role.id),
        changes={"code": (role.code, None)},
    )
    _set_grants(work, role, {})
    work.session.delete(role)


def assign(
    work: Work,
    actor: Principal | None,
    user: User,
    role: Role,
    org: Org,
    *,
    ends_at: datetime | None = None,
    held: frozenset[str] | None = None,
) -> None:
    """Let `user` hold `role` at `org`, from where its data scopes count.

    `held` are the permissions that reach everything the actor may; what a role grants over its
    holder's own records alone, the actor need only hold for some.

    Raises:
        BeyondYourRights: the role holds what the actor does not.
        Invalid: the end has passed already.
    """
    if held is not None and _beyond(work.session, actor, role, held):
        raise BeyondYourRights
    if ends_at is not None and ends_at <= clock.now():
        raise Invalid(FieldError("ends_at", N_("This moment has passed already.")))
    row = work.session.get(RoleAssignment, (user.tenant_id, user.id, role.id, org.id))
    before = row.ends_at if row else None
    if row and ends_at is not None and role.code == OWNER:
        _keep_an_owner(work, user.tenant_id, besides=user.id)
    row = row or RoleAssignment(
        tenant_id=user.tenant_id,
        user_id=user.id,
        role_id=role.id,
        org_id=org.id,
        assigned_by_session=actor.session_id if actor else None,
        assigned_at=clock.now(),
    )
    row.ends_at = ends_at
    work.session.add(row)
    work.session.flush()
    facts.record(
        work,
        "identity.role.assign",
        actor,
        tenant_id=user.tenant_id,
        target=("user", user.id),
        changes={"ends_at": (_text(before), _text(ends_at))},
        details={"role": role.code, "org": org.id},
    )
    epochs.raise_for(work, user.tenant_id, [user.id], "role_assigned")


def unassign(work: Work, actor: Principal, user: User, role: Role, org: Org) -> None:
    """Take `role` at `org` from `user`.

    Raises:
        NotFound: the user does not hold it there.
        LastOwner: it would leave the tenant without an active owner.
    """
    row = work.session.get(RoleAssignment, (user.tenant_id, user.id, role.id, org.id))
    if row is None:
        raise NotFound
    if role.code == OWNER:
        _keep_an_owner(work, user.tenant_id, besides=user.id)
    work.session.delete(row)
    work.session.flush()
    facts.record(
        work,
        "identity.role.unassign",
        actor,
        target=("user", user.id),
        details={"role": role.code, "org": org.id},
    )
    epochs.raise_for(work, user.tenant_id, [user.id], "role_unassigned")


def keep_an_owner(work: Work, user: User) -> None:
    """Refuse what would take the last active owner away.

    Raises:
        LastOwner: `user` is that owner.
    """
    owner = by_code(work.session, user.tenant_id, OWNER)
    if owner is not None and user.id in _holders(work.session, owner):
        _keep_an_owner(work, user.tenant_id, besides=user.id)


def one(session: Session, tenant_id: str, role_id: str) -> Role:
    """A role of the tenant.

    Raises:
        NotFound: there is none with this id.
    """
    role = session.get(Role, (tenant_id, role_id))
    if role is None:
        raise NotFound
    return role


def by_code(session: Session, tenant_id: str, code: str) -> Role | None:
    """The role with this code."""
    return session.exec(select(Role).where(Role.tenant_id == tenant_id, Role.code == code)).first()


def of_tenant(session: Session, tenant_id: str) -> Sequence[Role]:
    """Every role, the shipped ones first, then by name."""
    query = (
        select(Role)
        .where(Role.tenant_id == tenant_id)
        .order_by(col(Role.builtin).desc(), col(Role.name), col(Role.id))
    )
    return session.exec(query).all()


def grants_of(session: Session, role: Role) -> dict[str, str]:
    """What the role grants: permission → data scope."""
    query = select(Grant).where(Grant.tenant_id == role.tenant_id, Grant.role_id == role.id)
    return {grant.permission: grant.data_scope for grant in session.exec(query).all()}


def _beyond(session: Session, actor: Principal | None, role: Role, held: frozenset[str]) -> bool:
    missing = {
        permission: reach
        for permission, reach in grants_of(session, role).items()
        if permission not in held
    }
    if not missing or actor is None or set(missing.values()) != {DataScope.SELF}:
        return bool(missing)
    user = session.get_one(User, (actor.tenant_id, actor.user_id))
    return not missing.keys() <= standing.granted_to(session, user)[0]


def assignments_of(session: Session, user: User) -> Sequence[tuple[RoleAssignment, Role, Org]]:
    """What a user holds and where, ended assignments included."""
    query = (
        select(RoleAssignment, Role, Org)
        .where(RoleAssignment.tenant_id == user.tenant_id, RoleAssignment.user_id == user.id)
        .where(Role.tenant_id == user.tenant_id, Role.id == RoleAssignment.role_id)
        .where(Org.tenant_id == user.tenant_id, Org.id == RoleAssignment.org_id)
        .order_by(col(Role.name), col(Org.path))
    )
    return session.exec(query).all()


def _keep_an_owner(work: Work, tenant_id: str, *, besides: str) -> None:
    """An owner for a while does not count: when that time is over, there would be none."""
    # two owners who take each other's role at once: the second waits here, then counts again
    work.session.exec(select(Tenant.id).where(Tenant.id == tenant_id).with_for_update()).one()
    others = (
        select(func.count(func.distinct(col(User.id))))
        .where(User.tenant_id == tenant_id, User.id != besides)
        .where(User.status == UserStatus.ACTIVE)
        .where(RoleAssignment.tenant_id == tenant_id, RoleAssignment.user_id == User.id)
        .where(col(RoleAssignment.ends_at).is_(None))
        .where(Role.tenant_id == tenant_id, Role.id == RoleAssignment.role_id, Role.code == OWNER)
    )
    if work.session.exec(others).one() == 0:
        raise LastOwner


def _holders(session: Session, role: Role) -> list[str]:
    query = select(RoleAssignment.user_id).where(
        RoleAssignment.tenant_id == role.tenant_id, RoleAssignment.role_id == role.id
    )
    return list(session.exec(query).all())


def _is_own(role: Role) -> None:
    if role.builtin:
        raise BuiltinRole


def _check_grants(session: Session, grants: Grants, held: frozenset[str] | None) -> None:
    known = set(permissions.all_codes(session))
    scopes = {scope.value for scope in DataScope}
    if any(code not in known or scope not in scopes for code, scope in grants.items()):
        raise Invalid(FieldError("grants", N_("A permission or data scope here does not exist.")))
    if held is not None and not held >= grants.keys():
        raise BeyondYourRights


def _set_grants(work: Work, role: Role, grants: Grants) -> bool:
    before = grants_of(work.session, role)
    if before == dict(grants):
        return False
    for code in before.keys() - grants.keys():
        work.session.delete(work.session.get(Grant, (role.tenant_id, role.id, code)))
    for code, scope in grants.items():
        if before.get(code) != scope:
            row = work.session.get(Grant, (role.tenant_id, role.id, code)) or Grant(
                tenant_id=role.tenant_id, role_id=role.id, permission=code, data_scope=scope
            )
            row.data_scope = scope
            work.session.add(row)
    work.session.flush()
    return True


def _text(moment: datetime | None) -> str | None:
    return clock.rfc3339(moment) if moment else None
