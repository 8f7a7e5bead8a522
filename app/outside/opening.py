"""Opens a connection to a server for one user, and sees whether what it offers is what was pinned.

Every connection looks: a tool that changed is turned off by the first who notices (SEC-68).
"""

from sqlmodel import Session

from app.kernel import db
from app.outside import links, reaching, servers, tools
from app.outside.connection import Connection
from app.outside.offers import Offer
from app.outside.results import UNAUTHORIZED, Lost


async def opened(tenant_id: str, server_id: str, user_id: str) -> Connection:
    """A connection that is ready; whoever asked for it closes it.

    Raises:
        Lost: the server cannot be reached, or not by this user; nothing is left open.
    """
    pinned = await db.read(_pinned, tenant_id, server_id)
    connection = Connection(await reaching.reach(tenant_id, server_id, user_id), pinned)
    try:
        await connection.ready()
        of_server = (tenant_id, server_id, connection.offers)
        if await db.read(tools.has_changed, *of_server):
            await db.transaction(tools.notice, *of_server)
    except Lost as lost:
        if lost.rule == UNAUTHORIZED:
            of_link = (tenant_id, user_id, server_id, connection.link)
            await db.transaction(links.was_refused, *of_link)
        raise
    except BaseException:
        await connection.close()
        raise
    return connection


def _pinned(session: Session, tenant_id: str, server_id: str) -> dict[str, Offer]:
    if not servers.one(session, tenant_id, server_id).is_enabled:
        raise Lost("server_off")
    return tools.pinned(session, tenant_id, server_id)
