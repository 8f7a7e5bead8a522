"""The framework tools of agents, a file each ending in `TOOL` (RUN-94, RUN-95)."""

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache

from app.runs.tool import Tool


@cache
def discover() -> Mapping[str, Tool]:
    """Every framework tool, by name.

    Raises:
        RuntimeError: a file has not what it must have.
    """
    found: dict[str, Tool] = {}
    for module in pkgutil.iter_modules(__path__):
        tool = getattr(importlib.import_module(f"{__name__}.{module.name}"), "TOOL", None)
        if not isinstance(tool, Tool) or tool.name != module.name:
            raise RuntimeError(f"{module.name} has no TOOL of its own name")
        found[tool.name] = tool
    return found
