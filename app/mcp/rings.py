"""Rings of keys of this door; apart from the SDK, so that an operator need not load it."""

STATES = "mcp_state"  # what `requestState` is sealed under
