"""Loads the product, in the process that `tests/processes.py` forks; only that one imports this."""

import gc
import importlib

from app import main
from app.__main__ import COMMANDS
from app.commands import registry
from tests import included

importlib.import_module("app.identity.demo")
for command in COMMANDS:
    importlib.import_module(f"app.operator.{command.replace('-', '_')}")
registry.discover()
registry.import_demos()
included.share()
included.make(main.routers())
gc.collect()
gc.freeze()  # the forked ones share it as it is
