"""How one caller reaches a server: with the caller's own access, never with another's (RUN-96)."""

from sqlmodel import Session

from app.identity.models import User, UserStatus
from app.kernel import db
from app.outside import consent, links, programs, servers
from app.outside.endpoint import Endpoint
from app.outside.models import Access, McpLink, McpServer, Transport
from app.outside.results import Lost


async def reach(tenant_id: str, server_id: str, user_id: str) -> Endpoint:
    """Where a server is for this user; a token whose time is over is renewed first.

    Raises:
        NotFound: there is no such server.
        Lost: the user is not there any more, or not linked to it, or its program is not in the
            operator's file.
    """
    found = await db.read(_found, tenant_id, server_id, user_id)
    if isinstance(found, Endpoint):
        return found
    server, link = found
    token, version = await consent.token(server, link)
    return Endpoint(url=server.url, token=token, link=version)


def _found(
    session: Session, tenant_id: str, server_id: str, user_id: str
) -> Endpoint | tuple[McpServer, McpLink]:
    server = servers.one(session, tenant_id, server_id)
    user = session.get(User, (tenant_id, user_id), populate_existing=True)
    if user is None or user.status != UserStatus.ACTIVE:
        raise Lost("user_gone")
    if server.transport == Transport.STDIO:
        return Endpoint(program=programs.of(session, server))
    if server.access == Access.OPEN:
        return Endpoint(url=server.url)
    link = links.live(session, server, user_id)
    if link is None:
        raise Lost("link_needed")
    return server, link
