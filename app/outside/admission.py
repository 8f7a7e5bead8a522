"""Which outside tools a caller may use now: enabled, pinned, and permitted (RUN-4, RUN-96)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session, col, select

from app.access import scope
from app.commands.definition import Risk
from app.identity.principal import Principal, Scope
from app.outside import definitions, names
from app.outside.models import McpServer, McpTool, ToolState

READING = frozenset({Scope.COMMANDS_READ, Scope.CATALOG_READ, Scope.COMMANDS_INVOKE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """One tool that may be used, as it is pinned.

    Attributes:
        name: as its server calls it; `code` as we do.
        is_read_only: it runs as a tool of a run; any other is a command.
    """

    server_id: str
    server: str
    name: str
    code: str
    pin: str
    is_read_only: bool
    content: Mapping[str, Any]


def of(session: Session, principal: Principal | None) -> tuple[Admitted, ...]:
    """The tools that an agent may use for its user; nobody's agent has none."""
    if principal is None or principal.delegation_id is None or not principal.scopes & READING:
        return ()
    found = _enabled(session, principal.tenant_id)
    if not found:
        return ()
    may = {
        True: scope.may(session, principal, definitions.READ),
        False: scope.may(session, principal, definitions.USE),
    }
    return tuple(each for each in found if may[each.is_read_only])


def pins(admitted: Sequence[Admitted]) -> dict[str, str]:
    """Code of each tool -> the pin under which it was there."""
    return {each.code: each.pin for each in admitted}


def changed(session: Session, tenant_id: str, had: Mapping[str, str]) -> list[str]:
    """Which of the tools that somebody `had` are others by now; what was turned off is not."""
    if not had:
        return []
    query = _tools(tenant_id).where(col(McpTool.state).in_([ToolState.ENABLED, ToolState.CHANGED]))
    now = {
        names.code(server.name, tool.local): None if tool.state == ToolState.CHANGED else tool.pin
        for server, tool in session.exec(query)
    }
    return sorted(code for code, pin in had.items() if code in now and now[code] != pin)


def _enabled(session: Session, tenant_id: str) -> list[Admitted]:
    query = _tools(tenant_id).where(
        McpTool.state == ToolState.ENABLED, col(McpServer.is_enabled).is_(True)
    )
    return [
        Admitted(
            server_id=server.id,
            server=server.name,
            name=tool.name,
            code=names.code(server.name, tool.local),
            pin=tool.pin or "",
            is_read_only=tool.risk == Risk.L0,
            content=tool.pinned or {},
        )
        for server, tool in session.exec(query)
    ]


def _tools(tenant_id: str) -> Any:
    return (
        select(McpServer, McpTool)
        .join(
            McpTool,
            (col(McpTool.tenant_id) == McpServer.tenant_id)
            & (col(McpTool.server_id) == McpServer.id),
        )
        .where(McpServer.tenant_id == tenant_id)
        .order_by(col(McpServer.name), col(McpTool.local))
    )
