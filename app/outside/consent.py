"""A person links themselves to a server: asked once, bound to their browser session (SEC-P25).

What comes back counts once, for the session that asked, within ten minutes.
"""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from weakref import WeakValueDictionary

from sqlalchemy import CursorResult, delete, update
from sqlmodel import Session, col

from app.access import scope
from app.identity.principal import Principal
from app.kernel import clock, db, ids, sealing
from app.kernel.db import Work
from app.outside import definitions, links, oauth, servers
from app.outside.models import Access, McpLink, McpLinkRequest, McpServer
from app.outside.oauth import Client, Found, Known, Tokens
from app.outside.results import Lost

LIVES = timedelta(minutes=10)


_registering: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()


@dataclass(frozen=True, slots=True)
class _Asked:
    """A consent that came back, taken once."""

    server: McpServer
    verifier: str
    known: Known


async def begin(person: Principal, server_id: str) -> str:
    """The address at which the server asks this person.

    Raises:
        NotFound: there is no such server.
        Lost: it does not say how to get consent, or asks for none, or is of another issuer by now.
    """
    server = await db.read(_asks, person, server_id)
    at = await oauth.found(server.url)
    state, verifier = oauth.new_secret(), oauth.new_secret()
    key = (person.tenant_id, server_id)
    async with _registering.setdefault(key, asyncio.Lock()):
        server = await db.read(_asks, person, server_id)
        client = servers.client_of(server, at.issuer) or await oauth.registered(at)
        known = Known(at, client)
        known = await db.transaction(_begin, person, server_id, known, (state, verifier))
    return oauth.asking(known.at, known.client, state, verifier)


async def complete(person: Principal, state: str, code: str, iss: str | None) -> McpServer:
    """Take the answer that a person came back with; they are linked now.

    Raises:
        Lost: it is not theirs, too late, of another issuer, or gives no token.
    """
    asked = await db.transaction(_take, person, state)
    at, client = asked.known.at, asked.known.client
    oauth.check_issuer(at, iss)
    if not code:
        raise Lost("oauth_refused")
    tokens = await oauth.exchanged(at, client, code, asked.verifier)
    await db.transaction(_keep, person, asked, tokens)
    return asked.server


async def token(server: McpServer, link: McpLink) -> tuple[str, int]:
    """The token of a link, renewed where its time is over, by who gave it; and its version.

    Raises:
        Lost: `link_needed`, the person has to link anew; anything else may pass.
    """
    known = links.known_of(link)
    is_others = known is not None and known.at.issuer != server.client_issuer
    if is_others or (known is None and server.access == Access.OAUTH):
        raise Lost("link_needed")
    if not links.is_over(link):
        return links.token_of(link), link.version
    refresh = links.refresh_of(link)
    if not refresh or known is None:
        raise Lost("link_needed")
    try:
        tokens = await oauth.renewed(known.at, known.client, refresh)
    except Lost as lost:
        if lost.rule == "link_needed":
            await db.transaction(_break, link)
        raise
    return await db.transaction(_renew, link, tokens)


def tidy(work: Work) -> None:
    """Forget what nobody came back with."""
    work.connection.execute(
        delete(McpLinkRequest).where(col(McpLinkRequest.expires_at) <= clock.now())
    )


def check(session: Session, person: Principal) -> None:
    """Return where a person's agents may use anything of the outside.

    Raises:
        PermissionDenied: they may not.
    """
    if not scope.may(session, person, definitions.USE):
        scope.require(session, person, definitions.READ)


def _asks(session: Session, person: Principal, server_id: str) -> McpServer:
    """A server that asks each person for consent."""
    check(session, person)
    server = servers.one(session, person.tenant_id, server_id)
    if server.access != Access.OAUTH or not server.is_enabled:
        raise Lost("oauth_not_asked")
    return server


