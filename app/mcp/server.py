"""The SDK's server, put together: what it serves, how it is bounded, and what stands around it."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import structlog
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
)
from pydantic import ValidationError

from app.kernel import i18n, json, keyring, settings
from app.kernel.asgi.hosts import DEFAULT_PORTS, LOOPBACK
from app.kernel.asgi.wire import Receive, Scope, Send
from app.kernel.i18n import N_
from app.mcp import (
    answers,
    approving,
    calling,
    clients,
    entered,
    listing,
    message,
    news,
    rings,
    shapes,
    states,
)
from app.mcp.clients import Context
from app.mcp.entered import Entered
from app.mcp.listing import ForeignCursor
from app.mcp.sessions import Sessions

NAME, TITLE = "assent", "Assent"
LIST_TTL_MS = 5_000
SESSIONS, IDLE_S = 2_000, 600
LISTS = (message.LIST, "resources/list", "resources/templates/list", "prompts/list")
INSTRUCTIONS = N_(
    "Every tool is a command of the user's workspace, and its risk goes from L0, which only reads, "
    "to L4, which cannot be recovered from. Before you call a tool of L2, tell the user what will "
    "change. L3, L4 and whatever cannot be undone needs the consent of a person, given in the "
    "console to exactly this call; you cannot give it and nobody can give it in a chat. When a "
    "call needs it, show the user the address you get, then repeat the same call. A refusal names "
    "its stage and an advice: follow the advice. Never repeat a call that is not idempotent after "
    "a failure without reading the record first, unless it has the same idempotency key."
)

log = structlog.get_logger(__name__)
logging.getLogger("mcp").setLevel(logging.ERROR)  # below, it names sessions and hosts


class McpServer:
    """One server with its sessions; `running` once, then an ASGI application."""

    def __init__(self, version: str) -> None:
        keyring.prepare(rings.STATES)
        self.sdk = build(version)
        self._manager = StreamableHTTPSessionManager(
            self.sdk,
            security_settings=_security(),
            session_idle_timeout=IDLE_S,
            max_request_body_size=json.MAX_BYTES,
            max_sessions=SESSIONS,
        )
        handle = AuthContextMiddleware(self._manager.handle_request)
        self._sessions = Sessions(handle, IDLE_S, approving.questions.end_session)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve inside of it."""
        end = news.of_process().listen()
        try:
            async with self._manager.run():
                yield
        finally:
            self._sessions.end_all()
            end()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that the door let in; a session is of who began it.

        Raises:
            TooManySessions: it would begin one too many.
        """
        scope["user"] = AuthenticatedUser(_token(entered.of(scope)))
        await self._sessions(scope, receive, send)


def build(version: str) -> Server[Any]:
    """The server of the product, with nothing but the catalogue in it."""
    server: Server[Any] = Server(
        NAME,
        version=version,
        title=TITLE,
        instructions=INSTRUCTIONS,
        cache_hints={method: CacheHint(LIST_TTL_MS, "private") for method in _cacheable()},
        get_tool_input_schema=_no_header_of_ours,
        on_list_tools=list_tools,
        on_call_tool=calling.call_tool,
        on_list_resources=_no_resources,
        on_list_resource_templates=_no_templates,
        on_list_prompts=_no_prompts,
    )
    # in the place of the SDK's own spans, which hold names of tools
    server.middleware[:] = [contain, instruct, states.boundary(), splice, remember]
    return server


async def list_tools(ctx: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
    """A page of the caller's catalogue; its tools are spliced into the answer."""
    who = entered.of_context(ctx)
    cursor = params.cursor if params is not None else None
    try:
        encoded, following = await listing.page(who.principal, who.language, cursor)
    except ForeignCursor as refused:
        problem = answers.problem_of(refused, who.call_id)
        raise MCPError(INVALID_PARAMS, "Invalid cursor", problem) from None
    who.splice(encoded)
    return ListToolsResult(tools=[], next_cursor=following)


async def contain(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Let no fault of ours out: its text would reach the client (SEC-66)."""
    try:
        return await call_next(ctx)
    except (MCPError, ValidationError):
        raise
    except Exception as fault:  # the edge of a request; the log has the rest
        who = entered.of_context(ctx)
        log.exception("mcp_failed", call_id=who.call_id, exc_info=fault)
        raise answers.fault(who.call_id) from None


async def instruct(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Say the instructions in the user's language."""
    result = await call_next(ctx)
    if isinstance(result, dict) and result.get("instructions") == INSTRUCTIONS:
        with i18n.speaking(entered.of_context(ctx).language):
            return {**result, "instructions": i18n.gettext(INSTRUCTIONS)}
    return result


async def splice(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Put the marker of encoded tools where the door will put the tools.

    The SDK's models drop members of `annotations` they do not know; these never pass them.
    """
    result = await call_next(ctx)
    if ctx.method == message.LIST and isinstance(result, dict):
        who: Entered = entered.of_context(ctx)
        if who.marker:
            return {**result, "tools": who.marker}
    return result


async def remember(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Keep what stands around a result: the door answers the next request of its shape."""
    result = await call_next(ctx)
    if isinstance(result, dict) and ctx.method in shapes.PASSED_ON and clients.is_stateless(ctx):
        who: Entered = entered.of_context(ctx)
        if who.shape is not None:
            shows_forms = clients.shows_forms(ctx)
            shapes.frames.learn(who.shape, ctx.method, result, shows_forms=shows_forms)
    return result


def _cacheable() -> tuple[Any, ...]:
    return (*LISTS, "server/discover")


def _no_header_of_ours(_name: str) -> None:
    """No tool takes an argument from a header; else each call would list the catalogue anew."""


async def _no_resources(_ctx: Context, _params: Any) -> ListResourcesResult:
    return ListResourcesResult(resources=[])


async def _no_templates(_ctx: Context, _params: Any) -> ListResourceTemplatesResult:
    return ListResourceTemplatesResult(resource_templates=[])


async def _no_prompts(_ctx: Context, _params: Any) -> ListPromptsResult:
    return ListPromptsResult(prompts=[])


def _security() -> TransportSecuritySettings:
    """The names and pages of the door, for the SDK as well; by itself it checks none."""
    chosen = settings.current()
    public = urlsplit(chosen.origin)
    usual = DEFAULT_PORTS[public.scheme]
    hosts = {f"{name}:{chosen.port}" for name in LOOPBACK} | {public.netloc}
    if public.port is None:
        hosts.add(f"{public.netloc}:{usual}")
    hosts |= {known.removesuffix(f":{usual}") for known in hosts}
    return TransportSecuritySettings(
        allowed_hosts=sorted(hosts), allowed_origins=[chosen.origin, *chosen.cors_origins]
    )


def _token(who: Entered) -> AccessToken:
    """What the SDK binds sessions and states to: this agent, for this user, of this issuer."""
    claims = who.claims
    return AccessToken(
        token=claims.jti,
        client_id=claims.actors[0],
        scopes=sorted(claims.scopes),
        expires_at=claims.exp,
        resource=claims.aud,
        subject=claims.sub,
        claims={"iss": claims.iss},
    )
