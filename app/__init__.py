"""Assent: a console and an action gateway for autonomous agents."""
