"""Three layers, one filter: which records a permission reaches, as an SQL condition (SEC-6).

Permission, data scope, and organisation with tenant decide together, in one condition that lists,
single records and writes all use. An agent acts with its user's rights as they are now; what its
delegation leaves out of them is checked by scopes, before (SEC-7).

Building a condition costs more than asking it, so its words are made once for each question and
get the values of a principal each time (performance.md, C6).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

from sqlalchemy import (
    Column,
    ColumnElement,
    Select,
    String,
    and_,
    bindparam,
    column,
    exists,
    func,
    inspect,
    literal,
    literal_column,
    or_,
    table,
    text,
)
from sqlalchemy import select as sql_select
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.orm import aliased
from sqlalchemy.sql.elements import Grouping
from sqlalchemy.types import TypeEngine
from sqlmodel import SQLModel, col

from app.identity.models import (
    DataScope,
    Delegation,
    Grant,
    Org,
    Permission,
    RoleAssignment,
    TenantStatus,
    User,
    UserStatus,
)
from app.identity.principal import Principal
from app.kernel import clock

Expression = Any  # a mapped attribute, or an SQL expression


@dataclass(frozen=True, slots=True)
class Reach:
    """Whose a record is: the expressions for its owner and its organisation, where it has them."""

    owner: Expression = None
    org: Expression = None


_reaches: dict[type[SQLModel], Callable[[], Reach]] = {
    User: lambda: Reach(owner=User.id, org=User.org_id),
    Org: lambda: Reach(org=Org.id),
    Delegation: lambda: Reach(owner=Delegation.user_id, org=_org_of_user(Delegation.user_id)),
}


def declare(model: type[SQLModel], reach: Callable[[], Reach]) -> None:
    """Say whose the records of a table are; a table without this is reached tenant-wide only."""
    _reaches[model] = reach
    _words_within.cache_clear()


def reaches(
    principal: Principal,
    permission: str,
    *,
    owner: Expression,
    org: Expression,
    tenant: Expression = None,
) -> ColumnElement[bool]:
    """True for the records that `permission` reaches.

    `owner` and `org` are columns of the record, None where it has no such thing; `tenant` is its
    tenant's column, found by itself where one of the others is a mapped attribute.
    """
    tenant = tenant if tenant is not None else _tenant_of(owner, org)
    names = tuple(_name_of(each) for each in (owner, org, tenant))
    if any(name is None for name in names):
        return build(principal, permission, owner=owner, org=org, tenant=tenant)
    return _words(permission, *cast(tuple[str, str, str], names)).of(principal)


def within(principal: Principal, permission: str, model: type[SQLModel]) -> ColumnElement[bool]:
    """The same for a table whose owner and organisation are declared; for its lists."""
    return _words_within(permission, model).of(principal)


@dataclass(frozen=True, slots=True)
class _Anyone:
    """Stands for a principal: parameters instead of values."""

    tenant_id: Any = field(default_factory=lambda: bindparam("tenant_id", type_=String))
    user_id: Any = field(default_factory=lambda: bindparam("user_id", type_=String))
    now: Any = field(
        default_factory=lambda: bindparam("now", type_=User.__table__.c.created_at.type)  # type: ignore[attr-defined]
    )


ANYONE = cast(Principal, _Anyone())


@dataclass(frozen=True, slots=True)
class _Words:
    """A condition as text, with its parameters: name, type, and the value of a constant."""

    sql: str
    parameters: tuple[tuple[str, TypeEngine[Any], Any], ...]

    def of(self, principal: Principal) -> ColumnElement[bool]:
        """The condition for one principal, now."""
        given = {
            "tenant_id": principal.tenant_id,
            "user_id": principal.user_id,
            "now": clock.now(),
        }
        bound = [
            bindparam(name, given.get(name, value), type_=type_, unique=True)
            for name, type_, value in self.parameters
        ]
        return Grouping(text(self.sql).bindparams(*bound))


@cache
def _words(permission: str, owner: str, org: str, tenant: str) -> _Words:
    columns = {"owner": owner, "org": org, "tenant": tenant}
    named: Any = {each: literal_column(name) if name else None for each, name in columns.items()}
    return _said(sql_select(literal_column("1")).where(build(ANYONE, permission, **named)))


@cache
def _words_within(permission: str, model: type[SQLModel]) -> _Words:
    # what encloses it tells which table the record is of
    enclosing: Select[Any] = sql_select(literal_column("1")).select_from(model)
    return _said(enclosing.where(build_within(ANYONE, permission, model)))


def _said(query: Select[Any]) -> _Words:
    """The words of the condition of a query."""
    compiled = query.compile(dialect=DefaultDialect(paramstyle="named"))
    parameters = [
        (name, compiled.binds[name].type, value) for name, value in compiled.params.items()
    ]
    return _Words(str(compiled).partition("\nWHERE ")[2], tuple(parameters))


def _name_of(expression: Expression) -> str | None:
    """The name of a column of a table, '' of none at all; None of anything else."""
    if expression is None:
        return ""
    found = getattr(expression, "expression", expression)
    if isinstance(found, Column) and found.table is not None and hasattr(found.table, "fullname"):
        return str(found.compile(dialect=DefaultDialect()))
    return None


def build(
    principal: Principal,
    permission: str,
    *,
    owner: Expression,
    org: Expression,
    tenant: Expression,
) -> ColumnElement[bool]:
    """`reaches` as an expression, for statements that are built once."""
    held_at = aliased(Org)
    acting, of_tenant = _users(), _tenants()
    scope = col(Grant.data_scope)
    covers: list[ColumnElement[bool]] = [scope == DataScope.ALL]
    if owner is not None:
        covers.append(and_(scope == DataScope.SELF, owner == principal.user_id))
    if org is not None:
        covers.append(and_(scope == DataScope.ORG, org == col(RoleAssignment.org_id)))
        covers.append(
            and_(scope == DataScope.ORG_AND_BELOW, _stands_below(principal, org, held_at))
        )
    grants = (
        _live_grants(principal, acting, of_tenant)
        .join(
            held_at,
            and_(
                col(held_at.tenant_id) == RoleAssignment.tenant_id,
                col(held_at.id) == RoleAssignment.org_id,
            ),
        )
        .where(col(Grant.permission) == permission, or_(*covers))
        .correlate_except(RoleAssignment, Grant, Permission, held_at, acting, of_tenant)
    )
    return and_(tenant == principal.tenant_id, exists(grants))


def build_within(
    principal: Principal, permission: str, model: type[SQLModel]
) -> ColumnElement[bool]:
    """`within` as an expression, for statements that are built once."""
    reach = _reaches.get(model, Reach)()
    tenant = model.tenant_id  # type: ignore[attr-defined]
    return build(principal, permission, owner=reach.owner, org=reach.org, tenant=tenant)


def grants_of(principal: Principal, permission: str) -> Any:
    """The live grants of one permission, for whichever records."""
    return _live_grants(principal).where(col(Grant.permission) == permission, _is_known_scope())


def held(principal: Principal) -> Any:
    """A SELECT of what the principal holds: permission, data scope and organisation."""
    return (
        _live_grants(principal)
        .add_columns(col(Grant.data_scope), col(RoleAssignment.org_id))
        .where(_is_known_scope())
    )


def _users() -> Any:
    return table("user", column("tenant_id"), column("id"), column("status", String)).alias()


def _tenants() -> Any:
    return table("tenant", column("id"), column("status", String)).alias()


def _live_grants(principal: Principal, acting: Any = None, of_tenant: Any = None) -> Any:
    """Codes of what the principal's user is granted now, by whatever assignment and scope."""
    # made for each statement: an alias that two threads fill at once loses its columns
    acting = acting if acting is not None else _users()
    of_tenant = of_tenant if of_tenant is not None else _tenants()
    return (
        sql_select(col(Grant.permission))
        .select_from(RoleAssignment)
        .join(
            Grant,
            and_(
                col(Grant.tenant_id) == RoleAssignment.tenant_id,
                col(Grant.role_id) == RoleAssignment.role_id,
            ),
        )
        .join(Permission, col(Permission.code) == Grant.permission)
        .join(
            acting,
            and_(
                acting.c.tenant_id == RoleAssignment.tenant_id,
                acting.c.id == RoleAssignment.user_id,
            ),
        )
        .join(of_tenant, of_tenant.c.id == RoleAssignment.tenant_id)
        .where(
            col(RoleAssignment.tenant_id) == principal.tenant_id,
            col(RoleAssignment.user_id) == principal.user_id,
            or_(
                col(RoleAssignment.ends_at).is_(None),
                col(RoleAssignment.ends_at) > _moment(principal),
            ),
            acting.c.status == UserStatus.ACTIVE,
            of_tenant.c.status == TenantStatus.ACTIVE,
        )
    )


