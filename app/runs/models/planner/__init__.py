"""The offline planner: what a person asks, found and filled by rules alone (agent-loop.md, 11)."""
