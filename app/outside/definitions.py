"""An outside tool as a command: every one that is not read-only, with approval and audit (CMD-27).

What stands in a definition is what was pinned, so that another pin is another version, and whoever
assented to the old one did not assent to the new.
"""

from collections.abc import Mapping
from typing import Any

from sqlmodel import Session, col, select

from app.commands.definition import Operation, Risk, Text
from app.commands.stored import StoredDefinition
from app.outside import names, schemas
from app.outside.models import McpServer, McpTool, ToolState

PACK, TAG = "mcp", "outside"
USE, READ = "outside.tool.use", "outside.tool.read"
SAYS = 140  # characters of what a tool says of itself, in a hint
RESULT = {
    "type": "object",
    "properties": {"outside": {"type": "object", "description": "What the server answered."}},
}


def of_tenant(session: Session, tenant_id: str) -> Mapping[str, StoredDefinition]:
    """The commands that a tenant's outside tools are now, by code."""
    query = (
        select(McpServer, McpTool)
        .join(
            McpTool,
            (col(McpTool.tenant_id) == McpServer.tenant_id)
            & (col(McpTool.server_id) == McpServer.id),
        )
        .where(
            McpServer.tenant_id == tenant_id,
            col(McpServer.is_enabled).is_(True),
            McpTool.state == ToolState.ENABLED,
            McpTool.risk != Risk.L0,
        )
        .order_by(col(McpServer.name), col(McpTool.local))
    )
    found = session.exec(query).all()
    return {names.code(server.name, tool.local): of(server, tool) for server, tool in found}


def of(server: McpServer, tool: McpTool) -> StoredDefinition:
    """One tool, as it is pinned, as a command."""
    content: Mapping[str, Any] = tool.pinned or {}
    said = str(content["description"])
    first = said if len(said) <= SAYS else f"{said[: SAYS - 1]}…"
    where = server.url or server.name
    return StoredDefinition(
        code=names.code(server.name, tool.local),
        pack=PACK,
        display_name=_both(f"{server.name}: {tool.name}"),
        description=Text(
            en=f"The tool {tool.name} of {where}, which others run. It says of itself: {said}",
            zh=f"外部服务器 {where} 的工具 {tool.name}（由他人运行）。其自述为：{said}",
        ),
        agent_hint=Text(
            en=f"Calls {tool.name} of the outside server {server.name}: {_line(first)}",
            zh=f"调用外部服务器 {server.name} 的工具 {tool.name}：{_line(first)}",
        ),
        risk=Risk(tool.risk),
        idempotent=False,
        reversible=False,
        operation=Operation.EXTERNAL,
        input_schema=content["input"],
        output_schema=RESULT,
        example=schemas.example(content["input"]),
        permission=USE,
        approval_ttl_s=None,
        tags=(TAG, pin_tag(tool.pin or "")),
    )


def pin_tag(pin: str) -> str:
    """The tag by which an auditor, and a call on its way, knows which pin it was."""
    return f"pin:{pin[:32]}"


def _both(text: str) -> Text:
    return Text(en=text, zh=text)


def _line(text: str) -> str:
    return " ".join(text.split()) or "-"
