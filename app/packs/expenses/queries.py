"""What expenses are asked: reports a caller reaches, who decides one, which budget pays it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, bindparam, exists, literal, or_
from sqlalchemy import select as sql_select
from sqlalchemy.orm import aliased
from sqlmodel import Session, col, func, select

from app.access import scope
from app.identity import paging
from app.identity.models import DataScope, Grant, Org, RoleAssignment, User, UserStatus
from app.identity.paging import Order, Page
from app.identity.principal import Principal
from app.identity.search import matches
from app.kernel import clock
from app.packs.expenses.models import Budget, Report

READ = "expense.report.read"
APPROVE = "expense.report.approve"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a list of reports is narrowed to; an empty text does not narrow."""

    state: str = ""
    owner_id: str = ""
    period: str = ""
    q: str = ""


@dataclass(frozen=True, slots=True)
class Approver:
    """Who decides, as others see them."""

    id: str
    display_name: str
    email: str | None


def reports(
    session: Session, principal: Principal, wanted: Wanted, cursor: str | None, size: int
) -> Page[Report]:
    """A page of the reports that the principal may read, the newest first."""
    query = _narrowed(sql_select(Report).where(scope.within(principal, READ, Report)), wanted)
    order = Order(col(Report.created_at), col(Report.id), is_descending=True)
    return paging.page(session, query, order, cursor, lambda row: row[0], size=size)


def names_of(session: Session, tenant_id: str, user_ids: set[str | None]) -> Mapping[str, str]:
    """What the tenant's people with these ids are called."""
    query = sql_select(col(User.id), col(User.display_name)).where(
        col(User.tenant_id) == tenant_id, col(User.id).in_(user_ids - {None})
    )
    return {row.id: row.display_name for row in session.execute(query)}


def manager_of(session: Session, report: Report) -> Approver | None:
    """Who decides a report: the nearest approver at its organisation or above, never its owner."""
    of = {
        "tenant_id": report.tenant_id,
        "org_id": report.org_id,
        "owner_id": report.owner_id,
        "now": clock.now(),
    }
    found = session.execute(_managers(), of).first()
    return Approver(*found) if found else None


def budget_of(session: Session, report: Report) -> str | None:
    """The id of the budget that pays a report; None where nobody limits its month."""
    month = _month(report.tenant_id, report.org_id, report.period, report.currency)
    found = session.execute(_budgets(), month).scalars().first()
    return found.id if found else None


def visible_budget(
    session: Session, principal: Principal, org_id: str, period: str, currency: str
) -> Budget | None:
    """The budget of an organisation's month, if the principal reaches it or a report it pays."""
    own = exists(
        sql_select(literal(1)).where(
            col(Report.budget_id) == Budget.id, scope.within(principal, READ, Report)
        )
    )
    query = _budgets().where(or_(scope.within(principal, READ, Budget), own))
    month = _month(principal.tenant_id, org_id, period, currency)
    found: Budget | None = session.execute(query, month).scalars().first()
    return found


def account_of(session: Session, report: Report) -> str:
    """Where the owner's money went last time; empty for a first report."""
    query = (
        select(Report.payee_account)
        .where(
            Report.tenant_id == report.tenant_id,
            Report.owner_id == report.owner_id,
            Report.id != report.id,
            Report.payee_account != "",
        )
        .order_by(col(Report.created_at).desc(), col(Report.id).desc())
    )
    return session.exec(query).first() or ""


def hold_for_budget(session: Session, principal: Principal, org_id: str) -> bool:
    """Whether the principal sets an organisation's budgets; one at a time, until the commit."""
    query = (
        select(Org.id)
        .where(Org.id == org_id, scope.within(principal, "expense.budget.manage", Org))
        .with_for_update(of=Org, key_share=True)
    )
    return session.exec(query).first() is not None


def _narrowed(query: Select[Any], wanted: Wanted) -> Select[Any]:
    for column, value in (
        (Report.state, wanted.state),
        (Report.owner_id, wanted.owner_id),
        (Report.period, wanted.period),
    ):
        if value:
            query = query.where(col(column) == value)
    text = func.lower(col(Report.number) + " " + col(Report.title))
    return query.where(*matches(text, wanted.q))


def _month(tenant_id: str, org_id: str, period: str, currency: str) -> dict[str, str]:
    return {"tenant_id": tenant_id, "org_id": org_id, "period": period, "currency": currency}


@cache  # building a statement costs more than asking it
def _managers() -> Select[str, str, str | None]:
    held_at, place = aliased(Org), aliased(Org)
    reach = col(Grant.data_scope)
    return (
        sql_select(col(User.id), col(User.display_name), col(User.email))
        .join(
            RoleAssignment,
            (col(RoleAssignment.tenant_id) == User.tenant_id)
            & (col(RoleAssignment.user_id) == User.id),
        )
        .join(
            Grant,
            (col(Grant.tenant_id) == RoleAssignment.tenant_id)
            & (col(Grant.role_id) == RoleAssignment.role_id),
        )
        .join(
            held_at,
            (col(held_at.tenant_id) == RoleAssignment.tenant_id)
            & (col(held_at.id) == RoleAssignment.org_id),
        )
        .join(place, _stands_at_or_below(place, held_at))
        .where(
            col(User.tenant_id) == bindparam("tenant_id"),
            col(User.status) == UserStatus.ACTIVE,
            col(User.id) != bindparam("owner_id"),
            col(place.id) == bindparam("org_id"),
            col(Grant.permission) == APPROVE,
            or_(
                reach.in_([DataScope.ALL.value, DataScope.ORG_AND_BELOW.value]),
                (reach == DataScope.ORG.value) & (col(held_at.id) == place.id),
            ),
            or_(
                col(RoleAssignment.ends_at).is_(None),
                col(RoleAssignment.ends_at) > bindparam("now"),
            ),
        )
        .order_by(func.length(held_at.path).desc(), col(User.id))
        .limit(1)
    )


@cache
def _budgets() -> Select[Any]:
    """The limited budget of a month, of the organisation itself or the nearest above it."""
    at, place = aliased(Org), aliased(Org)
    return (
        sql_select(Budget)
        .join(at, (col(at.tenant_id) == Budget.tenant_id) & (col(at.id) == Budget.org_id))
        .join(place, _stands_at_or_below(place, at))
        .where(
            col(Budget.tenant_id) == bindparam("tenant_id"),
            col(Budget.period) == bindparam("period"),
            col(Budget.currency) == bindparam("currency"),
            col(Budget.limit_minor).is_not(None),
            col(place.id) == bindparam("org_id"),
        )
        .order_by(func.length(at.path).desc())
        .limit(1)
    )


def _stands_at_or_below(place: Any, above: Any) -> ColumnElement[bool]:
    return and_(
        col(place.tenant_id) == above.tenant_id,
        func.substr(place.path, 1, func.length(above.path)) == above.path,
    )
