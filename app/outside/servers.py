"""Outside servers of a tenant: registered, looked at and removed by administrators (SEC-68)."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import delete
from sqlmodel import Session, col, func, select
from sqlmodel.sql.expression import SelectOfScalar

from app.access import scope
from app.commands import publishing, webhooks
from app.identity import facts
from app.identity.principal import Principal
from app.kernel import clock, ids, sealing
from app.kernel.db import Work
from app.kernel.errors import Conflict, FieldError, Invalid, NotFound
from app.kernel.i18n import N_
from app.outside import names, programs
from app.outside.models import (
    Access,
    McpLink,
    McpLinkRequest,
    McpServer,
    McpTool,
    Transport,
)
from app.outside.oauth import Client
from app.outside.results import Lost

MANAGE = "command.outside.manage"
MOST = 20  # of a tenant


class TooManyServers(Conflict):
    """A tenant has so many."""

    reason = "too_many_servers"
    says = N_("There are as many outside servers as there can be. Remove one first.")


def check(session: Session, person: Principal) -> None:
    """Return where a person may manage what is the whole tenant's.

    Raises:
        PermissionDenied, NotFound: they may not.
    """
    scope.require_tenant_wide(session, person, MANAGE)


def all_of(session: Session, tenant_id: str) -> Sequence[McpServer]:
    """Every server of a tenant, by name."""
    query = select(McpServer).where(McpServer.tenant_id == tenant_id)
    return session.exec(query.order_by(col(McpServer.name))).all()


def one(session: Session, tenant_id: str, server_id: str) -> McpServer:
    """A server of this tenant.

    Raises:
        NotFound: there is none of that id here.
    """
    query = select(McpServer).where(McpServer.tenant_id == tenant_id, McpServer.id == server_id)
    if (found := session.exec(query).first()) is None:
        raise NotFound
    return found


def add(
    work: Work,
    person: Principal,
    *,
    name: str,
    url: str = "",
    access: Access = Access.OPEN,
    transport: Transport = Transport.HTTP,
    client_id: str = "",
    client_secret: str = "",
) -> McpServer:
    """A new server; nothing of it can be used before its tools are enabled.

    `url` is empty where the operator's file names a program of this name (`programs.py`).

    Raises:
        Invalid: the name or the address does not do.
        TooManyServers: remove one first.
    """
    session, tenant_id = work.session, person.tenant_id
    if not names.is_server(name):
        says = N_("Use up to 24 small letters and digits, a letter first.")
        raise Invalid(FieldError("name", says))
    if session.exec(_named(tenant_id, name)).first() is not None:
        raise Invalid(FieldError("name", N_("Another server has this name.")))
    if transport is Transport.HTTP and (says := webhooks.fault_of(url)):
        raise Invalid(FieldError("url", says))
    counted = select(func.count()).select_from(McpServer).where(McpServer.tenant_id == tenant_id)
    if session.exec(counted).one() >= MOST:
        raise TooManyServers
    id = ids.ulid()
    made = McpServer(
        tenant_id=tenant_id,
        id=id,
        name=name,
        transport=transport,
        url=url,
        access=access,
        client_id=client_id,
        client_secret_sealed=seal_secret(tenant_id, id, client_secret) if client_secret else None,
        created_at=clock.now(),
        created_by=person.user_id,
    )
    session.add(made)
    session.flush()
    given = {"name": name, "url": url, "access": access.value}
    changes = {field: (None, value) for field, value in given.items()}
    _record(work, person, "add", made, changes)
    return made


def add_program(work: Work, person: Principal, name: str) -> McpServer:
    """A new server that is a program, as the operator's file names it.

    Raises:
        Invalid: the file does not name it.
        TooManyServers: remove one first.
    """
    try:
        is_listed = name in programs.listed(work.session, person.tenant_id)
    except Lost:
        is_listed = False
    if not is_listed:
        raise Invalid(FieldError("program", N_("Choose one of the offered values.")))
    return add(work, person, name=name, transport=Transport.STDIO)


def set_enabled(work: Work, person: Principal, server: McpServer, is_enabled: bool) -> None:
    """Let a server's tools be used, or none of them for now."""
    if server.is_enabled == is_enabled:
        return
    server.is_enabled = is_enabled
    work.session.add(server)
    _record(work, person, "change", server, {"enabled": (not is_enabled, is_enabled)})
    publishing.sync(work, server.tenant_id)


def remove(work: Work, person: Principal, server: McpServer) -> None:
    """Forget a server: its tools, its commands, and everybody's access to it."""
    for table in (McpLinkRequest, McpLink, McpTool):
        work.connection.execute(
            delete(table).where(
                col(table.tenant_id) == server.tenant_id, col(table.server_id) == server.id
            )
        )
    work.session.delete(server)
    work.session.flush()
    _record(work, person, "remove", server, {"name": (server.name, None)})
    publishing.sync(work, server.tenant_id)


def set_client(
    work: Work, person: Principal, server: McpServer, issuer: str, client: Client
) -> None:
    """Keep how an issuer knows this deployment: its id and its secret, or that it has none."""
    before = (server.client_issuer, server.client_id)
    if client.id != server.client_id:
        server.is_registered = True
        server.client_id = client.id
        server.client_secret_sealed = (
            seal_secret(server.tenant_id, server.id, client.secret) if client.secret else None
        )
    server.client_issuer = issuer
    work.session.add(server)
    after = (server.client_issuer, server.client_id)
    if after != before:
        fields = zip(("issuer", "client"), zip(before, after, strict=True), strict=True)
        _record(work, person, "change", server, dict(fields))


def client_of(server: McpServer, issuer: str) -> Client | None:
    """How an issuer knows this deployment; None: it has to be registered there.

    Raises:
        Lost: an administrator gave the client of another issuer.
    """
    if not server.client_id:
        return None
    if server.client_issuer not in ("", issuer):
        if server.is_registered:
            return None
        raise Lost("oauth_other_issuer")
    return Client(server.client_id, secret_of(server))


def seal_secret(tenant_id: str, server_id: str, secret: str) -> bytes:
    """The secret by which a server knows this deployment, sealed."""
    return sealing.seal(secret.encode(), _purpose(tenant_id, server_id))


def secret_of(server: McpServer) -> str:
    """The same in the clear; empty where there is none."""
    if server.client_secret_sealed is None:
        return ""
    purpose = _purpose(server.tenant_id, server.id)
    return sealing.unseal(server.client_secret_sealed, purpose).decode()


def _named(tenant_id: str, name: str) -> SelectOfScalar[str]:
    return select(McpServer.id).where(McpServer.tenant_id == tenant_id, McpServer.name == name)


def _purpose(tenant_id: str, server_id: str) -> str:
    return f"mcp_client:{tenant_id}:{server_id}"


def _record(
    work: Work,
    person: Principal,
    verb: str,
    server: McpServer,
    changes: dict[str, tuple[Any, Any]],
) -> None:
    facts.record(
        work,
        f"outside.server.{verb}",
        person,
        target=("mcp_server", server.id),
        changes=changes,
        details={"server": server.name},
    )
