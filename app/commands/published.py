"""The version of a command that is in force, with everything that runs it, ready (CMD-F23).

A call takes one version and keeps it to its end. What a version's content compiles to is kept by
its hash: each process compiles a content once.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jsonschema_rs
from sqlalchemy import Connection
from sqlmodel import Session, col, func, select

from app.commands import registry
from app.commands.definition import Input, schema_of
from app.commands.governed import GovernedRecord
from app.commands.models import CommandVersion, VersionStatus
from app.commands.stored import StoredDefinition, with_target
from app.kernel import json
from app.kernel.prepared import Prepared

_CURRENT = Prepared(
    "SELECT id, version, content_hash, status FROM command_version "
    "WHERE tenant_id = :tenant_id AND code = :code AND status <> 'draft' "
    "ORDER BY version DESC LIMIT 1"
)
_CONTENT = Prepared(
    "SELECT definition FROM command_version WHERE tenant_id = :tenant_id AND id = :id"
)
CACHED = 4_096  # contents


@dataclass(frozen=True, slots=True)
class Machinery:
    """What a content compiles to.

    Attributes:
        model: the pack's type of the target record.
        input_model: the pack's input model, None where the input is known by its schema alone.
        snake: wire name -> Python name of the input's fields.
        defaults: Python name -> what a field holds when it is not sent.
    """

    definition: StoredDefinition
    validator: Any
    model: type[GovernedRecord] | None
    input_model: type[Input] | None
    handler: Callable[[Any], dict[str, Any] | None] | None
    snake: Mapping[str, str]
    defaults: Mapping[str, Any]
    secrets: frozenset[str]


@dataclass(frozen=True, slots=True)
class Published:
    """One published version."""

    id: str
    version: int
    content_hash: str
    machinery: Machinery

    @property
    def definition(self) -> StoredDefinition:
        """What it says."""
        return self.machinery.definition


_machinery: dict[str, Machinery] = {}


def current(connection: Connection, tenant_id: str, code: str) -> Published | None:
    """The version of a command that is in force; None where there is none, or it was retired."""
    row = _CURRENT.run(connection, tenant_id=tenant_id, code=code).first()
    if row is None or row.status != VersionStatus.PUBLISHED:
        return None
    return _of(connection, tenant_id, row.id, row.version, row.content_hash)


def codes_tagged(session: Session, tenant_id: str, tag: str) -> tuple[str, ...]:
    """The commands whose version in force carries a tag."""
    return tuple(
        each.code for each in all_current(session, tenant_id) if tag in each.definition["tags"]
    )


def all_current(session: Session, tenant_id: str) -> list[CommandVersion]:
    """The version in force of every command of a tenant, by code; retired ones left out."""
    newest = (
        select(CommandVersion.code, func.max(CommandVersion.version).label("version"))
        .where(CommandVersion.tenant_id == tenant_id, CommandVersion.status != VersionStatus.DRAFT)
        .group_by(col(CommandVersion.code))
        .subquery()
    )
    query = (
        select(CommandVersion)
        .join(
            newest,
            (newest.c.code == CommandVersion.code) & (newest.c.version == CommandVersion.version),
        )
        .where(
            CommandVersion.tenant_id == tenant_id,
            CommandVersion.status == VersionStatus.PUBLISHED,
        )
        .order_by(col(CommandVersion.code))
    )
    return list(session.exec(query).all())


def machinery_of(definition: StoredDefinition) -> Machinery:
    """What a definition compiles to.

    Raises:
        ValueError, KeyError: its schema is none, or its record type is unknown.
    """
    declared = registry.declared().get(definition.code)
    schema = definition.input_schema
    properties: Mapping[str, Any] = schema.get("properties", {})
    model = registry.record_type(definition.record) if definition.record else None
    own = _own_input(declared, definition)
    return Machinery(
        definition=definition,
        validator=jsonschema_rs.validator_for(schema, validate_formats=True),
        model=model,
        input_model=own,
        handler=declared.handler if declared else None,
        snake={name: python_name(name) for name in properties},
        defaults={python_name(name): part.get("default") for name, part in properties.items()},
        secrets=definition.secrets,
    )


def forget() -> None:
    """Drop what was compiled: packs were discovered anew."""
    _machinery.clear()


def _of(
    connection: Connection, tenant_id: str, id: str, version: int, content_hash: str
) -> Published:
    if (made := _machinery.get(content_hash)) is None:
        (stored,) = _CONTENT.run(connection, tenant_id=tenant_id, id=id).one()
        data = json.of_column(stored)
        made = machinery_of(StoredDefinition.model_validate(data))
        if len(_machinery) >= CACHED:
            _machinery.clear()
        _machinery[content_hash] = made
    return Published(id, version, content_hash, made)


def _own_input(declared: Any, definition: StoredDefinition) -> type[Input] | None:
    if declared is None:
        return None
    schema = schema_of(declared.input)
    if definition.targeted:
        schema, _ = with_target(schema, definition.operation, {})
    return declared.input if schema == definition.input_schema else None


def python_name(name: str) -> str:
    """The Python name of an input field, by its name on the wire."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
