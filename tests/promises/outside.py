"""Promises of outside servers: their tools, their words, and the way to them."""

from tests.promises.requirement import Requirement

PROMISES = {
    "SEC-68": Requirement(
        "An outside server is pinned, guarded, bounded and never believed.",
        source="spec/security.md, 8",
    ),
    "RUN-50": Requirement(
        "Tool connections close with their run, on every path.",
        source="spec/agent-loop.md, 1",
    ),
    "RUN-96": Requirement(
        "Outside tools are pinned, admitted by an administrator, and reached by one owner task.",
        source="spec/agent-loop.md, 8",
    ),
    "F-42": Requirement(
        "One of three outside calls fails: its own result says so, the others are done.",
        source="spec/agent-loop.md, 15",
    ),
    "F-85": Requirement(
        "Connecting to one of three servers fails: no process and no socket is left.",
        source="spec/agent-loop.md, 15",
    ),
}
