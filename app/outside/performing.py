"""Performs a command that is an outside tool: over a connection of its own, as its user (CMD-27).

The call was approved and is on record. What runs now is the tool as it was pinned then: one that
changed meanwhile is turned off, and nothing is sent.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session, select

from app.audit.models import AuditEntry
from app.commands.external import ExternalRequest, ExternalResult
from app.commands.models import CommandVersion
from app.kernel import db
from app.outside import definitions, links, names, reaching, tools
from app.outside.connection import Connection
from app.outside.models import McpServer, McpTool, ToolState
from app.outside.offers import Offer
from app.outside.results import UNAUTHORIZED, Lost

TOOL_GONE, TOOL_CHANGED = "tool_gone", "tool_changed"


@dataclass(frozen=True, slots=True)
class _Target:
    server_id: str
    tool: str
    pin: str
    output: Mapping[str, Any] | None
    pinned: Mapping[str, Offer]


async def perform(request: ExternalRequest) -> ExternalResult:
    """Make the call once, and say what came of it."""
    try:
        target = await db.read(_target, request)
        endpoint = await reaching.reach(request.tenant_id, target.server_id, request.user_id)
    except Lost as lost:
        return ExternalResult(outcome="failed", reason=lost.rule)
    connection = Connection(endpoint, target.pinned)
    try:
        await connection.ready()
        offer = connection.offers.get(target.tool)
        if offer is None:
            return ExternalResult(outcome="failed", reason=TOOL_GONE)
        if offer.pin != target.pin:
            await db.transaction(
                tools.notice, request.tenant_id, target.server_id, connection.offers
            )
            return ExternalResult(outcome="failed", reason=TOOL_CHANGED)
        answer = await connection.call(target.tool, request.data, target.output)
        if answer.reason == UNAUTHORIZED:
            await _refused(request, target, connection)
    except Lost as lost:
        if lost.rule == UNAUTHORIZED:
            await _refused(request, target, connection)
        return ExternalResult(outcome="unknown" if lost.was_sent else "failed", reason=lost.rule)
    finally:
        await connection.close()
    if answer.outcome == "refused":
        return ExternalResult(outcome="failed", reason=answer.reason, data=dict(answer.data))
    return ExternalResult(outcome="done", data=dict(answer.data))


async def _refused(request: ExternalRequest, target: _Target, connection: Connection) -> None:
    of_link = (request.tenant_id, request.user_id, target.server_id, connection.link)
    await db.transaction(links.was_refused, *of_link)


def _target(session: Session, request: ExternalRequest) -> _Target:
    """Where the call goes, if the tool is still the one that was called.

    Raises:
        Lost: it is not.
    """
    server_name, _, local = request.code.removeprefix(names.PREFIX).partition(".")
    key = McpServer.tenant_id == request.tenant_id
    server = session.exec(select(McpServer).where(key, McpServer.name == server_name)).first()
    if server is None or not server.is_enabled:
        raise Lost(TOOL_GONE)
    query = select(McpTool).where(
        McpTool.tenant_id == request.tenant_id,
        McpTool.server_id == server.id,
        McpTool.local == local,
        McpTool.state == ToolState.ENABLED,
    )
    tool = session.exec(query).first()
    if tool is None or tool.pin is None:
        raise Lost(TOOL_GONE)
    if definitions.pin_tag(tool.pin) not in _called(session, request):
        raise Lost(TOOL_CHANGED)
    output = (tool.pinned or {}).get("output")
    pinned = tools.pinned(session, request.tenant_id, server.id)
    return _Target(server.id, tool.name, tool.pin, output, pinned)


def _called(session: Session, request: ExternalRequest) -> list[str]:
    """The tags of the version that was called, by the trail."""
    version = (
        select(AuditEntry.version)
        .where(AuditEntry.tenant_id == request.tenant_id, AuditEntry.call_id == request.call_id)
        .where(AuditEntry.outcome == "dispatched")
    )
    query = select(CommandVersion.definition).where(
        CommandVersion.tenant_id == request.tenant_id,
        CommandVersion.code == request.code,
        CommandVersion.version == version.scalar_subquery(),
    )
    found = session.exec(query).first()
    return list(found["tags"]) if found else []
