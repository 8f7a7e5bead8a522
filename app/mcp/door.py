"""The door of `/mcp`, a plain ASGI application around the SDK's (SEC-58).

What it refuses, it refuses before the SDK reads a byte: origin, cookie, token, size and form of the
body, rates, scope, in this order. Host and size are looked at by the layers before it as well.
Lists and calls like those that the SDK has taken before are answered here.
"""

from sqlmodel import Session
from starlette.requests import ClientDisconnect, Request

from app.commands import pacing, published
from app.identity import bearer, cookies
from app.identity.doors import Door
from app.identity.errors import AmbiguousCredentials, CrossSite
from app.identity.guard import Repeated
from app.identity.principal import Principal
from app.identity.principal import Scope as Reach
from app.identity.tokens import Claims, InvalidToken
from app.kernel import db, rates, settings
from app.kernel.asgi.wire import App, Message, Receive, Scope, Send, answer
from app.kernel.errors import AppError, MethodNotAllowed
from app.mcp import direct, entered, holding, message, shapes
from app.mcp.entered import Entered
from app.mcp.message import CALL, LIST, Posted, Unreadable
from app.mcp.splicing import splicing

METHODS = ("POST", "GET", "DELETE")
LISTS = frozenset({LIST, "resources/list", "resources/templates/list", "prompts/list"})
ALLOWED_HEADERS = (
    "Authorization, Content-Type, Accept, Last-Event-ID, Mcp-Method, Mcp-Name, "
    "Mcp-Protocol-Version, Mcp-Session-Id"
)
EXPOSED_HEADERS = "Mcp-Session-Id, WWW-Authenticate, Retry-After"
PREFLIGHT_S = 600


class McpDoor:
    """Lets agents in, one request at a time; `behind` is the SDK's application."""

    path = "/mcp"

    def __init__(self, behind: App) -> None:
        self._behind = behind

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request.

        Raises:
            AppError: it was refused at the door, which the application says as everywhere.
        """
        scope["route"] = self  # for the log, which names a request by it
        # the server leaves blanks after a value, which are no part of it (RFC 9110, 5.5)
        scope["headers"] = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        request = Request(scope, receive)
        origin = _origin_of(request)
        if request.method == "OPTIONS" and origin:
            await answer(send, 204, _preflight(origin))
            return
        send = _dressed(origin, send)
        try:
            await self._admit(request, scope, receive, send)
        except Unreadable as refused:
            await answer(send, 400, {"content-type": "application/json"}, refused.data())
        except ClientDisconnect:
            return

    async def _admit(self, request: Request, scope: Scope, receive: Receive, send: Send) -> None:
        if request.method not in METHODS:
            raise MethodNotAllowed
        _refuse_cookie(request)
        claims = await bearer.claims_of(request, Door.MCP)
        posted = await _posted(claims, receive) if request.method == "POST" else None
        shape = shapes.of(scope, posted) if posted is not None else None
        who = await _enter(claims, posted, shape)
        if isinstance(who, bytes):
            await answer(send, 200, {"content-type": "application/json"}, who)
            return
        scope[entered.KEY] = who
        if posted is not None:
            receive, send = message.again(posted, receive), splicing(who, send)
        if request.method == "GET":
            await holding.stream(who, self._behind, scope, receive, send)
        else:
            await holding.short(who, self._behind, scope, receive, send)


def _origin_of(request: Request) -> str:
    """The origin of the page that asks, where one does; only listed ones may read answers."""
    origins = request.headers.getlist("origin")
    if len(origins) > 1:
        raise Repeated
    chosen = settings.current()
    if origins and origins[0] not in {chosen.origin, *chosen.cors_origins}:
        raise CrossSite
    return origins[0] if origins else ""


def _preflight(origin: str) -> dict[str, str]:
    return {
        "access-control-allow-origin": origin,
        "access-control-allow-methods": ", ".join(METHODS),
        "access-control-allow-headers": ALLOWED_HEADERS,
        "access-control-max-age": str(PREFLIGHT_S),
        "vary": "Origin",
    }


def _dressed(origin: str, send: Send) -> Send:
    """A `send` that lets the page of `origin` read the answer, where one asked."""
    lines = {
        "access-control-allow-origin": origin,
        "access-control-expose-headers": EXPOSED_HEADERS,
        "vary": "Origin",
    }
    encoded = [(name.encode(), text.encode("latin-1")) for name, text in lines.items()]

    async def dressed(sent: Message) -> None:
        if sent["type"] == "http.response.start":
            more = encoded if origin else []
            # the SDK's own answers have a name for a status where a number belongs
            headers = [*sent.get("headers", ()), *more]
            sent = {**sent, "status": int(sent["status"]), "headers": headers}
        await send(sent)

    return dressed


def _refuse_cookie(request: Request) -> None:
    """A cookie is a person, and people have the console (SEC-1)."""
    if cookies.session_secret(request) is None:
        return
    if "authorization" in request.headers:
        raise AmbiguousCredentials
    refused = InvalidToken()
    refused.headers = bearer.challenge(refused, Door.MCP, presented=False)
    raise refused


async def _posted(claims: Claims, receive: Receive) -> Posted:
    """The message; whoever may not send any is not told what is wrong with it."""
    try:
        return await message.read(receive)
    except (Unreadable, AppError):
        await entered.come_in(claims)
        raise


async def _enter(claims: Claims, posted: Posted | None, shape: bytes | None) -> Entered | bytes:
    """Who goes on to the SDK; or the answer, to a request whose shape it has taken before."""
    frame = shapes.frames.of(shape)
    if posted is None or frame is None:
        who, answered = await entered.come_in(claims), None
        who.shape = shape
        await _count(who.principal, posted)
    elif posted.method == CALL:
        made = await direct.call(claims, posted, frame)
        if isinstance(made, bytes) or made.tried is not None:
            return made
        who, answered = made, None
    else:
        who, answered = await direct.tools_of(claims, posted, frame)
        await _count(who.principal, posted)
    await _check_scope(who.principal, posted)
    return who if answered is None else answered


async def _count(who: Principal, posted: Posted | None) -> None:
    if posted is not None and posted.method == CALL:
        await pacing.admit(who.tenant_id, who.delegation_id, posted.tool)
    else:
        rates.of_process().hit("session", who.tenant_id, who.delegation_id)


async def _check_scope(who: Principal, posted: Posted | None) -> None:
    if posted is None:
        return
    if posted.method in LISTS:
        bearer.require(who, Reach.CATALOG_READ, Door.MCP)
    elif posted.method == CALL and not who.has_scope(Reach.COMMANDS_INVOKE):
        reads = await db.read(_only_reads, who.tenant_id, posted.tool)
        bearer.require(who, Reach.COMMANDS_READ if reads else Reach.COMMANDS_INVOKE, Door.MCP)


def _only_reads(session: Session, tenant_id: str, code: str) -> bool:
    """Whether a call changes nothing; one of a command that is not there does not either."""
    found = published.current(session.connection(), tenant_id, code)
    return found is None or not found.definition.writes
