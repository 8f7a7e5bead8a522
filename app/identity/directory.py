"""What lists of identity show: people, agents and delegations, searched, filtered and paged.

Each list is a handful of statements whatever its length. `visible` is always the condition of who
looks, `access.scope.within(...)`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, and_, func, or_, select
from sqlmodel import Session, col

from app.identity import search
from app.identity.models import (
    Agent,
    AgentKind,
    AgentRelease,
    AgentStatus,
    Delegation,
    Grant,
    Org,
    Role,
    RoleAssignment,
    User,
    UserStatus,
)
from app.identity.paging import Order, Page, page
from app.kernel import clock


@dataclass(frozen=True, slots=True, kw_only=True)
class PeopleWanted:
    """What to look for among people; what is empty narrows nothing."""

    q: str = ""
    status: UserStatus | None = None
    org_id: str = ""  # and everything below it
    role_id: str = ""
    sort: str = "name"


@dataclass(frozen=True, slots=True)
class Listed:
    """A person as the list shows them; `roles` are the names of those they hold now."""

    user: User
    org_name: str
    roles: tuple[Role, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentsWanted:
    """What to look for among agents."""

    q: str = ""
    kind: AgentKind | None = None
    status: AgentStatus | None = None
    sort: str = "name"


@dataclass(frozen=True, slots=True)
class ListedAgent:
    """An agent as the list shows it: its current release, and how many people let it act."""

    agent: Agent
    admin_name: str
    release: int | None
    delegations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationsWanted:
    """What to look for among delegations."""

    q: str = ""  # in the person's or the agent's names
    state: str = "live"  # or `paused`, `ended`, `all`
    user_id: str = ""
    agent_id: str = ""


@dataclass(frozen=True, slots=True)
class ListedDelegation:
    """A delegation with its two sides."""

    delegation: Delegation
    user: User
    agent: Agent


PEOPLE_SORTS = {
    "name": (User.display_name, False),
    "-name": (User.display_name, True),
    "login": (User.login, False),
    "-login": (User.login, True),
    "since": (User.created_at, False),
    "-since": (User.created_at, True),
}
AGENT_SORTS = {
    "name": (Agent.name, False),
    "-name": (Agent.name, True),
    "code": (Agent.code, False),
    "-code": (Agent.code, True),
}


def people(
    session: Session, visible: ColumnElement[bool], wanted: PeopleWanted, cursor: str | None
) -> Page[Listed]:
    """One page of people, and how many there are in all; two statements."""
    conditions = [visible, *search.matches(col(User.search), wanted.q)]
    if wanted.status is not None:
        conditions.append(col(User.status) == wanted.status)
    if wanted.org_id:
        conditions.append(_org_is_below(wanted.org_id))
    if wanted.role_id:
        conditions.append(_holds(wanted.role_id))
    total = _total(User, conditions)
    query = (
        select(User, col(Org.name), total)
        .join(Org, and_(col(Org.tenant_id) == User.tenant_id, col(Org.id) == User.org_id))
        .where(*conditions)
    )
    order = _order(PEOPLE_SORTS, wanted.sort, User.id)
    found = page(session, query, order, cursor, tuple)
    held = roles_held(session, [row[0] for row in found.rows])
    rows = [Listed(user, org, held.get(user.id, ())) for user, org, _ in found.rows]
    return _with_rows(found, rows)


def roles_held(session: Session, users: Sequence[User]) -> dict[str, tuple[Role, ...]]:
    """The roles these people of one tenant hold now, by user id, each once and by name."""
    if not users:
        return {}
    query = (
        select(col(RoleAssignment.user_id), Role)
        .join(
            Role,
            and_(
                col(Role.tenant_id) == RoleAssignment.tenant_id,
                col(Role.id) == RoleAssignment.role_id,
            ),
        )
        .where(
            col(RoleAssignment.tenant_id) == users[0].tenant_id,
            col(RoleAssignment.user_id).in_([user.id for user in users]),
            _is_live_assignment(),
        )
        .order_by(col(Role.builtin).desc(), col(Role.name), col(Role.id))
        .distinct()
    )
    held: dict[str, tuple[Role, ...]] = {}
    for user_id, role in session.execute(query).all():
        held[user_id] = (*held.get(user_id, ()), role)
    return held


def agents(
    session: Session, visible: ColumnElement[bool], wanted: AgentsWanted, cursor: str | None
) -> Page[ListedAgent]:
    """One page of agents, and how many there are in all; one statement."""
    conditions = [visible, *search.matches(col(Agent.search), wanted.q)]
    if wanted.kind is not None:
        conditions.append(col(Agent.kind) == wanted.kind)
    if wanted.status is not None:
        conditions.append(col(Agent.status) == wanted.status)
    query = (
        select(
            Agent,
            col(User.display_name),
            _latest_release(),
            _live_delegations(),
            _total(Agent, conditions),
        )
        .join(
            User, and_(col(User.tenant_id) == Agent.tenant_id, col(User.id) == Agent.admin_user_id)
        )
        .where(*conditions)
    )
    found = page(session, query, _order(AGENT_SORTS, wanted.sort, Agent.id), cursor, tuple)
    return _with_rows(found, [ListedAgent(*row[:-1]) for row in found.rows])


def delegations(
    session: Session, visible: ColumnElement[bool], wanted: DelegationsWanted, cursor: str | None
) -> Page[ListedDelegation]:
    """One page of delegations, the newest first, and how many there are in all; one statement."""
    conditions = [visible, *_state(wanted.state)]
    of_user = and_(col(User.tenant_id) == Delegation.tenant_id, col(User.id) == Delegation.user_id)
    of_agent = and_(
        col(Agent.tenant_id) == Delegation.tenant_id, col(Agent.id) == Delegation.agent_id
    )
    if wanted.user_id:
        conditions.append(col(Delegation.user_id) == wanted.user_id)
    if wanted.agent_id:
        conditions.append(col(Delegation.agent_id) == wanted.agent_id)
    words = [
        or_(by_user, by_agent)
        for by_user, by_agent in zip(
            search.matches(col(User.search), wanted.q),
            search.matches(col(Agent.search), wanted.q),
            strict=True,
        )
    ]
    total = (
        select(func.count())
        .select_from(Delegation)
        .join(User, of_user)
        .join(Agent, of_agent)
        .where(*conditions, *words)
        .scalar_subquery()
    )
    query = (
        select(Delegation, User, Agent, total)
        .join(User, of_user)
        .join(Agent, of_agent)
        .where(*conditions, *words)
    )
    order = Order(col(Delegation.created_at), col(Delegation.id), is_descending=True)
    found = page(session, query, order, cursor, tuple)
    return _with_rows(found, [ListedDelegation(*row[:-1]) for row in found.rows])


def members(session: Session, tenant_id: str) -> dict[str, int]:
    """How many people belong to each organisation itself, disabled ones left out."""
    query = (
        select(col(User.org_id), func.count())
        .where(col(User.tenant_id) == tenant_id, col(User.status) != UserStatus.DISABLED)
        .group_by(col(User.org_id))
    )
    return {str(row[0]): int(row[1]) for row in session.execute(query).all()}


def holders(session: Session, tenant_id: str) -> dict[str, int]:
    """How many people hold each role now."""
    query = (
        select(col(RoleAssignment.role_id), func.count(func.distinct(RoleAssignment.user_id)))
        .where(col(RoleAssignment.tenant_id) == tenant_id, _is_live_assignment())
        .group_by(col(RoleAssignment.role_id))
    )
    return {str(row[0]): int(row[1]) for row in session.execute(query).all()}


def sizes(session: Session, tenant_id: str) -> dict[str, int]:
    """How many permissions each role grants."""
    query = (
        select(col(Grant.role_id), func.count())
        .where(col(Grant.tenant_id) == tenant_id)
        .group_by(col(Grant.role_id))
    )
    return {str(row[0]): int(row[1]) for row in session.execute(query).all()}


def holders_of(
    session: Session, role: Role, visible: ColumnElement[bool], limit: int = 50
) -> Sequence[tuple[RoleAssignment, User, Org]]:
    """Who holds a role and where, by name; as many as a page shows."""
    of_user = and_(
        col(User.tenant_id) == RoleAssignment.tenant_id, col(User.id) == RoleAssignment.user_id
    )
    at_org = and_(
        col(Org.tenant_id) == RoleAssignment.tenant_id, col(Org.id) == RoleAssignment.org_id
    )
    query = (
        select(RoleAssignment, User, Org)
        .join(User, of_user)
        .join(Org, at_org)
        .where(col(RoleAssignment.tenant_id) == role.tenant_id, visible)
        .where(col(RoleAssignment.role_id) == role.id)
        .order_by(col(User.display_name), col(User.id), col(Org.path))
        .limit(limit)
    )
    return [(row[0], row[1], row[2]) for row in session.execute(query).all()]


def holds_permission(permission: str) -> ColumnElement[bool]:
    """True for people whose roles grant `permission` now, however far."""
    granted = (
        select(col(RoleAssignment.user_id))
        .join(
            Grant,
            and_(
                col(Grant.tenant_id) == RoleAssignment.tenant_id,
                col(Grant.role_id) == RoleAssignment.role_id,
            ),
        )
        .where(
            col(RoleAssignment.tenant_id) == User.tenant_id,
            col(RoleAssignment.user_id) == User.id,
            col(Grant.permission) == permission,
            _is_live_assignment(),
        )
    )
    return granted.correlate(User).exists()


def _total(model: type[User] | type[Agent], conditions: Iterable[ColumnElement[bool]]) -> Any:
    """The number of all rows, as a column of each; the page's own place does not count."""
    return select(func.count()).select_from(model).where(*conditions).scalar_subquery()


