"""An outside server of somebody's tenant with a tool, and their access to it; their ids."""

from app.identity.principal import Principal
from app.kernel.db import Work
from app.outside import links, offers, servers, tools
from app.outside.models import Access
from app.outside.offers import Listed
from tests.outside.servers import CITY


def something(work: Work, person: Principal) -> dict[str, str]:
    """The same, written down."""
    server = servers.add(
        work, person, name="outsider", url="https://mcp.example/", access=Access.TOKEN
    )
    tools.take_in(work, server, offers.of([Listed("look", "Looks.", CITY, None)]))
    links.give_token(work, person, server, "a-token")
    (tool,) = tools.of_server(work.session, server)
    return {"server_id": server.id, "tool_id": tool.id}
