"""The page of one command: its form, what was sent with it, and what came of a try."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlmodel import Session, col, exists, select
from starlette.datastructures import FormData

from app.access import scope
from app.commands import catalogue
from app.commands.call import Call
from app.commands.catalogue import Catalogue
from app.commands.definition import Operation
from app.commands.descriptors import Descriptor
from app.commands.outcome import Preview
from app.commands.refused import Refused
from app.commands.stored import StoredDefinition
from app.console import effects, said, schema_forms
from app.console.effects import Effects
from app.console.schema_forms import SchemaForm
from app.identity.models import Grant, RoleAssignment, User, UserStatus
from app.identity.principal import Principal
from app.kernel import clock, ids, settings
from app.kernel.errors import FieldError
from app.kernel.i18n import language

PEOPLE = "identity.user.read"
KEY, VERSION, FILL = "key", "expected_version", "fill"
OWN_FIELDS = frozenset({KEY, VERSION, FILL})
PEOPLE_SHOWN = 20
HIDDEN = "••••"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a form sent: the input, and what makes it one call and no other."""

    values: dict[str, Any]
    key: str
    version: int | None
    searches: dict[str, str]


@dataclass(slots=True)
class Opened:
    """The page of one command: its form, and what came of a try."""

    descriptor: Descriptor
    form: SchemaForm
    catalogue: Catalogue
    people: list[User]
    key: str
    refused: Refused | None = None
    preview: Preview | None = None
    effects: Effects | None = None
    result: said.Said | None = None
    rows: "list[Table]" = field(default_factory=list)
    next_cursor: str | None = None
    is_empty: bool = False

    @property
    def definition(self) -> StoredDefinition:
        """The version in force."""
        return self.descriptor.definition

    @property
    def reader(self) -> str | None:
        """The command that shows the target as it is now, if there is one."""
        return reading_command(self.catalogue, self.definition.record)

    @property
    def has_example(self) -> bool:
        """Whether the example says more than which record it is about."""
        return bool(self.definition.example.keys() - schema_forms.TARGET)

    @property
    def body(self) -> str:
        """The call as JSON, its secrets hidden."""
        values = _without_secrets(self.form.values, self.definition.secrets)
        asked = {"input": values or self.definition.example}
        return json.dumps(asked, ensure_ascii=False, indent=2)

    @property
    def curl(self) -> str:
        """The same for a shell."""
        address = f"{settings.current().origin}/v1/commands/{self.definition.code}/calls"
        lines = [
            f"curl -X POST {shlex.quote(address)}",
            '-H "Authorization: Bearer $ASSENT_TOKEN"',
            "-H 'Content-Type: application/json'",
            f"-H 'Idempotency-Key: {self.key}'",
            f"-d {shlex.quote(self.body)}",
        ]
        return " \\\n  ".join(lines)


@dataclass(frozen=True, slots=True)
class Table:
    """A list of an answer. `columns` are labels; `ids` those of the rows, where they have one."""

    name: str
    columns: list[str]
    rows: list[list[said.Said]]
    ids: list[str]


def asked_of(definition: StoredDefinition, sent: FormData) -> Asked:
    """What a form sent.

    Raises:
        Invalid: it holds a field that the form does not offer.
    """
    values = schema_forms.parse(definition, sent, besides=OWN_FIELDS)
    key = str(sent.get(KEY, ""))
    target, _, version = str(sent.get(VERSION, "")).partition(":")
    is_of_target = target and target == values.get("targetRecordId") and version.isdecimal()
    return Asked(
        values,
        key if ids.is_ulid(key) else ids.ulid(),
        int(version[:9]) if is_of_target else None,
        schema_forms.searches_of(sent),
    )


def filled(definition: StoredDefinition, asked: Asked, fill: str) -> dict[str, Any]:
    """The example with the record that is chosen; or an input that a page of ours offers."""
    if fill == "example":
        given = definition.example
        return {name: value for name, value in given.items() if name not in schema_forms.TARGET}
    try:
        offered = json.loads(fill)
    except ValueError:
        return {}
    known = definition.input_schema.get("properties", {})
    if not isinstance(offered, dict):
        return {}
    return {name: value for name, value in offered.items() if name in known}


def call_of(
    definition: StoredDefinition, asked: Asked, person: Principal, *, preview: bool = False
) -> Call:
    """The call it asks for; a rehearsal leaves the key for the one that runs."""
    return Call(
        code=definition.code,
        input=asked.values,
        principal=person,
        call_id=ids.ulid() if preview else asked.key,
        idempotency_key=asked.key if definition.writes and not preview else None,
        expected_version=asked.version if definition.writes else None,
        preview=preview,
    )


