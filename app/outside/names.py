"""What outside tools are called here, so that none collides with another or looks like ours.

A tool of `weather` that its server calls `Get-Forecast` is the command `mcp.weather.get_forecast`,
and to a model `mcp-weather-get_forecast`.
"""

import re
from collections import Counter
from collections.abc import Iterable

PREFIX = "mcp."
SERVER = re.compile(r"[a-z][a-z0-9]{0,23}")  # no `_`: then no two servers' tools have one name
TOOL = re.compile(r"[A-Za-z][A-Za-z0-9_.\-]{0,63}")


def is_server(name: str) -> bool:
    """Whether a server may be called so."""
    return SERVER.fullmatch(name) is not None


def local(tool: str) -> str | None:
    """What a tool is called here, None where its name is not of plain letters."""
    if TOOL.fullmatch(tool) is None:
        return None
    return re.sub(r"[^a-z0-9_]", "_", tool.lower())


def code(server: str, local: str) -> str:
    """The code of a tool as a command."""
    return f"{PREFIX}{server}.{local}"


def doubled(tools: Iterable[str]) -> frozenset[str]:
    """The names among `tools` that share what they are called here with another."""
    named = [(tool, local(tool)) for tool in tools]
    count = Counter(ours for _, ours in named if ours is not None)
    return frozenset(tool for tool, ours in named if ours is not None and count[ours] > 1)
