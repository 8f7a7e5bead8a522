"""What the SDK costs by itself: a trivial tool, and a list of 1,000. `mcp_floor PORT` serves it."""

import sys
from typing import Any

import uvicorn
from mcp.server.lowlevel import Server
from mcp.types import CallToolResult, ListToolsResult, TextContent, Tool

TOOLS = 1_000
SCHEMA = {
    "type": "object",
    "properties": {
        name: {"type": "string", "description": f"The {name} of it, as a person would say."}
        for name in ("targetRecordId", "operationType", "title", "period", "note")
    },
    "additionalProperties": False,
}


def create_server() -> Server[Any]:
    """A server of the SDK with nothing behind it."""

    async def call(_ctx: Any, params: Any) -> CallToolResult:
        said = str(params.arguments)
        return CallToolResult(
            content=[TextContent(type="text", text=said)], structured_content={"said": said}
        )

    async def listed(_ctx: Any, _params: Any) -> ListToolsResult:
        return ListToolsResult(
            tools=[
                Tool(
                    name=f"bench.thing.no{number}",
                    title=f"Thing {number}",
                    description="Use when somebody asks about this thing, and never otherwise.",
                    input_schema=SCHEMA,
                    output_schema=SCHEMA,
                )
                for number in range(TOOLS)
            ]
        )

    return Server(
        "floor",
        version="1",
        on_list_tools=listed,
        on_call_tool=call,
        get_tool_input_schema=lambda _name: None,
    )


if __name__ == "__main__":
    uvicorn.run(
        create_server().streamable_http_app(),
        host="127.0.0.1",
        port=int(sys.argv[1]),
        log_level="warning",
        access_log=False,
        loop="uvloop",
        http="httptools",
    )
