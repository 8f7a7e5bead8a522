"""What packs bring, found once at start: their commands, their record types, their rights (CMD-25).

A pack is a folder with a `PACK`; a command is one file in its `commands/` that ends in `COMMAND`.
Folders are those of the product and the one of `ASSENT_PACKS_DIR`, where a file may also add to a
pack that ships.
"""

import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from app.access import scope
from app.access.scope import Reach
from app.commands import sources
from app.commands.definition import CommandDefinition, Operation
from app.commands.governed import GovernedRecord
from app.commands.pack import Pack

PACKAGE = "app.packs"


class PackFault(RuntimeError):
    """A pack cannot be loaded as it stands; the message says which file, and why."""


@dataclass(slots=True)
class _Found:
    packs: dict[str, Pack] = field(default_factory=dict)
    commands: dict[str, CommandDefinition] = field(default_factory=dict)
    pack_of: dict[str, str] = field(default_factory=dict)
    record_types: dict[str, type[GovernedRecord]] = field(default_factory=dict)
    reading_permissions: dict[str, str] = field(default_factory=dict)


_found = _Found()


def discover(extra: Path | None = None) -> None:
    """Find every pack; what was known before is forgotten.

    Raises:
        PackFault: two commands share a code, or a file has not what it must have.
    """
    global _found
    _found = _Found()
    root = importlib.import_module(PACKAGE)
    own = [folder for folder in (extra,) if folder is not None and folder.is_dir()]
    for folder in own:
        if str(folder) not in root.__path__:
            root.__path__.append(str(folder))
    for found in sorted(pkgutil.iter_modules(root.__path__), key=lambda each: each.name):
        if found.ispkg:
            _add(importlib.import_module(f"{PACKAGE}.{found.name}"), own)


def packs() -> tuple[Pack, ...]:
    """Every pack."""
    return tuple(_found.packs.values())


def import_demos() -> None:
    """Let packs that have something to show register it for `--demo`."""
    for pack in _found.packs.values():
        name = f"{PACKAGE}.{pack.code}.demo"
        if importlib.util.find_spec(name) is not None:
            importlib.import_module(name)


def declared() -> Mapping[str, CommandDefinition]:
    """Every command that packs declare, by code."""
    return _found.commands


def reading_permissions() -> Mapping[str, str]:
    """The permission by which records of a type are read one by one, by the name of the type."""
    return _found.reading_permissions


def pack_of(code: str) -> str | None:
    """The pack that declares a command."""
    return _found.pack_of.get(code)


def record_type(name: str) -> type[GovernedRecord]:
    """The class of a record type (`expense.report`).

    Raises:
        KeyError: no pack has it.
    """
    return _found.record_types[name]


def record_types() -> Mapping[str, type[GovernedRecord]]:
    """Every record type, by name."""
    return _found.record_types


def _add(package: ModuleType, extra: list[Path]) -> None:
    pack: Pack | None = getattr(package, "PACK", None)
    if pack is None:
        raise PackFault(f"{package.__name__} has no PACK")
    _found.packs[pack.code] = pack
    for model in pack.record_types:
        _found.record_types[model.RECORD] = model
        scope.declare(model, _reach_of(model))
    for module in _command_modules(package, extra):
        command = getattr(module, "COMMAND", None)
        if not isinstance(command, CommandDefinition):
            raise PackFault(f"{module.__name__} has no COMMAND")
        if sources.is_reserved(command.code):
            raise PackFault(f"{module.__name__}: no pack may declare {command.code}")
        if command.code in _found.commands:
            raise PackFault(f"{module.__name__}: {command.code} is declared twice")
        _found.commands[command.code] = command
        _found.pack_of[command.code] = pack.code
        if command.operation is Operation.READ and command.is_targeted and command.record:
            _found.reading_permissions.setdefault(command.record.RECORD, command.permission)


def _command_modules(package: ModuleType, extra: list[Path]) -> Iterator[ModuleType]:
    name = f"{package.__name__}.commands"
    short = package.__name__.rpartition(".")[2]
    try:
        commands = importlib.import_module(name)
    except ModuleNotFoundError as fault:
        if fault.name != name:
            raise
        return
    for found in sorted(pkgutil.iter_modules(commands.__path__), key=lambda each: each.name):
        yield importlib.import_module(f"{name}.{found.name}")
    for folder in extra:
        added = folder / short / "commands"
        if str(added) not in commands.__path__ and added.is_dir():
            for file in sorted(added.glob("[!_]*.py")):
                yield _module_at(file, f"{name}.{file.stem}")


def _module_at(file: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise PackFault(f"{file} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _reach_of(model: type[GovernedRecord]) -> Any:
    return lambda: Reach(owner=model.owner_id, org=model.org_id)
