"""Promises that wait for what a later issue builds."""

from tests.promises.requirement import Requirement

HARNESS = "the harness engine: agent-loop.md, 14"

PROMISES = {
    "RUN-24": Requirement(
        "A harness takes queued messages as later runs; nothing is injected into a running one.",
        source="spec/agent-loop.md, 1",
        waits_for=HARNESS,
    ),
    "RUN-112": Requirement(
        "A harness reaches nothing but our own door for agents, and consent stays with us.",
        source="spec/agent-loop.md, 14",
        waits_for=HARNESS,
    ),
}
