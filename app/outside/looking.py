"""A look at a server, by an administrator: what does it offer now?"""

from sqlmodel import Session

from app.identity.principal import Principal
from app.kernel import db
from app.kernel.db import Work
from app.outside import reaching, servers, tools
from app.outside.connection import Connection
from app.outside.endpoint import Endpoint
from app.outside.offers import Offer
from app.outside.results import Lost


async def look(person: Principal, server_id: str) -> str:
    """Ask a server for its tools and keep what it says; returns what was wrong, empty: nothing."""
    try:
        await db.read(_check, person, server_id)
        found = await _offers(await reaching.reach(person.tenant_id, server_id, person.user_id))
    except Lost as lost:
        await db.transaction(_fault, person, server_id, lost.rule)
        return lost.rule
    await db.transaction(_keep, person, server_id, found)
    return ""


async def _offers(endpoint: Endpoint) -> list[Offer]:
    connection = Connection(endpoint)
    try:
        await connection.ready()
        return list(connection.offers.values())
    finally:
        await connection.close()


def _check(session: Session, person: Principal, server_id: str) -> None:
    servers.check(session, person)
    servers.one(session, person.tenant_id, server_id)


def _fault(work: Work, person: Principal, server_id: str, rule: str) -> None:
    tools.take_fault(work, servers.one(work.session, person.tenant_id, server_id), rule)


def _keep(work: Work, person: Principal, server_id: str, found: list[Offer]) -> None:
    servers.check(work.session, person)
    tools.take_in(work, servers.one(work.session, person.tenant_id, server_id), found)
