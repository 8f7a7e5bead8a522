"""The bearer half of a door: one `Authorization` header becomes the agent that acts, or 401."""

from starlette.requests import Request

from app.identity import signing_keys, tokens
from app.identity.doors import Door
from app.identity.principal import Principal, Scope
from app.identity.tokens import BearerRefused, Claims, InsufficientScope, InvalidToken
from app.kernel import db

LONGEST_HEADER = 4096  # bytes


async def agent_of(request: Request, door: Door) -> Principal:
    """The agent whose token this request carries, checked as SEC-25 says.

    Raises:
        InvalidToken: there is no token, or none that counts here and now.
        DelegationPaused: the token counts, and its user or a limit paused the agent.
    """
    claims = await claims_of(request, door)
    try:
        return await db.look(tokens.principal_now, claims)
    except InvalidToken as refused:
        refused.headers = challenge(refused, door)
        raise


async def claims_of(request: Request, door: Door) -> Claims:
    """What the token of this request says; whether that still stands, the database knows.

    For who asks in a transaction of its own, by `tokens.principal_now`, before anything else.

    Raises:
        InvalidToken: there is no token of ours, for this door, whose time is not over.
    """
    presented = request.headers.getlist("authorization")
    try:
        return tokens.read(await _token(presented), frozenset({door.resource}))
    except InvalidToken as refused:
        refused.headers = challenge(refused, door, presented=bool(presented))
        raise


def require(principal: Principal, scope: Scope, door: Door) -> None:
    """Go on only if the credential reaches as far as `scope`; a person's always does.

    Raises:
        InsufficientScope: it does not.
    """
    if not principal.has_scope(scope):
        refused = InsufficientScope()
        refused.headers = challenge(refused, door)
        raise refused


def challenge(refused: BearerRefused, door: Door, *, presented: bool = True) -> dict[str, str]:
    """The `WWW-Authenticate` header: where the door is described, and all scopes it may ask for."""
    error = f'error="{refused.reason}", ' if presented else ""
    scopes = " ".join(door.scopes)
    return {
        "WWW-Authenticate": (
            f'Bearer {error}resource_metadata="{door.metadata_url}", scope="{scopes}"'
        )
    }


async def _token(headers: list[str]) -> str:
    if len(headers) != 1 or len(headers[0]) > LONGEST_HEADER:
        raise InvalidToken
    scheme, _, token = headers[0].partition(" ")
    if scheme.lower() != "bearer" or not token or " " in token:
        raise InvalidToken
    await signing_keys.freshen()
    return token
