"""The MCP client of this deployment: the official SDK, without what it does on its own.

It is handed our guarded HTTP client, checks no result (its checker can be frozen by a pattern,
security.md, 8), listens to no stream that we did not ask for, and answers no question of a server.
Import it with `load`: the SDK takes most of a second.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
from mcp.client.session import ClientRequestContext, ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    URL_ELICITATION_REQUIRED,
    CallToolResult,
    ErrorData,
    Implementation,
    InputRequest,
    InputRequiredResult,
    InputResponse,
    PaginatedRequestParams,
)
from pydantic import ValidationError

from app.kernel import http, settings
from app.outside import aside, offers, results, stdio
from app.outside.endpoint import Endpoint
from app.outside.offers import Listed
from app.outside.results import Answer, Lost
from app.outside.schemas import Unfit

CONNECT_S, CALL_S, GOODBYE_S = 5.0, 30.0, 2.0
PAGES = 50  # of one list
RESUMED = 20  # answers of one connection that were fetched in pieces
SAID_NO = frozenset({METHOD_NOT_FOUND, INVALID_PARAMS})  # any other error may come after the deed
TOKEN_REFUSED = {401: results.UNAUTHORIZED, 403: "link_needed"}
ANSWERED_NO = frozenset({307, 308, *range(400, 500)} - {408, 499})  # a redirect is not followed

# What others wrote does not belong in our log, and the SDK writes it there.
for _name in ("mcp.client.streamable_http", "client"):
    logging.getLogger(_name).setLevel(logging.CRITICAL)


class Guarded(ClientSession):
    """The SDK's session; `was_asked` tells whether the server wanted to know something of us."""

    was_asked = False

    async def validate_tool_result(self, name: str, result: CallToolResult) -> None:
        """Nothing: Python's `re` on the event loop can stop the whole process (SEC-68)."""

    async def dispatch_input_request(
        self, ctx: ClientRequestContext, request: InputRequest
    ) -> InputResponse | ErrorData:
        """No to every question."""
        self.was_asked = True
        return await super().dispatch_input_request(ctx, request)


class Wire:
    """One open connection to one server."""

    def __init__(self, session: Guarded, way: "_Way") -> None:
        self._session, self._way = session, way

    async def listed(self) -> list[Listed]:
        """Every tool the server lists.

        Raises:
            Unfit: there are too many.
        """
        found: list[Listed] = []
        cursor: str | None = None
        for _ in range(PAGES):
            page = await self._session.list_tools(
                params=PaginatedRequestParams(cursor=cursor) if cursor else None
            )
            found += [
                Listed(tool.name, tool.description or "", tool.input_schema, tool.output_schema)
                for tool in page.tools
            ]
            if len(found) > offers.TOOLS:
                raise Unfit("too_many_tools")
            if not (cursor := page.next_cursor):
                return found
        raise Unfit("too_many_tools")

    async def call(self, name: str, arguments: dict[str, Any], output: Any) -> Answer:
        """What a tool answers within half a minute.

        Raises:
            Lost: nothing tells what became of it.
        """
        self._session.was_asked = False
        try:
            with anyio.fail_after(CALL_S):
                result = await self._session.call_tool(name, arguments, allow_input_required=True)
        except TimeoutError:
            raise Lost("timeout", was_sent=True) from None
        except MCPError as error:
            return self._refused(error)
        except (ValidationError, RuntimeError):
            raise Lost("protocol", was_sent=True) from None
        if isinstance(result, InputRequiredResult):
            return results.refused(results.INPUT)
        if result.is_error:
            was_asked = self._session.was_asked
            reason = results.INPUT if was_asked else "tool_refused"
            return results.refused(reason, results.said(result.content))
        given = (result.content, result.structured_content, output)
        return await aside.run(results.done, *given)

    def _refused(self, error: MCPError) -> Answer:
        """The server's clear no; any other error may hide that it was done.

        Raises:
            Lost: nothing tells what became of it.
        """
        status = self._way.status
        if status in TOKEN_REFUSED:
            return results.refused(TOKEN_REFUSED[status])
        if error.code == URL_ELICITATION_REQUIRED or self._session.was_asked:
            return results.refused(results.INPUT)
        if status in ANSWERED_NO or (status < 300 and error.code in SAID_NO):
            return results.refused("server_refused", error.message)
        raise Lost("no_answer", was_sent=True)


@asynccontextmanager
async def opened(endpoint: Endpoint) -> AsyncIterator[Wire]:
    """A connection that was agreed on; it lives in the task that opens it.

    Raises:
        Lost: there is no such server, or it does not answer as one should.
        ExceptionGroup: it broke later.
    """
    way = _Way()
    async with _streams(endpoint, way) as (read, write), _session(read, write) as session:
        try:
            with anyio.fail_after(CONNECT_S):
                await _agree(session)
        except MCPError:
            raise Lost(TOKEN_REFUSED.get(way.status, "protocol")) from None
        yield Wire(session, way)


def _session(read: Any, write: Any) -> Guarded:
    return Guarded(read, write, client_info=Implementation(name="assent", version="1"))


async def _agree(session: Guarded) -> None:
    """The stateless revision where the server knows it, otherwise the handshake."""
    try:
        await session.discover()
    except (MCPError, ValidationError, RuntimeError):
        await session.initialize()


@asynccontextmanager
async def _streams(endpoint: Endpoint, way: "_Way") -> AsyncIterator[Any]:
    if endpoint.program is not None:
        async with stdio.opened(endpoint.program) as streams:
            yield streams
        return
    pairs = http.pairs(",".join(settings.current().outbound_allow))
    async with http.client(pairs) as client:
        client.timeout = httpx2.Timeout(CONNECT_S, read=CALL_S)
        client.event_hooks = {"request": [way.leaves], "response": [way.came]}
        if endpoint.token:
            client.headers["authorization"] = f"Bearer {endpoint.token}"
        async with streamable_http_client(endpoint.url, http_client=client) as streams:
            yield streams


class _Way:
    """What goes over one connection, and the status that came back last."""

    def __init__(self) -> None:
        self.status = 0
        self._resumed = 0

    async def leaves(self, request: httpx2.Request) -> None:
        """Let no stream be opened that nobody waits for, and no goodbye take long."""
        if request.method == "DELETE":
            request.extensions["timeout"] = dict.fromkeys(
                ("connect", "read", "write", "pool"), GOODBYE_S
            )
        if request.method == "GET":
            self._resumed += 1
            if "last-event-id" not in request.headers or self._resumed > RESUMED:
                raise http.Refused("stream")

    async def came(self, response: httpx2.Response) -> None:
        """Remember how the newest request was answered."""
        if response.request.method == "POST":
            self.status = response.status_code


def rule_of(fault: BaseException) -> str:
    """Why a connection broke, in a word of ours; nothing of what the other side wrote."""
    rules = [_rule_of_one(each) for each in _leaves(fault)]
    return next((rule for rule in rules if rule), "connection")


def _leaves(fault: BaseException) -> list[BaseException]:
    if isinstance(fault, BaseExceptionGroup):
        return [leaf for inner in fault.exceptions for leaf in _leaves(inner)]
    return [fault]


def _rule_of_one(fault: BaseException) -> str:
    match fault:
        case Lost(rule=rule) | http.Refused(rule=rule) | http.Unreachable(rule=rule):
            return rule
        case Unfit(rule=rule):
            return rule
        case TimeoutError() | httpx2.TimeoutException():
            return "timeout"
        case MCPError() | ValidationError() | RuntimeError():
            return "protocol"
    return ""
