"""Promises of the MCP door: the catalogue as tools, calls through the pipeline."""

from tests.promises.requirement import Requirement

_MCP = "spec/security.md, 8"
_FAULTS = "spec/security.md, 13"

PROMISES = {
    "SEC-58": Requirement(
        "The MCP door checks host, origin, cookie, token, size, JSON, rate and scope, in this "
        "order, before the SDK reads a byte.",
        _MCP,
    ),
    "SEC-59": Requirement(
        "Each command of the caller's catalogue is a tool, and says its risk in words and hints.",
        _MCP,
    ),
    "SEC-60": Requirement(
        "A list of tools is that of the authorization presented, encoded once, at most 5 s old.",
        _MCP,
    ),
    "SEC-61": Requirement("A call repeated under its idempotency key is made once.", _MCP),
    "SEC-62": Requirement(
        "Every refusal has one shape, with stage, reason and advice; a fault tells an id.", _MCP
    ),
    "SEC-63": Requirement(
        "A call that needs a person sends its client to the page, in the best way it has, and is "
        "made once after the person said yes.",
        _MCP,
    ),
    "SEC-64": Requirement(
        "A form of a client informs the user before an L2 call; it never gives consent.", _MCP
    ),
    "SEC-65": Requirement(
        "A request state is bound to its call and principal, and survives a restart.", _MCP
    ),
    "SEC-66": Requirement("No known trap of the MCP SDK is open here.", _MCP),
    "SEC-P1": Requirement(
        "A page that rebinds a name to this machine calls no tool (CVE-2025-66416).", _FAULTS
    ),
    "SEC-P2": Requirement(
        "Somebody else's session id opens nothing with one's own token (CVE-2026-52869).", _FAULTS
    ),
    "SEC-P6": Requirement(
        "A malformed request or a client that goes away ends nothing (GHSA-j975-95f5-7wqh).",
        _FAULTS,
    ),
}
