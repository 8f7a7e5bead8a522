"""Agents at work: inputs, runs, the loop with its tools, models, and what survives a crash."""