def _moment(principal: Any) -> Any:
    # a statement that is built once has parameters where a principal has values
    return principal.now if isinstance(principal, _Anyone) else clock.now()


def _is_known_scope() -> ColumnElement[bool]:
    return or_(*(col(Grant.data_scope) == scope.value for scope in DataScope))


def _stands_below(principal: Principal, org: Expression, held_at: Any) -> ColumnElement[bool]:
    # substr and not LIKE: a path may hold `_`, and SQLite's LIKE does not tell cases apart
    place = aliased(Org)
    beginning = func.substr(place.path, 1, func.length(held_at.path))
    return exists(
        sql_select(literal(1))
        .select_from(place)
        .where(
            col(place.tenant_id) == principal.tenant_id,
            col(place.id) == org,
            beginning == held_at.path,
        )
        .correlate_except(place)
    )


def _org_of_user(user_id: Expression) -> Expression:
    owner = aliased(User)
    return (
        sql_select(col(owner.org_id))
        .where(col(owner.tenant_id) == Delegation.tenant_id, col(owner.id) == user_id)
        .correlate_except(owner)
        .scalar_subquery()
    )


def _tenant_of(*columns: Expression) -> Expression:
    for each in columns:
        parent = getattr(inspect(each, raiseerr=False), "parent", None)
        if parent is not None and hasattr(parent.entity, "tenant_id"):
            return parent.entity.tenant_id
        of_table = getattr(each, "table", None)
        if of_table is not None and "tenant_id" in of_table.c:
            return of_table.c.tenant_id
    raise ValueError("say which column holds the record's tenant")
