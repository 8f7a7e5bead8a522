"""A person's own access to an outside server: sealed, and theirs alone (SEC-80)."""

from collections.abc import Sequence
from datetime import timedelta

from sqlmodel import Session, col, select

from app.identity import facts
from app.identity.principal import Principal
from app.kernel import clock, sealing
from app.kernel.db import Work
from app.kernel.errors import FieldError, Invalid
from app.kernel.i18n import N_
from app.outside.models import McpLink, McpServer
from app.outside.oauth import Client, Found, Known

LONGEST = 8_000  # characters of a token
EARLY = timedelta(seconds=30)


def live(session: Session, server: McpServer, user_id: str) -> McpLink | None:
    """A user's access to a server, unless the server takes it no more."""
    key = (server.tenant_id, user_id, server.id)
    found = session.get(McpLink, key, populate_existing=True)
    return found if found is not None and not found.is_broken else None


def is_over(link: McpLink) -> bool:
    """Whether its token has to be renewed."""
    return link.expires_at is not None and link.expires_at <= clock.now()


def of_user(session: Session, person: Principal) -> Sequence[McpLink]:
    """Every access of a person."""
    query = select(McpLink).where(
        McpLink.tenant_id == person.tenant_id, McpLink.user_id == person.user_id
    )
    return session.exec(query.order_by(col(McpLink.server_id))).all()


def give_token(work: Work, person: Principal, server: McpServer, token: str) -> McpLink:
    """Keep a token that a person has of a server.

    Raises:
        Invalid: it is none.
    """
    if not token or len(token) > LONGEST or not token.isascii() or not token.isprintable():
        raise Invalid(FieldError("token", N_("Paste the token as the server shows it.")))
    return keep(work, person, server, token)


def keep(
    work: Work,
    person: Principal,
    server: McpServer,
    token: str,
    *,
    refresh: str = "",
    scope: str = "",
    lives_s: int | None = None,
    known: Known | None = None,
) -> McpLink:
    """Keep a person's access; what was kept before is gone.

    `known` is who gave it: it is renewed there and nowhere else.
    """
    key = (server.tenant_id, person.user_id, server.id)
    row = work.session.get(McpLink, key, populate_existing=True)
    is_new = row is None
    if row is None:
        row = McpLink(
            tenant_id=server.tenant_id,
            user_id=person.user_id,
            server_id=server.id,
            token_sealed=b"",
            created_at=clock.now(),
            version=0,
        )
    put(row, token, refresh=refresh, scope=scope, lives_s=lives_s)
    _put_known(row, known)
    work.session.add(row)
    if is_new or row.is_broken:
        _record(work, person, "make", server)
    row.is_broken = False
    return row


def put(row: McpLink, token: str, *, refresh: str, scope: str, lives_s: int | None) -> None:
    """Write tokens into a row, sealed."""
    row.token_sealed = sealing.seal(token.encode(), _purpose(row, "token"))
    row.refresh_sealed = (
        sealing.seal(refresh.encode(), _purpose(row, "refresh")) if refresh else None
    )
    row.scope = scope[:1_000]
    row.expires_at = clock.now() + timedelta(seconds=lives_s) - EARLY if lives_s else None
    row.version += 1


def known_of(link: McpLink) -> Known | None:
    """Who gave an access, and how we are known there; None where a person brought it."""
    if link.oauth is None:
        return None
    sealed = link.client_secret_sealed
    secret = sealing.unseal(sealed, _purpose(link, "client")).decode() if sealed else ""
    return Known(Found.of(link.oauth), Client(link.client_id, secret))


def end(work: Work, person: Principal, server: McpServer) -> None:
    """Forget a person's access to a server."""
    key = (server.tenant_id, person.user_id, server.id)
    row = work.session.get(McpLink, key, populate_existing=True)
    if row is not None:
        work.session.delete(row)
        _record(work, person, "end", server)


def version(session: Session, tenant_id: str, user_id: str, server_id: str) -> int:
    """Which version of a user's access there is now; 0: none that a server takes."""
    found = session.get(McpLink, (tenant_id, user_id, server_id), populate_existing=True)
    return found.version if found is not None and not found.is_broken else 0


def was_refused(work: Work, tenant_id: str, user_id: str, server_id: str, version: int) -> None:
    """A server took this token no more: the next call renews it, or the person links anew."""
    row = work.session.get(McpLink, (tenant_id, user_id, server_id), populate_existing=True)
    if row is None or row.version != version:
        return
    if row.refresh_sealed is not None and not is_over(row):
        row.expires_at = clock.now()
    else:
        row.is_broken = True
    work.session.add(row)


def token_of(link: McpLink) -> str:
    """The token in the clear."""
    return sealing.unseal(link.token_sealed, _purpose(link, "token")).decode()


def refresh_of(link: McpLink) -> str:
    """What gets a new token, in the clear; empty where there is none."""
    if link.refresh_sealed is None:
        return ""
    return sealing.unseal(link.refresh_sealed, _purpose(link, "refresh")).decode()


def _put_known(row: McpLink, known: Known | None) -> None:
    secret = known.client.secret if known else ""
    row.oauth = known.at.data() if known else None
    row.client_id = known.client.id if known else ""
    row.client_secret_sealed = (
        sealing.seal(secret.encode(), _purpose(row, "client")) if secret else None
    )


def _purpose(link: McpLink, what: str) -> str:
    return f"mcp_link:{what}:{link.tenant_id}:{link.user_id}:{link.server_id}"


def _record(work: Work, person: Principal, verb: str, server: McpServer) -> None:
    facts.record(
        work,
        f"outside.link.{verb}",
        person,
        target=("mcp_server", server.id),
        details={"server": server.name},
    )