def _begin(
    work: Work, person: Principal, server_id: str, known: Known, secrets: tuple[str, str]
) -> Known:
    """Keep what is asked; a client that somebody else registered meanwhile is the one."""
    state, verifier = secrets
    tidy(work)
    server = _asks(work.session, person, server_id)
    client = servers.client_of(server, known.at.issuer) or known.client
    servers.set_client(work, person, server, known.at.issuer, client)
    digest = ids.sha256(state)
    secret = client.secret.encode()
    sealed = sealing.seal(secret, _purpose(person.tenant_id, digest, "client")) if secret else None
    work.session.add(
        McpLinkRequest(
            tenant_id=person.tenant_id,
            state_sha256=digest,
            server_id=server_id,
            user_id=person.user_id,
            session_id=person.session_id or "",
            verifier_sealed=sealing.seal(verifier.encode(), _purpose(person.tenant_id, digest)),
            oauth=known.at.data(),
            client_id=client.id,
            client_secret_sealed=sealed,
            expires_at=clock.now() + LIVES,
        )
    )
    return Known(known.at, client)


def _take(work: Work, person: Principal, state: str) -> _Asked:
    digest = ids.sha256(state)
    row = work.session.get(McpLinkRequest, (person.tenant_id, digest), populate_existing=True)
    is_theirs = (
        row is not None
        and (row.user_id, row.session_id) == (person.user_id, person.session_id)
        and row.expires_at > clock.now()
    )
    if row is None or not is_theirs:
        raise Lost("oauth_not_asked")
    taken: CursorResult[object] = work.connection.execute(
        delete(McpLinkRequest).where(
            col(McpLinkRequest.tenant_id) == person.tenant_id,
            col(McpLinkRequest.state_sha256) == digest,
        )
    )
    if taken.rowcount != 1:
        raise Lost("oauth_not_asked")
    verifier = sealing.unseal(row.verifier_sealed, _purpose(person.tenant_id, digest)).decode()
    sealed = row.client_secret_sealed
    purpose = _purpose(person.tenant_id, digest, "client")
    secret = sealing.unseal(sealed, purpose).decode() if sealed else ""
    known = Known(Found.of(row.oauth), Client(row.client_id, secret))
    return _Asked(_asks(work.session, person, row.server_id), verifier, known)


def _keep(work: Work, person: Principal, asked: _Asked, tokens: Tokens) -> None:
    links.keep(
        work,
        person,
        _asks(work.session, person, asked.server.id),
        tokens.access,
        refresh=tokens.refresh,
        scope=tokens.scope,
        lives_s=tokens.lives_s,
        known=asked.known,
    )


def _renew(work: Work, link: McpLink, tokens: Tokens) -> tuple[str, int]:
    """Write the new tokens down, unless somebody was faster: then theirs are used."""
    key = (link.tenant_id, link.user_id, link.server_id)
    row = work.session.get(McpLink, key, populate_existing=True)
    if row is None:
        raise Lost("link_needed")
    if row.version != link.version:
        return links.token_of(row), row.version
    links.put(
        row,
        tokens.access,
        refresh=tokens.refresh,
        scope=tokens.scope,
        lives_s=tokens.lives_s,
    )
    work.session.add(row)
    return tokens.access, row.version


def _break(work: Work, link: McpLink) -> None:
    work.connection.execute(
        update(McpLink)
        .where(
            col(McpLink.tenant_id) == link.tenant_id,
            col(McpLink.user_id) == link.user_id,
            col(McpLink.server_id) == link.server_id,
            col(McpLink.version) == link.version,
        )
        .values(is_broken=True)
    )


def _purpose(tenant_id: str, digest: str, what: str = "verifier") -> str:
    return f"mcp_link_request:{what}:{tenant_id}:{digest}"


def listed(session: Session, person: Principal) -> list[McpServer]:
    """The servers that ask something of each person."""
    check(session, person)
    return [
        server
        for server in servers.all_of(session, person.tenant_id)
        if server.access != "open" and server.is_enabled
    ]