def opened(
    session: Session,
    person: Principal,
    code: str,
    asked: Asked | None = None,
    preview: Preview | None = None,
    *,
    target: str = "",
    refused: Refused | None = None,
) -> Opened:
    """The page of a command, for who may call it.

    Raises:
        NotFound: it is not in the person's catalogue.
    """
    seen = catalogue.of(session, person)
    descriptor = seen.one(code)
    form = schema_forms.form_for(
        session,
        person,
        descriptor.definition,
        values=asked.values if asked else None,
        target=target,
        errors=_errors(refused) if refused else (),
        searches=asked.searches if asked else None,
    )
    people = _who_else(session, person, descriptor.definition.permission)
    opened = Opened(descriptor, form, seen, people, ids.ulid(), refused, preview)
    if preview is not None:
        data = preview.data()
        opened.effects = effects.effects_of(
            session,
            person.tenant_id,
            data["changes"],
            data["outside"],
            is_complete=preview.is_complete,
        )
    return opened


def lay_out(session: Session, person: Principal, opened: Opened, result: Mapping[str, Any]) -> None:
    """Lay out what a reading command answered: its lists as tables, the rest as facts."""
    names = said.Names.among(session, person.tenant_id, result)
    facts = {}
    for name, value in result.items():
        rows = value if isinstance(value, list) else []
        if rows and all(isinstance(row, Mapping) for row in rows):
            opened.rows.append(_table(name, rows, names))
        elif value == []:
            opened.is_empty = True
        elif name == "nextCursor":
            opened.next_cursor = value or None
        elif not name.endswith("Cursor"):
            facts[name] = value
    opened.result = said.Said("facts", parts=tuple(said.facts(facts, names)))


def reading_command(seen: Catalogue, record: str | None) -> str | None:
    """The code of the command by which a reader sees one record of a type as it is now."""
    if record is None:
        return None
    for each in seen.entries:
        told = each.definition
        if told.record == record and told.operation is Operation.READ and told.targeted:
            return each.code
    return None


def _table(name: str, rows: list[Mapping[str, Any]], names: said.Names) -> Table:
    columns = said.columns(rows)
    return Table(
        name=said.label_of(name),
        columns=[said.label_of(column) for column in columns],
        rows=[
            [
                said.say(column, row.get(column), names, currency=str(row.get("currency") or ""))
                for column in columns
            ]
            for row in rows
        ],
        ids=[str(row.get("id", "")) for row in rows],
    )


def _who_else(session: Session, person: Principal, permission: str) -> list[User]:
    """Others who hold the permission, as far as the reader may see people."""
    held = exists().where(
        col(RoleAssignment.tenant_id) == User.tenant_id,
        col(RoleAssignment.user_id) == User.id,
        col(Grant.tenant_id) == RoleAssignment.tenant_id,
        col(Grant.role_id) == RoleAssignment.role_id,
        col(Grant.permission) == permission,
        (col(RoleAssignment.ends_at).is_(None)) | (col(RoleAssignment.ends_at) > clock.now()),
    )
    query = (
        select(User)
        .where(scope.within(person, PEOPLE, User), User.status == UserStatus.ACTIVE, held)
        .where(User.id != person.user_id)
        .order_by(col(User.display_name), col(User.id))
        .limit(PEOPLE_SHOWN)
    )
    return list(session.exec(query))


def _errors(refused: Refused) -> tuple[FieldError, ...]:
    """What is wrong with which field; a record that is not found is wrong where it was named."""
    if refused.text is not None:  # a rule speaks for itself, in both languages
        told = refused.words(language())
        return tuple(FieldError(each.pointer, told) for each in refused.errors)
    if refused.errors:
        return refused.errors
    if refused.reason == "record_not_found":
        pointer = str(refused.facts.get("pointer") or "targetRecordId")
        return (FieldError(pointer, refused.says),)
    return ()


def _without_secrets(values: Any, secrets: frozenset[str], at: str = "") -> Any:
    if at in secrets:
        return HIDDEN
    match values:
        case Mapping():
            return {
                name: _without_secrets(each, secrets, f"{at}/{name}" if at else name)
                for name, each in values.items()
            }
        case list() | tuple():
            return [_without_secrets(each, secrets, f"{at}/*") for each in values]
    return values
