"""Tokens for the operator, who has the database anyway (SEC-87)."""

from sqlmodel import Session, select

from app.identity import agents, delegations, facts, tenants, tokens, users
from app.identity.doors import Door
from app.identity.models import Agent, User
from app.identity.oauth import standing
from app.identity.oauth.standing import Origin
from app.identity.principal import Scope
from app.kernel import clock
from app.kernel.db import Work
from app.kernel.errors import AppError
from app.kernel.i18n import N_

AUDIENCES = {"api": Door.V1, "mcp": Door.MCP, "a2a": Door.A2A, "aun": Door.AUN}


class CannotMint(AppError):
    """There is nothing to make a token of."""

    reason = "no_delegation"
    status = 422
    says = N_("No token: %(why)s")


def mint(work: Work, user: str, agent: str, audience: str) -> str:
    """One access token of 300 s for a live delegation, with all of its scopes; a unit.

    `user` is `login` or `tenant/login`, `agent` the agent's code, `audience` a key of `AUDIENCES`.

    Raises:
        CannotMint: there is no such user, agent, audience or live delegation.
    """
    door = AUDIENCES.get(audience)
    if door is None:
        raise CannotMint(why=f"the audience is one of {', '.join(AUDIENCES)}")
    person = _user(work.session, user)
    acting = agents.by_code(work.session, person.tenant_id, agent)
    if acting is None:
        raise CannotMint(why=f"there is no agent {agent}")
    delegation = delegations.live(work.session, person.tenant_id, person.id, acting.id)
    found = delegation and standing.now(
        work.session,
        tenant_id=person.tenant_id,
        delegation_id=delegation.id,
        client_id=acting.client_id or acting.id,
        origin=Origin(auth_time=clock.now(), amr=("operator",)),
        family_id=None,
    )
    if not found:
        raise CannotMint(why=f"{user} does not let {agent} act, or one of them is not active")
    stands, delegation = found
    scope = " ".join(word for word in delegation.scopes if word != Scope.OFFLINE_ACCESS)
    _record(work, person, acting, door)
    return tokens.make(work.session, stands, scope=scope, audience=door.resource)


def _user(session: Session, named: str) -> User:
    slug, slash, login = named.rpartition("/")
    tenant = tenants.by_slug(session, slug) if slash else None
    if slash and tenant is None:
        raise CannotMint(why=f"there is no tenant {slug}")
    query = select(User).where(User.login == users.fold(login))
    if tenant is not None:
        query = query.where(User.tenant_id == tenant.id)
    found = session.exec(query.limit(2)).all()
    if len(found) != 1:
        raise CannotMint(
            why=f"several tenants have a user {login}: say tenant/{login}"
            if found
            else f"there is no user {named}"
        )
    return found[0]


def _record(work: Work, person: User, agent: Agent, door: Door) -> None:
    facts.record(
        work,
        "identity.token.mint",
        None,
        tenant_id=person.tenant_id,
        user_id=person.id,
        target=("agent", agent.id),
        details={"audience": door.resource, "by": "operator"},
    )
