"""`/v1/me`: whom this credential makes the caller, as any integrator asks first."""

from fastapi import APIRouter
from sqlmodel import Session

from app.access import scope
from app.api.strict import Strict
from app.api.wire import Wire
from app.identity import agents, orgs, users
from app.identity.deps import Caller
from app.identity.models import Tenant
from app.identity.principal import Principal
from app.kernel import db

router = APIRouter(prefix="/v1", tags=["identity"], route_class=Strict)


class Named(Wire):
    """Something with an id and a name."""

    id: str
    name: str


class Acting(Named):
    """The agent that acts, and the chain behind it."""

    code: str
    actors: list[str]
    scopes: list[str]
    delegation_id: str | None


class Me(Wire):
    """The caller: a person, or an agent that acts for one."""

    tenant: Named
    user: Named
    login: str
    org: Named
    agent: Acting | None
    permissions: list[str]


@router.get("/me")
async def me(caller: Caller) -> Me:
    """Who is calling, for whom, and what the user may do now."""
    return await db.read(_describe, caller)


def _describe(session: Session, caller: Principal) -> Me:
    tenant = session.get_one(Tenant, caller.tenant_id)
    user = users.one(session, caller.tenant_id, caller.user_id)
    org = orgs.one(session, caller.tenant_id, user.org_id)
    return Me(
        tenant=Named(id=tenant.id, name=tenant.name),
        user=Named(id=user.id, name=user.display_name),
        login=user.login,
        org=Named(id=org.id, name=org.name),
        agent=_acting(session, caller),
        permissions=sorted(scope.permissions_of(session, caller)),
    )


def _acting(session: Session, caller: Principal) -> Acting | None:
    if caller.agent_id is None:
        return None
    agent = agents.one(session, caller.tenant_id, caller.agent_id)
    return Acting(
        id=agent.id,
        name=agent.name,
        code=agent.code,
        actors=list(caller.actors),
        scopes=sorted(caller.scopes),
        delegation_id=caller.delegation_id,
    )
