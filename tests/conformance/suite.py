"""The official conformance suite of MCP."""

from tests import node

PACKAGE = "@modelcontextprotocol/conformance"
VERSION = "0.2.0-alpha.12"  # the `latest` tag does not know the revision of 2026-07-28


def command(*arguments: str) -> list[str]:
    """How to run the suite, which the first caller installs.

    Raises:
        NotInstallable: there is no way to the package.
    """
    entry = node.installed(PACKAGE, VERSION) / "node_modules" / PACKAGE / "dist" / "index.js"
    return node.command(str(entry), *arguments)
