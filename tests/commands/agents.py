"""Programs that call the command API: a token of an agent that acts for somebody."""

import httpx2

from app.identity import delegations
from app.identity.models import User
from app.identity.oauth import operator
from app.identity.principal import Scope
from app.kernel import db
from tests.people import Company, World

EVERYTHING = (
    Scope.CATALOG_READ,
    Scope.COMMANDS_READ,
    Scope.COMMANDS_INVOKE,
    Scope.EVENTS_READ,
    Scope.AUDIT_READ,
)


def program(
    world: World, company: Company, user: User, scopes: tuple[Scope, ...] = EVERYTHING
) -> httpx2.AsyncClient:
    """A client with the token of the agent `expenses`, which acts for `user`."""
    agent = company.agents["expenses"]
    db.transact_now(delegations.make_for, user, agent, scopes)
    login = f"{company.tenant.slug}/{user.login}"
    token = db.transact_now(operator.mint, login, agent.code, "api")
    made = world.anonymous()
    made.headers["Authorization"] = f"Bearer {token}"
    made.headers["Accept"] = "application/json"
    return made
