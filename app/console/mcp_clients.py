"""How common AI applications are told of an MCP server: what to run, or to put into which file."""

import json
from dataclasses import dataclass
from typing import Any

from app.kernel.i18n import N_

NAME = "assent"
RUN = N_("Run this command:")
ADD = N_("Add this to the file:")


@dataclass(frozen=True, slots=True)
class Setup:
    """What a person copies.

    Attributes:
        application: its name, as its makers write it.
        way: what to do with the text.
        file: where it belongs; empty of a command.
        text: what to copy.
        more: what comes next, where it is not obvious.
    """

    application: str
    way: str
    file: str
    text: str
    more: str = ""


def setups(endpoint: str) -> tuple[Setup, ...]:
    """For each application, with the address of this server."""
    return (
        Setup(
            "Claude Code",
            RUN,
            "",
            f"claude mcp add --transport http {NAME} {endpoint}",
            N_("Then type /mcp and choose the server to sign in."),
        ),
        Setup("Codex", RUN, "", f"codex mcp add {NAME} --url {endpoint}"),
        Setup("Cursor", ADD, "~/.cursor/mcp.json", _file("mcpServers", url=endpoint)),
        Setup("VS Code", ADD, ".vscode/mcp.json", _file("servers", type="http", url=endpoint)),
        Setup(
            "Claude",
            N_("Add a custom connector in its settings, with this address:"),
            "",
            endpoint,
        ),
    )


def _file(key: str, **server: Any) -> str:
    return json.dumps({key: {NAME: server}}, indent=2)
