"""Who came in with one request, for the handlers behind the SDK (SEC-25, SEC-58).

It travels in the scope of the request, so it belongs to what was presented with it, never to a
session that an earlier request began.
"""

from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlmodel import Session

from app.access import standing
from app.commands.outcome import Done
from app.identity import bearer, tokens
from app.identity.doors import Door
from app.identity.principal import Principal
from app.identity.tokens import Claims, InvalidToken
from app.kernel import db, ids
from app.kernel.asgi.wire import Scope
from app.kernel.prepared import Prepared

T = TypeVar("T")

KEY = "assent.mcp"  # in a scope

_LANGUAGE = Prepared(
    'SELECT coalesce(u.locale, t.locale) AS tag FROM "user" u JOIN tenant t ON t.id = u.tenant_id '
    "WHERE u.tenant_id = :tenant_id AND u.id = :user_id"
)


@dataclass(slots=True)
class Entered:
    """One request of an agent.

    Attributes:
        language: of the user the agent acts for.
        call_id: of the call it may be, and what is told of a fault.
        spliced: bytes that the door puts in the place of `marker` in the answer.
        shape: of the request, where it has one.
        tried: what came of the call already, if it was made at the door.
    """

    principal: Principal
    claims: Claims
    language: str
    call_id: str = field(default_factory=ids.ulid)
    marker: str = ""
    spliced: bytes = b""
    shape: bytes | None = None
    tried: Done | Exception | None = None

    def splice(self, encoded: bytes) -> str:
        """Stand for `encoded` in the answer; nobody could have known the text before."""
        self.marker, self.spliced = f"@{ids.random_token()}@", encoded
        return self.marker


def enter(connection: Connection, claims: Claims) -> Entered:
    """Who acts, if everything behind the token stands now.

    Raises:
        InvalidToken, DelegationPaused: it does not.
    """
    principal = tokens.principal_now(connection, claims)
    found = _LANGUAGE.run(connection, tenant_id=principal.tenant_id, user_id=principal.user_id)
    return Entered(principal, claims, str(found.scalar() or ""))


async def come_in(claims: Claims) -> Entered:
    """Who acts, for one request.

    Raises:
        InvalidToken, DelegationPaused: not everything behind the token stands.
    """
    return await told(db.look(enter, claims))


async def look_again(who: Entered) -> None:
    """Go on after a wait only if everything behind the token still stands; `who` is as of now.

    Raises:
        InvalidToken, DelegationPaused: it does not.
    """
    who.principal = (await told(db.read(_enter_again, who.claims))).principal


def of(scope: Scope) -> Entered:
    """Who came in with the request of this scope."""
    found: Entered = scope[KEY]
    return found


def of_context(ctx: Any) -> Entered:
    """The same for what the SDK hands to its handlers."""
    return of(ctx.request.scope)


async def told(reading: Awaitable[T]) -> T:
    """What is read about who acts.

    Raises:
        InvalidToken, DelegationPaused: not everything behind the token stands; how to get one that
            does, its headers say.
    """
    try:
        return await reading
    except InvalidToken as refused:
        refused.headers = bearer.challenge(refused, Door.MCP)
        raise


def _enter_again(session: Session, claims: Claims) -> Entered:
    found = enter(session.connection(), claims)
    if not standing.stands(session, found.principal):  # clients of agents behind count there too
        raise InvalidToken
    return found