def _with_rows(found: Page[Any], rows: Sequence[Any]) -> Page[Any]:
    total = found.rows[0][-1] if found.rows else 0
    return replace(found, rows=rows, total=total)


def _order(sorts: dict[str, tuple[Any, bool]], wanted: str, id: Any) -> Order:
    column, is_descending = sorts.get(wanted, sorts["name"])
    return Order(col(column), col(id), is_descending)


def _org_is_below(org_id: str) -> ColumnElement[bool]:
    top = select(col(Org.path)).where(col(Org.tenant_id) == User.tenant_id, col(Org.id) == org_id)
    path = top.correlate(User).scalar_subquery()
    place = (
        select(col(Org.id))
        .where(col(Org.tenant_id) == User.tenant_id, col(Org.id) == User.org_id)
        .where(func.substr(Org.path, 1, func.length(path)) == path)
    )
    return place.correlate(User).exists()


def _holds(role_id: str) -> ColumnElement[bool]:
    assignment = select(col(RoleAssignment.user_id)).where(
        col(RoleAssignment.tenant_id) == User.tenant_id,
        col(RoleAssignment.user_id) == User.id,
        col(RoleAssignment.role_id) == role_id,
        _is_live_assignment(),
    )
    return assignment.correlate(User).exists()


def _is_live_assignment() -> ColumnElement[bool]:
    ends_at = col(RoleAssignment.ends_at)
    return or_(ends_at.is_(None), ends_at > clock.now())


def _latest_release() -> Any:
    return (
        select(func.max(col(AgentRelease.number)))
        .where(
            col(AgentRelease.tenant_id) == Agent.tenant_id,
            col(AgentRelease.agent_id) == Agent.id,
        )
        .correlate(Agent)
        .scalar_subquery()
    )


def _live_delegations() -> Any:
    return (
        select(func.count())
        .where(
            col(Delegation.tenant_id) == Agent.tenant_id,
            col(Delegation.agent_id) == Agent.id,
            *_state("live"),
        )
        .correlate(Agent)
        .scalar_subquery()
    )


def _state(state: str) -> list[ColumnElement[bool]]:
    now = clock.now()
    ended = or_(col(Delegation.revoked_at).is_not(None), col(Delegation.expires_at) <= now)
    going = and_(
        col(Delegation.revoked_at).is_(None),
        or_(col(Delegation.expires_at).is_(None), col(Delegation.expires_at) > now),
    )
    match state:
        case "live":
            return [going]
        case "paused":
            return [going, col(Delegation.paused_at).is_not(None)]
        case "ended":
            return [ended]
    return []
